import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { Instrument } from '../../src/config/load.js';
import { type DisposalContext, disposeOfRun, restoreFound, restoreRun } from '../../src/daemon/disposal.js';
import { sourcesOf } from '../../src/daemon/sources.js';
import { createJournal } from '../../src/journal/journal.js';
import { createReader } from '../../src/journal/reader.js';
import type { RunChange } from '../../src/outbox.js';
import type { Sources } from '../../src/sources.js';
import { stampOf } from '../../src/watch/identify.js';
import { installFaults, resetFaults, step } from '../support/disk-faults.js';
import { manualClock } from '../support/manual-clock.js';
import { emptyDatabase } from '../support/memory-journal.js';
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

const MATCHING = { files: ['**/*'], ignore: [] };

const UNCHANGED_MS = 600_000;

interface SceneOptions {
  /** The files of one filed run, by their names in the watched folder, with their content. */
  readonly files?: Readonly<Record<string, string | Buffer>>;
  /** Not in the temporary folder, if given. */
  readonly target?: string;
  readonly source?: Source;
  /** A folder on another device, to which `data` leads as to a share that is mounted. */
  readonly share?: string | undefined;
}

/** A filed run in a folder `data`, and a folder `done` for its files. */
export async function setUp({ files = { 'a.csv': 'filed' }, target, source, share }: SceneOptions = {}) {
  installFaults();
  const folder = tempFolder();
  const [data, done] = [join(folder, 'data'), target ?? join(folder, 'done')];
  if (share === undefined) mkdirSync(data);
  else symlinkSync(share, data);
  const clock = manualClock();
  // In memory: hundreds are created.
  const database = emptyDatabase();
  const journal = createJournal({ database, clock, release: () => undefined });
  const reader = createReader(database);
  onTestFinished(async () => {
    resetFaults();
    await journal.close();
  });
  const run = folderRun(data, files);
  const moving: Source = source ?? { move: done };
  const instrument = { name: 'balance', watch: data, source: moving, run: 'file', ...MATCHING } as unknown;
  const sources = sourcesOf(instrument as Instrument, run.file, 0);
  const { run: id } = await journal.outbox.add(
    { ...newRun('x', { sources }), file: run.file },
    { draft: someDraft('x') },
  );
  await journal.outbox.record(id, ...DONE);
  const state = {
    source: moving,
    watch: data,
    folder: 'present' as 'present' | 'missing' | 'unknown',
    waiting: false,
    proof: undefined as Error | undefined,
    proofs: 0,
    instruments: ['balance'],
    runKind: 'file' as Instrument['run'],
  };

  const contextOf = (signal: AbortSignal): DisposalContext => ({
    config: { claims: [{ name: 'balance', watch: data, ...MATCHING }] } as unknown as DisposalContext['config'],
    journal: {
      outbox: {
        id: journal.outbox.id,
        hasContent: journal.outbox.hasContent,
        sources: inSteps(journal.outbox.sources),
      },
      intake: journal.intake,
    },
    instruments: state.instruments.map((name) => ({
      usable: { ...(instrument as Instrument), name, watch: state.watch, source: state.source, run: state.runKind },
      activity: {
        isPresent: () => state.folder === 'present',
        live: () => ({ folder: { state: state.folder } }),
        waiting: { has: () => state.waiting },
      } as unknown as DisposalContext['instruments'][number]['activity'],
    })),
    async prove() {
      state.proofs += 1;
      if (state.proof) throw state.proof;
    },
    unchangedMs: UNCHANGED_MS,
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
        try {
          await restoreRun(await own.load(one), contextOf(new AbortController().signal));
        } finally {
          await own.release(one);
        }
      }
    },
    /** As if its share were not mounted: an empty folder. Returns what mounts it again. */
    unmount() {
      rmSync(data);
      mkdirSync(data);
      return () => {
        rmSync(data, { recursive: true });
        symlinkSync(share ?? '', data);
      };
    },
    /** What it does after a scan has found this file. */
    found: (name: string) =>
      restoreFound(Buffer.from(join(data, name)), 'balance', contextOf(new AbortController().signal)),
    /** Back-off and the time without a change are over. */
    wait: (ms = 3_700_000) => clock.advance(ms),
    outcomes: async () => (await files_()).map(({ outcome, reason }) => outcome ?? reason?.split('\n')[0]),
    movedTo: async () => (await files_()).map(({ movedTo }) => movedTo),
    inData: () => listed(data),
    inDone: () => listed(done),
    read: (path: string) => readFileSync(join(folder, path), 'utf8'),
  };
}

/** A crash can come before and after each record. */
function inSteps(sources: Sources): Sources {
  const wrapped = (['begin', 'record'] as const).map((name) => [
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
function listed(folder: string): string[] {
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
