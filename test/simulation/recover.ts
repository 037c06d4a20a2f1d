import type { ListedInstrument } from '../../src/config/load.js';
import { createNotebookReader } from '../../src/evidence.js';
import { createJournal } from '../../src/journal/journal.js';
import { MAX_MISSING, recover } from '../../src/recover/recover.js';
import { SETTINGS } from './daemon.js';
import type { World } from './world.js';

const INSTRUMENT: ListedInstrument = {
  name: 'balance',
  changed: 'revise',
  duplicates: 'skip',
  comments: { readings: 'none', maxBytes: 60_000, maxComments: 5 },
};

/** Runs `labfeed recover` while no daemon runs. */
export async function recoverJournal(world: World): Promise<void> {
  const { timeline, database, notebook, pc, trace } = world;
  const process = timeline.process();
  const journal = createJournal({
    database,
    before: world.note,
    clock: process.clock,
    release: () => undefined,
    schedule: (flush) => process.at(0, flush),
    sync: async () => undefined,
    makeId: () => pc.journal,
  });
  const reader = createNotebookReader(notebook, {
    clock: process.clock,
    signal: new AbortController().signal,
    onRetry: () => undefined,
  });
  const recovered = await timeline.until(
    recover({
      server: SETTINGS.url,
      instruments: [INSTRUMENT],
      journal,
      notebook: reader,
      // A person confirms that the notebook is empty.
      range: notebook.experiments.size === 0 ? { from: 1, to: MAX_MISSING } : undefined,
      onProgress: () => undefined,
    }),
  );
  world.note = (await timeline.until(journal.notes.take())) ?? world.note;
  trace?.(`recovered: ${JSON.stringify(recovered)}`);
  process.kill();
}
