import { systemClock } from '../../dist/clock.js';
import { journalOf, loadConfig } from '../../dist/config/load.js';
import { holdKey, readKey } from '../../dist/config/secrets.js';
import { createRuntime } from '../../dist/daemon/runtime.js';
import { trackUnknownOutcomes } from '../../dist/deliver/context.js';
import { openJournal } from '../../dist/journal/journal.js';
import { createLog } from '../../dist/log.js';

/*
 * The built daemon, with a journal that kills the process at the named record of one run, as a power cut would: before
 * the record is written, or once it is on disk. KIND `remembered` is the moment between the hand-over to the outbox and
 * intake's record of the file.
 *
 *   node crashing-daemon.mjs CONFIG RUN before|after KIND
 */
const [file, run, when, kind] = process.argv.slice(2);
const config = loadConfig(file);
const journal = await openJournal(journalOf(config), systemClock);

async function record(id, ...changes) {
  const isIt = id === Number(run) && changes.some((change) => change.kind === kind);
  if (isIt && when === 'before') process.kill(process.pid, 'SIGKILL');
  await journal.outbox.record(id, ...changes);
  if (isIt) process.kill(process.pid, 'SIGKILL');
}

async function add(...args) {
  const added = await journal.outbox.add(...args);
  if (kind === 'remembered' && added.run === Number(run)) process.kill(process.pid, 'SIGKILL');
  return added;
}

const { log, conceal } = createLog({ level: 'info', pretty: false });
const runtime = createRuntime({
  config,
  journal: { ...journal, outbox: { ...journal.outbox, record, add } },
  clock: systemClock,
  log,
  key: holdKey(() => readKey(config.notebook.key, config.placeOf(['notebook', 'key'])), conceal),
  failedTests: [],
  isFirst: true,
  outcomes: (_url, timeoutMs) => trackUnknownOutcomes(systemClock, timeoutMs, log),
  observer: {},
  onResponse: () => undefined,
});
await runtime.start();
