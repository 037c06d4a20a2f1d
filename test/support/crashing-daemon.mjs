import { systemClock } from '../../dist/clock.js';
import { loadConfig } from '../../dist/config/load.js';
import { holdKey, readKey } from '../../dist/config/secrets.js';
import { createReaders } from '../../dist/daemon/readers.js';
import { createRuntime } from '../../dist/daemon/runtime.js';
import { trackUnknownOutcomes } from '../../dist/deliver/context.js';
import { openJournal } from '../../dist/journal/journal.js';
import { createLog } from '../../dist/log.js';
import { Spool, spoolOf } from '../../dist/spool.js';

/*
 * The built daemon, with a journal that kills the process at the named record of one run, as a power cut would: before
 * the record is written, or once it is on disk. KIND is its kind, or `uploaded 2` for its second file. `remembered` is the moment between the hand-over to the outbox and
 * intake's record of the file.
 *
 *   node crashing-daemon.mjs CONFIG RUN before|after KIND
 */
const [file, run, when, kind] = process.argv.slice(2);
const config = loadConfig(file);
const journal = await openJournal(config.settings.journal, systemClock);
const spool = new Spool(spoolOf(config.settings.journal));
await spool.clean(await journal.outbox.uploads.needed());

/** Whether the record was handed over, to be stored with the run's next change. */
let isHandedOver = false;

const isIt = (id, changes) =>
  id === Number(run) && changes.some((change) => change.kind === kind || `${change.kind} ${change.n}` === kind);

const storing =
  (store) =>
  async (id, ...changes) => {
    const isHere = isIt(id, changes);
    if (isHere && when === 'before') process.kill(process.pid, 'SIGKILL');
    await store(id, ...changes);
    if (isHere || (isHandedOver && id === Number(run))) process.kill(process.pid, 'SIGKILL');
  };

function recordLater(id, ...changes) {
  if (isIt(id, changes) && when === 'before') process.kill(process.pid, 'SIGKILL');
  journal.outbox.recordLater(id, ...changes);
  isHandedOver ||= isIt(id, changes);
}

async function add(...args) {
  const added = await journal.outbox.add(...args);
  if (kind === 'remembered' && added.run === Number(run)) process.kill(process.pid, 'SIGKILL');
  return added;
}

/** Of a growing file: `appended` is the hand-over of a batch to the outbox, `flushed` the start of its delivery. */
const growing =
  (name, store) =>
  async (...args) => {
    if (kind === name && when === 'before' && --countdown === 0) process.kill(process.pid, 'SIGKILL');
    const result = await store(...args);
    if (kind === name && when === 'after' && --countdown === 0) process.kill(process.pid, 'SIGKILL');
    return result;
  };
/** For these, RUN is how often it happens until then. */
let countdown = Number(run);

const { log, conceal, isSecretIn } = createLog({ level: 'info' });
const runtime = createRuntime({
  config,
  journal: {
    ...journal,
    growing: {
      ...journal.growing,
      begin: growing('begun', journal.growing.begin),
      save: growing('saved', journal.growing.save),
      replace: growing('replaced', journal.growing.replace),
    },
    growths: {
      ...journal.growths,
      append: growing('appended', journal.growths.append),
      flush: growing('flushed', journal.growths.flush),
      report: growing('reported', journal.growths.report),
      attach: growing('attached', journal.growths.attach),
    },
    outbox: {
      ...journal.outbox,
      record: storing(journal.outbox.record),
      apply: storing(journal.outbox.apply),
      recordLater,
      add,
      uploads: { ...journal.outbox.uploads, record: storing(journal.outbox.uploads.record) },
    },
  },
  readers: createReaders(),
  spool,
  clock: systemClock,
  log,
  isSecretIn,
  key: holdKey(() => readKey(config.notebook.key, config.placeOf(['notebook', 'key'])), conceal),
  failedTests: [],
  isFirst: true,
  outcomes: (_url, timeoutMs) => trackUnknownOutcomes(systemClock, timeoutMs, log),
  observer: {},
  onResponse: () => undefined,
});
await runtime.start();
