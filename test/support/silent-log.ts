import { createLog, type Log } from '../../src/log.js';

export const silentLog = (): Log => createLog({ level: 'silent' }).log;
