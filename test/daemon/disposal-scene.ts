import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { DatabaseSync } from '@photostructure/sqlite';
import { onTestFinished } from 'vitest';
import type { Instrument } from '../../src/config/load.js';
import { type DisposalContext, disposeOfRun, restoreRun } from '../../src/daemon/disposal.js';
import { sourcesOf } from '../../src/daemon/sources.js';
import { migrate } from '../../src/journal/database.js';
import { createJournal } from '../../src/journal/journal.js';
import { createReader } from '../../src/journal/reader.js';
import type { RunChange } from '../../src/outbox.js';
import type { Sources } from '../../src/sources.js';
import { stampOf } from '../../src/watch/identify.js';
import { installFaults, resetFaults, step } from '../support/disk-faults.js';
import { manualClock } from '../support/manual-clock.js';
import { newRun, sha256, someDraft } from '../support/runs.js';
import { silentLog } from '../support/silent-log.js';
import { tempFolder } from '../support/temp-folder.js';

const DONE: RunChange[] = [
  { kind: 'intended', server: 'https://eln.example.org', floor: 9, at: 1 },
  { kind: 'created', experiment: 12, found: false },
  { kind: 'described' },
  { kind: 'finished' },
];

export type Source = Instrument['source'];

interface SceneOptions {
  /** The files of one filed run, by their names in the watched folder, with their content. */
  readonly files?: Readonly<Record<string, string | Buffer>>;
  /** Not in the temporary folder, if given. */
  readonly target?: string;
  readonly source?: Source;
}

/** A filed run in a folder `data`, and a folder `done` for its files. */
export async function setUp({ files = { 'a.csv': 'filed' }, target, source }: SceneOptions = {}) {
  installFaults();
  const folder = tempFolder();
  const [data, done] = [join(folder, 'data'), target ?? join(folder, 'done')];
  mkdirSync(data);
  const clock = manualClock();
  // In memory: hundreds are created.
  const database = new DatabaseSync(':memory:');
  migrate(database, ':memory:');
  const journal = createJournal({ database, clock, release: () => undefined });
  const reader = createReader(database);
  onTestFinished(async () => {
    resetFaults();
    await journal.close();
  });
  const run = folderRun(data, files);
  const moving: Source = source ?? { move: done };
  const instrument = { name: 'balance', watch: data, source: moving, run: 'file', ready: { quiet: 10 } } as unknown;
  const sources = sourcesOf(instrument as Instrument, run.file);
  const { run: id } = await journal.outbox.add(
    { ...newRun('x', { sources }), file: run.file },
    { draft: someDraft('x') },
  );
  await journal.outbox.record(id, ...DONE);
  const state = {
    source: moving,
    folder: 'present' as 'present' | 'missing',
    waiting: false,
    proof: undefined as Error | undefined,
    rescans: 0,
    runKind: 'file' as Instrument['run'],
  };

  const contextOf = (signal: AbortSignal): DisposalContext => ({
    config: { claims: [{ watch: data }] } as unknown as DisposalContext['config'],
    journal: { outbox: { id: journal.outbox.id, sources: inSteps(journal.outbox.sources) } },
    instruments: [
      {
        usable: { ...(instrument as Instrument), source: state.source, run: state.runKind },
        activity: {
          isPresent: () => state.folder === 'present',
          waiting: { has: () => state.waiting },
        } as unknown as DisposalContext['instruments'][number]['activity'],
      },
    ],
    async prove() {
      if (state.proof) throw state.proof;
    },
    async rescan() {
      state.rescans += 1;
    },
    signal,
    clock,
    log: silentLog(),
  });
  const files_ = async () => reader.sourcesOf(id);
  return {
    ...{ folder, data, done, journal, reader, id, clock, state },
    /** What a daemon does when it looks for work. */
    async act(signal = new AbortController().signal) {
      const context = contextOf(signal);
      const { sources: own } = journal.outbox;
      const result: string[] = [];
      for (const one of await own.claimHidden(clock.now())) {
        try {
          result.push((await restoreRun(await own.load(one), context)) ?? 'restored');
        } finally {
          await own.release(one);
        }
      }
      for (const one of await own.claim(clock.now(), 9, ['balance'])) {
        try {
          result.push((await disposeOfRun(await own.load(one), context)) ?? 'acted');
        } finally {
          await own.release(one);
        }
      }
      return result;
    },
    /** Only the first thing after a restart. */
    async restart() {
      const { sources: own } = journal.outbox;
      for (const one of await own.claimHidden(clock.now())) {
        await restoreRun(await own.load(one), contextOf(new AbortController().signal));
        await own.release(one);
      }
    },
    /** Back-off and quiet periods are over. */
    wait: () => clock.advance(3_700_000),
    outcomes: async () => (await files_()).map(({ outcome, reason }) => outcome ?? reason?.split('\n')[0]),
    movedTo: async () => (await files_()).map(({ movedTo }) => movedTo),
    inData: () => listed(data),
    inDone: () => listed(done),
    read: (path: string) => readFileSync(join(folder, path), 'utf8'),
  };
}

/** A crash can come before and after each record. */
function inSteps(sources: Sources): Sources {
  const wrapped = (['hide', 'decide', 'record', 'postponeAll'] as const).map((name) => [
    name,
    async (...args: never[]) => {
      step();
      const result = await (sources[name] as (...args: never[]) => Promise<unknown>)(...args);
      step();
      return result;
    },
  ]);
  return { ...sources, ...(Object.fromEntries(wrapped) as object) };
}

/** Names below a folder, without folders. Bytes that are not UTF-8 as Latin-1. */
export function listed(folder: string): string[] {
  if (!existsSync(folder)) return [];
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true, encoding: 'latin1' });
  const files = entries.filter((entry) => !entry.isDirectory());
  return files.map(({ parentPath, name }) => `${parentPath}/${name}`.slice(folder.length + 1)).toSorted();
}

function folderRun(data: string, files: NonNullable<SceneOptions['files']>) {
  const parts = Object.entries(files).map(([name, content]) => {
    // Names as Latin-1, as above.
    const location = Buffer.concat([Buffer.from(`${data}/`), Buffer.from(name, 'latin1')]);
    mkdirSync(dirname(join(data, name)), { recursive: true });
    writeFileSync(location, content);
    const stamp = stampOf(statSync(location, { bigint: true }));
    return { path: `${data}/${name}`, location, name, role: name, sha256: sha256(String(content)), ...stamp };
  });
  const [first] = parts;
  if (!first) throw new Error('a run has files');
  const several = { ...newRun('x').file, path: data, parts };
  return { file: parts.length === 1 ? first : several };
}
