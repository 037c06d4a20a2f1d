import { lstat } from 'node:fs/promises';
import { basename } from 'node:path';
import type { Hearing } from './hearing.js';
import { list } from './list.js';
import { type Candidate, type Folder, look } from './look.js';
import { retryMs } from './pause.js';
import type { Rung } from './rings.js';
import type { ScanDeps } from './scan.js';

export interface AnswerDeps extends Omit<ScanDeps, 'isNetwork' | 'isOthers'> {
  /** Asks for a full scan. */
  rescan(): void;
}

/** Makes the function that looks at what rang in one folder, and offers what it finds. It does not reject. */
export function createAnswer(deps: AnswerDeps): (folder: string, rung: Rung) => Promise<void> {
  const { signal, clock, log } = deps;
  let failures = 0;

  return async (folder, rung) => {
    if (signal.aborted) return;
    try {
      await (rung === 'anything' ? listAnew(folder, deps) : lookAt(folder, rung, deps));
      failures = 0;
    } catch (error) {
      if (signal.aborted) return;
      failures += 1;
      log.error({ folder, err: error }, 'a change could not be followed up, scanning instead');
      // Where the receiver is in trouble, a file that is always written to must not become a scan at each write.
      await clock.sleep(retryMs(failures), signal).catch(() => undefined);
      deps.rescan();
    }
  };
}

/** Lists a folder, and what is new below it: a subfolder that has its own bell would have rung. */
async function listAnew(start: string, deps: AnswerDeps): Promise<void> {
  const { root, matcher, signal, hearing } = deps;
  const found = list(root, {
    matcher,
    signal,
    under: seenFrom(root, start),
    enter: async (folder) => {
      if (folder.path !== start && hearing.hears(folder)) return false;
      await hearing.listenTo(folder);
      return true;
    },
  });
  let next = await found.next();
  for (; !next.done; next = await found.next()) {
    await deps.offer(next.value);
    signal.throwIfAborted();
  }
  if (next.value.state === 'present') return;
  if (start === root) deps.rescan();
  else hearing.forget(start);
}

async function lookAt(folder: string, names: ReadonlySet<string>, deps: AnswerDeps): Promise<void> {
  const { root, matcher, signal, hearing } = deps;
  const candidates = [...names].map((name): Candidate => {
    const path = `${folder}/${name}`;
    return { path, location: path, relative: seenFrom(root, path) };
  });
  // What is neither a run as a file nor listed as a folder is not worth a look: a log that is always written to.
  const { files, folders, absent } = await look(
    candidates.filter(({ relative }) => matcher.takes(relative) || !matcher.prunes(relative)),
    matcher.takes,
  );
  signal.throwIfAborted();
  for (const { path } of absent) hearing.forget(path);
  // A folder that is deleted rings its own name; the watched one has no parent here that would ring too.
  if (folder === root && names.has(basename(root)) && !(await isStillThere(root, hearing))) deps.rescan();
  if (files.length > 0) await deps.offer([...files]);
  for (const found of folders) {
    if (!hearing.hears(found) && !(await isLink(found))) await listAnew(found.path, deps);
  }
}

async function isStillThere(root: string, hearing: Hearing): Promise<boolean> {
  const { folders } = await look([{ path: root, location: root, relative: '' }], () => false);
  return folders.some((folder) => hearing.hears(folder));
}

function seenFrom(root: string, path: string): string {
  return path.slice(root.length + 1);
}

async function isLink({ location }: Folder): Promise<boolean> {
  const stats = await lstat(location).catch(() => undefined);
  return stats?.isSymbolicLink() === true;
}
