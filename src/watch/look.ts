import { systemCode } from '../errors.js';
import type { FoundFile } from '../model.js';
import { reasonOf } from './reason.js';
import { identityOf, isAbsent, stampOf, statAll } from './stamp.js';

/** Something that a folder holds, before it is known what it is. */
export interface Candidate {
  /** For people. */
  readonly path: string;
  readonly location: string | Buffer;
  /** Seen from the watched folder, with `/` between names. */
  readonly relative: string;
}

export interface Folder extends Candidate {
  /** Changes when another folder comes to stand under the same name. */
  readonly id: string;
}

/** What could not be looked at, though it may be there. */
export interface Unread {
  readonly path: string;
  readonly reason: string;
  /** Not for this user, like a disk's `lost+found`: waiting for it would be in vain. */
  readonly forbidden: boolean;
}

export const unreadOf = (path: string, error: unknown): Unread => ({
  path,
  reason: reasonOf(error),
  forbidden: ['EACCES', 'EPERM'].includes(systemCode(error) ?? ''),
});

export interface Looked {
  readonly files: readonly FoundFile[];
  readonly folders: readonly Folder[];
  /** Gone between being named and being looked at. */
  readonly absent: readonly Candidate[];
  readonly unread: readonly Unread[];
}

/** Looks at each of them once: files are those that `takes` wants, folders are named, all else is passed over. */
export async function look(
  candidates: readonly Candidate[],
  takes: (relative: string) => boolean,
): Promise<Looked> {
  const files: FoundFile[] = [];
  const folders: Folder[] = [];
  const absent: Candidate[] = [];
  const unread: Unread[] = [];
  const seen = await statAll(candidates.map(({ location }) => location));
  candidates.forEach((candidate, index) => {
    const stats = seen[index];
    if (stats === undefined) return;
    if (stats instanceof Error) {
      if (isAbsent(stats)) absent.push(candidate);
      else unread.push(unreadOf(candidate.path, stats));
    } else if (stats.isDirectory()) {
      folders.push({ ...candidate, id: identityOf(stats) });
    } else if (stats.isFile() && takes(candidate.relative)) {
      files.push({ path: candidate.path, location: candidate.location, ...stampOf(stats) });
    }
  });
  return { files, folders, absent, unread };
}
