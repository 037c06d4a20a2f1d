import { mkdirSync } from 'node:fs';
import { LabfeedError, systemCode } from '../errors.js';

/** Makes a folder that was named on the command line, and those above it; `option` says where it can be named. */
export function makeFolder(folder: string, option: string): void {
  try {
    mkdirSync(folder, { recursive: true });
  } catch (cause) {
    throw new LabfeedError(`the folder ${folder} cannot be made (${systemCode(cause) ?? cause})`, {
      cause,
      hint: `name a place that this user may write to with ${option}`,
    });
  }
}
