import { spawnSync } from 'node:child_process';
import { dirname } from 'node:path';
import type { Instrument, LoadedConfig } from '../config/load.js';
import { wordsOf } from '../config/settings.js';
import { slowMountOf } from '../system/disk.js';
import { joinWords, shellWord } from '../text.js';
import type { Finding } from './folders.js';

/** The properties of the installed service, as systemd shows them. Empty without such a unit, or without systemd. */
export type Unit = ReadonlyMap<string, string>;

const PROPERTIES = [
  ...['ExecStart', 'User', 'Group', 'SupplementaryGroups', 'Environment'],
  ...['PrivateTmp', 'ProtectHome', 'ProtectSystem', 'ReadWritePaths', 'BindPaths', 'BindReadOnlyPaths'],
];

export function readUnit(): Unit {
  const args = ['show', 'labfeed.service', `--property=${PROPERTIES.join()}`];
  const { stdout } = spawnSync('systemctl', args, { encoding: 'utf8', timeout: 5000 });
  return new Map((stdout ?? '').split('\n').map((line) => line.split(/=(.*)/s, 2) as [string, string]));
}

/** Whether the service uses this configuration. */
export const runsConfig = (unit: Unit, file: string): boolean =>
  unit.get('ExecStart')?.includes(` --config ${file} `) ?? false;

/** What the service needs to do with a path: list a folder, read a file, or pass through a folder. */
type Need = 'list' | 'read' | 'enter';

const TESTS: Readonly<Record<Need, string>> = {
  list: '[ -r "$path" ] && [ -x "$path" ]',
  read: '[ -r "$path" ]',
  enter: '[ -x "$path" ]',
};

/** Of these paths, those that the user of the service may not use. Only root can test this. */
function refused(unit: Unit, need: Need, paths: readonly string[]): string[] {
  const user = unit.get('User');
  if (!user || process.geteuid?.() !== 0 || paths.length === 0) return [];
  const ids = (option: string): string => spawnSync('id', [option, user], { encoding: 'utf8' }).stdout?.trim() ?? '';
  const groups = [...ids('-G').split(' '), ...(unit.get('SupplementaryGroups') || '').split(' ')].filter(Boolean);
  const as = [`--reuid=${user}`, `--regid=${unit.get('Group') || ids('-g')}`, `--groups=${groups.join()}`];
  const script = `for path; do ${TESTS[need]} || printf '%s\\0' "$path"; done`;
  const { stdout, status } = spawnSync('setpriv', [...as, 'sh', '-c', script, 'sh', ...paths], {
    cwd: '/',
    encoding: 'utf8',
    timeout: 10_000,
  });
  return status === 0 ? stdout.split('\0').filter(Boolean) : [];
}

/** Why the service cannot read a path that root can read; undefined if it can. */
export function whyRefused(unit: Unit, need: 'list' | 'read', path: string): Required<Finding> | undefined {
  return explainHidden(unit, path) ?? refused(unit, need, [path]).map((one) => explainRefusal(unit, need, one))[0];
}

function explainRefusal(unit: Unit, need: 'list' | 'read', path: string): Required<Finding> {
  const user = unit.get('User') ?? '';
  const [closed] = refused(unit, 'enter', ancestors(path));
  const text = `the service runs as the user ${user}, who may not ${closed ? `enter ${closed}, and so cannot ` : ''}read ${path}`;
  if (slowMountOf(path))
    return { level: 'wrong', text, hint: `give ${user} access: on the server of the share, or in its mount options` };
  const rights = closed ? `-m u:${user}:x` : `${need === 'list' ? '-R ' : ''}-m u:${user}:rX`;
  return { level: 'wrong', text, hint: `give ${user} access: setfacl ${rights} ${shellWord(closed ?? path)}` };
}

/** From the root down, without the path itself. */
function ancestors(path: string): string[] {
  const above = dirname(path);
  return above === path ? [] : [...ancestors(above), above];
}

const isBelow = (path: string, folder: string): boolean =>
  path === folder || path.startsWith(`${folder.replace(/\/$/, '')}/`);

/** The setting of the unit that hides a path from the service. */
function hiddenBy(unit: Unit, path: string): 'PrivateTmp' | 'ProtectHome' | undefined {
  // PATH, or PATH:TARGET:OPTIONS, with a dash before it if it may be missing.
  const bound = `${unit.get('BindPaths') ?? ''} ${unit.get('BindReadOnlyPaths') ?? ''}`.split(/\s+/).filter(Boolean);
  if (bound.some((one) => isBelow(path, one.replace(/^[-+]+/, '').replace(/:.*/, '')))) return undefined;
  const isIn = (...folders: string[]): boolean => folders.some((folder) => isBelow(path, folder));
  if (!/^(no|)$/.test(unit.get('PrivateTmp') ?? '') && isIn('/tmp', '/var/tmp')) return 'PrivateTmp';
  if (/^(yes|tmpfs)$/.test(unit.get('ProtectHome') ?? '') && isIn('/home', '/root', '/run/user')) return 'ProtectHome';
  return undefined;
}

function explainHidden(unit: Unit, path: string): Required<Finding> | undefined {
  const setting = hiddenBy(unit, path);
  if (!setting) return undefined;
  return {
    level: 'wrong',
    text: `the unit of the service hides ${path} (${setting}=${unit.get(setting)})`,
    hint: `use another folder, or ${editUnit(`BindReadOnlyPaths=-${path}`)}`,
  };
}

export const editUnit = (setting: string): string =>
  `run systemctl edit labfeed, add [Service] and ${setting}, and restart it`;

/** What the service cannot do that the person who runs this command can. `listed`: folders that this person can read. */
export function checkService(
  { instruments, notebook }: Pick<LoadedConfig, 'notebook'> & { readonly instruments: readonly Used[] },
  unit: Unit,
  listed: readonly string[],
): Finding[] {
  const hidden = new Map(
    instruments.flatMap(({ watch }) => {
      const finding = explainHidden(unit, watch);
      return finding ? [[watch, finding]] : [];
    }),
  );
  const visible = [...new Set(listed)].filter((path) => !hidden.has(path));
  return [
    ...hidden.values(),
    ...refused(unit, 'list', visible).map((path) => explainRefusal(unit, 'list', path)),
    ...[notebook?.ca].flatMap((ca) => (ca && whyRefused(unit, 'read', ca)) || []),
    ...checkWriting(instruments, unit),
  ];
}

type Used = Pick<Instrument, 'source' | 'watch'>;

/** Whether the service may write where files are moved or deleted. */
function checkWriting(instruments: readonly Used[], unit: Unit): Finding[] {
  if (unit.get('ProtectSystem') !== 'strict') return [];
  const folders = instruments.flatMap(({ source, watch }) =>
    source === 'keep' ? [] : typeof source === 'string' ? [watch] : [watch, source.move],
  );
  const writable = (unit.get('ReadWritePaths') ?? '').split(' ').map((path) => path.replace(/^[-+]+/, ''));
  const isWritable = (folder: string): boolean => writable.some((path) => path !== '' && isBelow(folder, path));
  const missing = [...new Set(folders)].filter((folder) => !isWritable(folder));
  if (missing.length === 0) return [];
  return [
    {
      level: 'wrong',
      text: `the service labfeed may not write to ${joinWords(missing)}, so it can neither move nor delete files there`,
      hint: editUnit(`ReadWritePaths=${missing.map((path) => `-${path}`).join(' ')}`),
    },
  ];
}

const PROXY_VARIABLE = /^(https?|no)_proxy$/i;

/**
 * Replaces the proxy of this shell by the one of the service, so that requests go the same way. Returns the variables that
 * only the shell has.
 */
export function useProxyOf(unit: Unit, env: NodeJS.ProcessEnv = process.env): string[] {
  const own = new Map(
    (wordsOf(unit.get('Environment') ?? '') ?? [])
      .map((word) => word.split(/=(.*)/s, 2) as [string, string])
      .filter(([name]) => PROXY_VARIABLE.test(name)),
  );
  const inShell = Object.keys(env).filter((name) => PROXY_VARIABLE.test(name) && env[name]);
  for (const name of inShell) delete env[name];
  for (const [name, value] of own) env[name] = value;
  const known = new Set([...own.keys()].map((name) => name.toUpperCase()));
  return [...new Set(inShell.map((name) => name.toUpperCase()))].filter((name) => !known.has(name));
}
