import { expect, test } from 'vitest';
import { FileError } from '../src/errors.js';
import type { Journal } from '../src/journal/journal.js';
import type { FileRecord, FoundFile } from '../src/model.js';
import { ingest, type Stages } from '../src/pipeline.js';
import { manualClock } from './support/manual-clock.js';
import { memoryJournal } from './support/memory-journal.js';
import { sha256, someDraft } from './support/runs.js';

const BALANCE = { name: 'balance', changed: 'new', duplicates: 'skip', mapping: 'm1' } as const;

const NOTHING_READ: FileRecord = { meta: new Map(), tables: [] };

const found = (path: string): FoundFile => ({ path, location: path, size: 1, mtimeNs: 5n, inode: 9n });

/** A folder whose files hold what they are told to, and the real journal. */
function scene(changes: Partial<Stages> = {}) {
  const journal: Journal = memoryJournal(manualClock());
  const contents = new Map<string, string>();
  let rings = 0;
  const stages: Stages = {
    settle: async (file) => file,
    inTurn: (work) => work(),
    identify: async ({ path, location, mtimeNs, inode }) => {
      const content = contents.get(path) ?? '';
      return { path, location, mtimeNs, inode, size: content.length, sha256: sha256(content) };
    },
    parse: async () => NOTHING_READ,
    map: (_, { path }) => someDraft(path),
    journal: {
      ...journal.runs,
      add: async (run, draft) => {
        await journal.runs.add(run, draft);
        return 'queued';
      },
      refuse: async (run, problem) => void (await journal.runs.refuse(run, problem)),
      wasTaken: journal.files.wasTaken,
      skip: (name, file) => journal.files.skip(name, [file]),
    },
    enqueue: () => {
      rings += 1;
    },
    ...changes,
  };
  return {
    journal,
    rings: () => rings,
    see(path: string, content: string, instrument: Partial<Parameters<typeof ingest>[2]> = {}) {
      contents.set(path, content);
      return ingest(found(path), false, { ...BALANCE, ...instrument }, stages);
    },
  };
}

test('the same bytes at another path are filed once, or each time where duplicates are to be ingested', async () => {
  const skipping = scene();
  expect([await skipping.see('/data/a.csv', 'x'), await skipping.see('/data/b.csv', 'x')]).toEqual([
    'queued',
    'known',
  ]);
  const ingesting = scene();
  const duplicates = 'ingest';
  expect([
    await ingesting.see('/data/a.csv', 'x', { duplicates }),
    await ingesting.see('/data/b.csv', 'x', { duplicates }),
    await ingesting.see('/data/b.csv', 'x', { duplicates }),
  ]).toEqual(['queued', 'queued', 'known']);
  expect(await ingesting.journal.runs.count()).toEqual({ pending: 2 });
});

test('other bytes at a known path are a new run, or passed over where changes are to be ignored', async () => {
  const taking = scene();
  expect([await taking.see('/data/a.csv', 'x'), await taking.see('/data/a.csv', 'y')]).toEqual([
    'queued',
    'queued',
  ]);
  const ignoring = scene();
  const changed = 'ignore';
  expect([
    await ignoring.see('/data/a.csv', 'x', { changed }),
    await ignoring.see('/data/a.csv', 'y', { changed }),
    await ignoring.see('/data/b.csv', 'z', { changed }),
  ]).toEqual(['queued', 'skipped', 'queued']);
  expect(await ignoring.journal.runs.count()).toEqual({ pending: 2 });
});

test('a file that does not read as its mapping says is quarantined, and nothing is sent for it', async () => {
  const { see, journal, rings } = scene({
    parse: () => Promise.reject(new FileError('the column Weight is missing')),
  });
  expect(await see('/data/a.csv', 'x')).toBe('refused');
  expect(await journal.runs.count()).toEqual({ quarantined: 1 });
  expect(rings()).toBe(0);
});

test('a fault of labfeed itself is no verdict about the file: it is not recorded, and can be tried again', async () => {
  const { see, journal } = scene({
    parse: () => Promise.reject(new TypeError('undefined is not a function')),
  });
  await expect(see('/data/a.csv', 'x')).rejects.toThrow(TypeError);
  expect(await journal.runs.count()).toEqual({});
});
