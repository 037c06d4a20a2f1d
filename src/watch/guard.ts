import { type BigIntStats, readFileSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import type { AccessRules } from '../config/load.js';
import { FileError } from '../errors.js';
import type { DiskFile } from '../model.js';
import { type OpenFile, realPlace, slowMountOf, statOne } from '../system/disk.js';
import { userName } from '../system/process.js';
import { shellWord } from '../text.js';

/**
 * Keeps links in a watched folder from publishing files from elsewhere. It judges what was opened, not a path, which
 * somebody could replace between the check and the opening.
 */
export type Guard = ReturnType<typeof createGuard>;

type Opened = Pick<OpenFile, 'path' | 'stats'>;

/** How long the identities of own files are remembered: they are replaced when a key is rotated. */
const REMEMBERED_MS = 1000;

/** `pathOf`: replaced in tests, as on a system without /proc. */
export function createGuard({ folder, links, own }: AccessRules, pathOf = ({ path }: Opened) => path) {
  const allowed = [folder, ...links.filter((link) => link !== 'hard')];
  const mayBeHardLinked = links.includes('hard');
  let roots: readonly string[] = [];
  let ownIds = new Set<string>();
  let readAt = Number.NEGATIVE_INFINITY;

  const isInside = (path: string): boolean => roots.some((root) => path.startsWith(root));

  async function mustBeInside(path: string, file: DiskFile): Promise<void> {
    if (isInside(path)) return;
    // The folder may have been mounted, or its own link changed, since.
    roots = await Promise.all(allowed.map(realFolder));
    if (isInside(path)) return;
    const target = Buffer.from(path, 'latin1').toString();
    throw refusal(
      file,
      `this is a link out of the watched folder, to ${target}`,
      `copy the file into the folder, or allow links to the folder that it is in: links: [${target.replace(/\/[^/]*$/, '') || '/'}]`,
    );
  }

  function isOwn({ dev, ino, nlink }: BigIntStats): boolean {
    const id = `${dev}:${ino}`;
    const isRecent = performance.now() - readAt < REMEMBERED_MS;
    if (isRecent && nlink === 1n && !ownIds.has(id)) return false;
    // A hit is checked again: a new file can get the inode of an own file that was replaced since.
    ownIds = new Set(own.flatMap(identityOf));
    readAt = performance.now();
    return ownIds.has(id);
  }

  const isHidden = (stats: BigIntStats): boolean => stats.nlink > 1n && !mayBeHardLinked && isOthers(stats);

  return {
    /** Where a link leads, to be opened instead of it. Throws a FileError if it must not be followed. */
    async follow(file: DiskFile): Promise<Buffer> {
      const target = await realPlace(file.location);
      await mustBeInside(target.toString('latin1'), file);
      return target;
    },
    /** Throws a FileError if the opened file must not be read. */
    async check(opened: Opened, file: DiskFile): Promise<void> {
      const { stats } = opened;
      await mustBeInside(pathOf(opened) ?? (await pathByName(stats, file)), file);
      if (isOwn(stats))
        throw refusal(
          file,
          'this is the key, the token, the journal or the configuration of labfeed, which is never filed',
          'remove it from the watched folder',
        );
      if (isHidden(stats))
        throw refusal(
          file,
          `the file has ${stats.nlink} names (hard links) and belongs to another user, so it may be a file from elsewhere`,
          'copy the file instead of linking it, or allow hard links: links: [hard]',
        );
    },
    /** Whether the check would pass, as far as is known without asking a disk or share. */
    admits(opened: Opened): boolean {
      const path = pathOf(opened);
      return path !== undefined && isInside(path) && !isOwn(opened.stats) && !isHidden(opened.stats);
    },
  };
}

const refusal = ({ path }: DiskFile, message: string, hint: string): FileError =>
  new FileError(`not read: ${message}`, { where: { file: path }, hint });

/** Root reads everything, so no file counts as its own. */
function isOthers({ uid }: BigIntStats): boolean {
  const user = process.geteuid?.();
  return user === 0 || BigInt(user ?? -1) !== uid;
}

function identityOf(path: string): string[] {
  try {
    const { dev, ino } = statSync(path, { bigint: true });
    return [`${dev}:${ino}`];
  } catch {
    return [];
  }
}

/** With a slash at its end, and one character per byte, as all paths here: a name need not be UTF-8. */
async function realFolder(folder: string): Promise<string> {
  try {
    const real = (await realPlace(folder)).toString('latin1');
    return real.endsWith('/') ? real : `${real}/`;
  } catch {
    // Nothing is inside a folder that does not exist.
    return '\n';
  }
}

/** The path of an open file without links, one character per byte, on systems without /proc. */
async function pathByName({ dev, ino }: BigIntStats, file: DiskFile): Promise<string> {
  const path = await realPlace(file.location);
  const named = await statOne(path);
  if (named instanceof Error) throw named;
  if (named.dev === dev && named.ino === ino) return path.toString('latin1');
  throw refusal(file, 'it was replaced while it was opened', 'labfeed reads it when it changes again');
}

/** Why this user may not read a file, and what would change that. */
interface Refusal {
  readonly reason: string;
  readonly hint: string;
}

/** The user that labfeed runs as. */
export interface Reader {
  readonly name: string;
  readonly uid: number | undefined;
  readonly groups: readonly number[];
}

/** For a file or folder that cannot be opened for lack of permission. Its own name and mode, if they can be seen. */
export function explainPermission(path: string, asFolder = false, reader: Reader = thisUser()): Refusal {
  // A share could hang, and the modes that it shows need not be those of its server.
  if (slowMountOf(path))
    return {
      reason: `the user ${reader.name} may not read it`,
      hint: `give ${reader.name} access: on the server of the share, or in its mount options`,
    };
  try {
    const { mode, uid, gid } = statSync(path);
    const [owner, group] = [nameIn('/etc/passwd', uid), nameIn('/etc/group', gid)];
    const octal = (mode & 0o7777).toString(8).padStart(4, '0');
    const reason = `the user ${reader.name} may not read it (owner ${owner}, group ${group}, mode ${octal})`;
    const chmod = (of: 'u' | 'g' | 'o') => `chmod ${of}+${asFolder ? 'rx' : 'r'} ${shellWord(path)}`;
    // The system looks at one class of permissions only: the owner's, else the group's, else those of all others.
    if (uid === reader.uid) return { reason, hint: `run: ${chmod('u')}` };
    if (reader.groups.includes(gid)) return { reason, hint: `run: ${chmod('g')}` };
    const join = `add ${reader.name} to the group ${group} (usermod -aG ${group} ${reader.name}) and restart labfeed`;
    const mayGroup = (mode & (asFolder ? 0o050 : 0o040)) === (asFolder ? 0o050 : 0o040);
    return { reason, hint: mayGroup ? `${join}, or run: ${chmod('o')}` : `run: ${chmod('o')}` };
  } catch {
    const folder = dirname(path);
    return {
      reason: `the user ${reader.name} may not enter its folder ${folder}`,
      hint: `let ${reader.name} enter it, for example with: chmod o+x ${shellWord(folder)}`,
    };
  }
}

const thisUser = (): Reader => ({
  name: userName(),
  uid: process.geteuid?.(),
  groups: [...(process.getgroups?.() ?? []), process.getegid?.() ?? -1],
});

/** The name of a user or group, else its number. */
function nameIn(file: '/etc/passwd' | '/etc/group', id: number): string {
  try {
    const line = readFileSync(file, 'utf8')
      .split('\n')
      .find((one) => one.split(':')[2] === String(id));
    return line?.split(':')[0] ?? String(id);
  } catch {
    return String(id);
  }
}
