import { statSync } from 'node:fs';
import type { LoadedConfig } from '../config/load.js';
import { journalOf } from '../config/locations.js';
import { explain } from '../errors.js';
import type { Job, JournalReader } from '../journal/reader.js';
import type { Live } from '../live.js';
import { identify, isAbsent, reasonOf, stampOf } from '../watch/identify.js';
import type { Evidence, FileEvidence, KnownRun } from '../why/evidence.js';
import { runPathOf } from '../why/matching.js';
import { instrumentEvidence } from './instrument-evidence.js';
import { nextStep } from './next-step.js';

export interface Witnesses {
  readonly config: LoadedConfig;
  /** Undefined where there is no journal yet. */
  readonly reader: JournalReader | undefined;
  readonly running: boolean;
  /** What the running daemon tells. */
  readonly live: Live | undefined;
  readonly now: number;
}

/** More than this is not read only to tell whether it is a copy. */
const MOST_HASHED_BYTES = 256 * 1024 * 1024;

/** So many entries of one path, or of paths that hold it, are looked through. */
const MOST_KNOWN = 1000;

/** Asks everybody who may know something about a file. Its path is absolute, as the instruments' folders name it. */
export async function gather(path: string, witnesses: Witnesses): Promise<Evidence> {
  const { config, reader, running, live, now } = witnesses;
  const file = await lookAt(path);
  const overview = reader?.overview();
  const askedOf = (name: string): number =>
    overview?.instruments.find((instrument) => instrument.name === name)?.asked ?? 0;
  const mayBeFolder = file.state !== 'present';
  const instruments = config.claims.map((claim) =>
    instrumentEvidence(claim, path, { config, live, asked: askedOf(claim.name), mayBeFolder }),
  );
  const paths = new Set([path, runPathOf({ path, instruments })]);
  const known = [...paths].flatMap(
    (one) => reader?.files(one, MOST_KNOWN).filter((entry) => entry.path === one) ?? [],
  );
  return {
    path,
    now,
    file,
    instruments,
    known,
    runs: runsOf(
      known.flatMap(({ run }) => (run === undefined ? [] : [run])),
      file,
      reader,
    ),
    journal: reader !== undefined,
    isJournal: path.startsWith(journalOf(config)),
    daemon: { running, gate: running ? live?.notebook.gate : undefined },
    servers: overview?.servers ?? [],
  };
}

function runsOf(ids: readonly number[], file: FileEvidence, reader: JournalReader | undefined): KnownRun[] {
  if (reader === undefined) return [];
  const byPath = [...new Set(ids)].flatMap((id) => reader.job(id) ?? []);
  const sha256 = file.state === 'present' ? file.sha256 : undefined;
  const byContent = sha256 === undefined ? [] : reader.sameContent(sha256);
  const runs = new Map([...byPath, ...byContent].map((job) => [job.id, asKnown(job)]));
  return [...runs.values()].sort((a, b) => b.id - a.id);
}

function asKnown(job: Job): KnownRun {
  const { id, instrument, state, path, sha256, server, experiment, reason } = job;
  const { dueAt, addedAt, updatedAt } = job;
  const about = { id, instrument, state, path, sha256, server, experiment, reason };
  return { ...about, dueAt, addedAt, updatedAt, nextStep: nextStep(job) };
}

async function lookAt(path: string): Promise<FileEvidence> {
  try {
    const stats = statSync(path, { bigint: true });
    if (stats.isDirectory()) return { state: 'folder' };
    if (!stats.isFile()) return { state: 'unreadable', reason: 'it is neither a file nor a folder' };
    const found = { path, location: path, ...stampOf(stats) };
    const about = {
      state: 'present',
      size: found.size,
      modifiedMs: Number(found.mtimeNs / 1_000_000n),
    } as const;
    if (found.size > MOST_HASHED_BYTES)
      return { ...about, sha256: undefined, unread: 'it is too large to be read for a question' };
    try {
      const { sha256 } = await identify(found, { signal: new AbortController().signal, keepBytes: 0 });
      return { ...about, sha256, unread: undefined };
    } catch (error) {
      return { ...about, sha256: undefined, unread: explain(error) };
    }
  } catch (error) {
    return isAbsent(error) ? { state: 'absent' } : { state: 'unreadable', reason: reasonOf(error) };
  }
}
