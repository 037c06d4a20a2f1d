import { lstatSync, readFileSync, readlinkSync } from 'node:fs';
import { dirname, resolve } from 'node:path';

/**
 * What is mounted where, and what should be. Everything here is read from the tables of the system, never from a share:
 * those can hang.
 */
export interface Mount {
  /** Another one if something else is mounted at the same point. */
  readonly id: string;
  readonly point: string;
  /** The type of a network share, such as `nfs4`: its files can be changed by other machines. */
  readonly share: string | undefined;
  /** Whether calls may never return: a share, or the program behind a FUSE file system. */
  readonly mayHang: boolean;
  /** The server and folder of a share, which are the same on every machine. */
  readonly source?: string | undefined;
}

/** Replaced in tests. */
export interface MountTables {
  /** What is mounted: /proc/self/mountinfo. */
  mountinfo(): string;
  /** What should be mounted: /etc/fstab. */
  fstab(): string;
}

const systemTables: MountTables = {
  mountinfo: () => readTable('/proc/self/mountinfo'),
  fstab: () => readTable('/etc/fstab'),
};

function readTable(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

/** Their files can be changed by other machines: they send no events for that, and SQLite cannot rely on their locks. */
const NETWORK_TYPES: ReadonlySet<string> = new Set([
  ...[
    'nfs',
    'nfs4',
    'cifs',
    'smb3',
    'smbfs',
    '9p',
    'afs',
    'ceph',
    'coda',
    'ncpfs',
    'lustre',
    'gpfs',
    'beegfs',
    'panfs',
  ],
  ...['vboxsf', 'vmhgfs', 'virtiofs', 'orangefs', 'gfs2', 'ocfs2', 'acfs'],
  // With FUSE.
  ...['sshfs', 'rclone', 's3fs', 'goofys', 'gcsfuse', 'blobfuse', 'blobfuse2', 'juicefs', 'seaweedfs'],
  ...['glusterfs', 'ceph-fuse', 'moosefs', 'mfs', 'lizardfs', 'saunafs', 'cvmfs2', 'onedata'],
  ...['davfs', 'davfs2', 'curlftpfs', 'smbnetfs', 'gvfsd-fuse', 'kio-fuse', 'afpfs', 'portal', 'vmhgfs-fuse'],
]);

/** The source of a remote FUSE mount whose type is unknown: `https://…`, `//server/share`, `user@host:/path`. */
const REMOTE_SOURCE = /^[a-z][a-z0-9+.-]*:\/\/|^\/\/|^[^/]+@[^/]+:/i;

/** `host:/folder`, `//server/share` or a URL. Others, such as the tag of a virtual machine, mean something else elsewhere. */
const NAMES_SERVER = /^\/\/|^[^/]+:/;

const ROOT: Mount = { id: '', point: '/', share: undefined, mayHang: false };

/** A mount point of autofs waits for its mount. */
const AUTOFS = 'autofs';

interface Line extends Mount {
  readonly parent: string;
  readonly device: string;
  /** Which folder of the file system is mounted. */
  readonly root: string;
  readonly type: string;
}

function parseLine(line: string): Line[] {
  const [mount = '', filesystem = ''] = line.split(' - ');
  const [id = '', parent = '', device = '', root = '', point = ''] = mount.split(' ').map(unescaped);
  const [type = '', source = ''] = filesystem.split(' ');
  if (!point.startsWith('/')) return [];
  const isFuse = type.startsWith('fuse');
  const name = type.replace(/^fuse\./, '');
  const share = NETWORK_TYPES.has(name) || (isFuse && REMOTE_SOURCE.test(source)) ? name : undefined;
  // Linux reuses both numbers, but hardly ever the same pair.
  return [
    {
      id: `${id} ${device}`,
      parent,
      device,
      root,
      point,
      type,
      share,
      mayHang: share !== undefined || isFuse || type === AUTOFS,
      source: share !== undefined && NAMES_SERVER.test(source) ? `${source} ${root}` : undefined,
    },
  ];
}

/** Spaces in the tables are written as `\040`. */
const unescaped = (text: string): string =>
  text.replace(/\\([0-7]{3})/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 8)));

/** All mounts, without folders that are mounted on themselves, as systemd does for `ReadWritePaths=`. */
export function listMounts(tables: MountTables = systemTables): readonly (Mount & Pick<Line, 'type'>)[] {
  const lines = tables.mountinfo().split('\n').flatMap(parseLine);
  const byId = new Map(lines.map((line) => [line.id.split(' ')[0], line]));
  return lines.filter(({ parent, device, root, point }) => {
    const above = byId.get(parent);
    return !above || above.device !== device || join(above.root, point.slice(lengthOf(above.point))) !== root;
  });
}

const lengthOf = (point: string): number => (point === '/' ? 0 : point.length);
const join = (folder: string, below: string): string => (folder === '/' ? below || '/' : folder + below);
const isBelow = (path: string, point: string): boolean =>
  path === point || point === '/' || path.startsWith(`${point}/`);

/** The mount of a path without links. */
function nearest(path: string, mounts: readonly Mount[]): Mount {
  let best = ROOT;
  // Of several at the same point, the last one hides the others.
  for (const mount of mounts) if (isBelow(path, mount.point) && mount.point.length >= best.point.length) best = mount;
  return best;
}

/** As many as Linux follows. */
const MAX_LINKS = 40;

/** The mount that a path is on. Links are followed only outside of shares, where reading them cannot hang. */
export function mountOf(path: string, mounts: readonly Mount[] = listMounts()): Mount {
  let here = '/';
  let left = namesIn(resolve(path));
  for (let links = 0; left.length > 0; ) {
    const [name = '', ...rest] = left;
    const next = here === '/' ? `/${name}` : `${here}/${name}`;
    const mount = nearest(next, mounts);
    if (mount.mayHang || links > MAX_LINKS) return mount;
    const target = linkTarget(next);
    left = target === undefined ? rest : [...namesIn(target), ...rest];
    if (target === undefined) here = next;
    else {
      links += 1;
      if (target.startsWith('/')) here = '/';
    }
    while (left[0] === '..') {
      here = dirname(here);
      left = left.slice(1);
    }
  }
  return nearest(here, mounts);
}

const namesIn = (path: string): string[] => path.split('/').filter((name) => name !== '' && name !== '.');

function linkTarget(path: string): string | undefined {
  try {
    return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() ? readlinkSync(path) : undefined;
  } catch {
    return undefined;
  }
}

/** Where a folder was when it was last seen. */
export interface SeenFolder {
  /** The mount point of its file system. */
  readonly point: string;
  readonly isEmpty: boolean;
}

/** Remembers folders across restarts. */
export interface FolderMemory {
  lastSeen(folder: string): Promise<SeenFolder | undefined>;
  see(folder: string, seen: SeenFolder): Promise<void>;
}

/**
 * The mount point that a folder was on when it was last seen, or should be on by /etc/fstab, if nothing is mounted there
 * now. What is in the folder then says nothing about the files on the share.
 */
export async function missingMount(
  folder: string,
  memory?: FolderMemory,
  tables: MountTables = systemTables,
): Promise<string | undefined> {
  const before = await memory?.lastSeen(folder);
  const mounted = new Set(listMounts(tables).flatMap(({ type, point }) => (type === AUTOFS ? [] : point)));
  if (before && before.point !== '/' && !mounted.has(before.point)) return before.point;
  const wanted = tables.fstab().split('\n').flatMap(fstabPoint);
  const [closest] = wanted.filter((point) => isBelow(folder, point)).sort((a, b) => b.length - a.length);
  return closest === undefined || closest === '/' || mounted.has(closest) ? undefined : closest;
}

/** Without mounts that are made only on request. */
function fstabPoint(line: string): string[] {
  const [source = '', point = '', , options = ''] = line.trim().split(/\s+/);
  const isOptional = options.split(',').includes('noauto');
  return source.startsWith('#') || !point.startsWith('/') || isOptional
    ? []
    : [unescaped(point).replace(/(.)\/$/, '$1')];
}
