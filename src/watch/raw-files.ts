import { posix } from 'node:path';
import { type FoundFile, filesOf, type IdentifiedFile } from '../model.js';
import type { NewAttachment } from '../outbox.js';
import { type Copy, CopyWriter, type Incoming, type Spool } from '../spool.js';
import { formatBytes } from '../text.js';
import { ArchiveWriter, archiveSize } from './archive.js';

/** Runs with more files are attached as one archive. */
const MAX_SINGLE = 20;

interface RawFilesOptions {
  readonly spool: Pick<Spool, 'admit' | 'discard' | 'keep' | 'handedOver'>;
  /** How much all copies may take. */
  readonly maxBytes: number;
  /** Whether the notebook takes files, as far as known. */
  isWanted(): Promise<boolean>;
  /** Whether the journal has a run that still needs this content. */
  isNeeded(sha256: string): Promise<boolean>;
}

/** The raw files of an instrument's runs are copied into the spool while they are hashed. */
export interface RawFiles {
  /** Undefined if the files of this run are not attached. */
  begin(run: FoundFile): Promise<RawCopies | undefined>;
}

/** The copies of one run's files, until its hand-over. */
export interface RawCopies {
  /** Where a thread copies the file of a run with one file. */
  readonly path: string | undefined;
  /** For files that are hashed in this thread. */
  copies(): readonly (Copy | undefined)[];
  /** Makes the copies durable. Resolves with what is to be attached. `isCopied`: what a thread copied is complete. */
  keep(file: IdentifiedFile, isCopied: boolean | undefined): Promise<NewAttachment[]>;
  /** The run was handed over, or not: removes what nobody needs. */
  end(): Promise<void>;
}

export const createRawFiles = (options: RawFilesOptions): RawFiles => ({
  async begin(run) {
    if (!(await options.isWanted())) return undefined;
    const kept: string[] = [];
    const keep = async (place: Incoming, sha256: string): Promise<boolean> => {
      const isKept = await options.spool.keep(place, sha256);
      if (isKept) kept.push(sha256);
      return isKept;
    };
    const isArchive = filesOf(run).length > MAX_SINGLE;
    const copies = isArchive ? await copyArchive(run, keep, options) : await copyFiles(run, keep, options);
    return {
      ...copies,
      async end() {
        await copies.end();
        for (const sha256 of kept) await options.spool.handedOver(sha256, () => options.isNeeded(sha256));
      },
    };
  },
});

type Keep = (place: Incoming, sha256: string) => Promise<boolean>;

async function copyFiles(run: FoundFile, keep: Keep, { spool, maxBytes }: RawFilesOptions): Promise<RawCopies> {
  const places: (Incoming | undefined)[] = [];
  for (const { size } of filesOf(run)) places.push(await spool.admit(size, maxBytes));
  let writers: readonly (CopyWriter | undefined)[] | undefined;
  return {
    path: run.parts ? undefined : places[0]?.path,
    copies() {
      writers = places.map((place) => place && new CopyWriter(place.path));
      return writers;
    },
    async keep(file, isCopied = false) {
      for (const writer of writers ?? []) await writer?.close();
      const files = file.parts ?? [{ ...file, name: posix.basename(file.path) }];
      const attachments: NewAttachment[] = [];
      for (const [index, { name, path, sha256, size }] of files.entries()) {
        const place = places[index];
        const isComplete = writers ? (writers[index]?.isComplete ?? false) : isCopied;
        if (isComplete) places[index] = undefined;
        // Without a copy, it is uploaded from its path, if that still has the same content.
        if (place && isComplete) await keep(place, sha256);
        attachments.push({ name, path, sha256, size });
      }
      return attachments;
    },
    async end() {
      for (const writer of writers ?? []) await writer?.close();
      for (const place of places) if (place) await spool.discard(place);
    },
  };
}

async function copyArchive(run: FoundFile, keep: Keep, { spool, maxBytes }: RawFilesOptions): Promise<RawCopies> {
  const parts = run.parts ?? [];
  const size = archiveSize(parts);
  let place = size === undefined ? undefined : await spool.admit(size, maxBytes);
  const archive = place && new ArchiveWriter(place.path, parts);
  return {
    path: undefined,
    copies: () => archive?.copies ?? [],
    async keep({ path }) {
      const sha256 = await archive?.finish();
      const wanted = place;
      if (sha256 !== undefined) place = undefined;
      const isSpooled = sha256 !== undefined && wanted !== undefined && (await keep(wanted, sha256));
      const name = `${posix.basename(path)}.zip`;
      const total = parts.reduce((sum, part) => sum + part.size, 0);
      if (isSpooled) return [{ name, path, sha256, size: size ?? 0 }];
      const problem = `the ${parts.length} raw files are not attached: there is no room for their archive (${formatBytes(total)}) beside the journal`;
      return [{ name, path, sha256: '', size: total, problem }];
    },
    async end() {
      await archive?.close();
      if (place) await spool.discard(place);
    },
  };
}
