import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmod, copyFile, mkdir, readdir, readFile, realpath, symlink, utimes } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { tempFolder } from '../support/temp-folder.js';

/*
 * What is published, and what a global installation of it contains.
 */

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** Permissive licences, which ask for no more than a notice. */
const ALLOWED = ['0BSD', 'Apache-2.0', 'BlueOak-1.0.0', 'BSD-2-Clause', 'BSD-3-Clause', 'ISC', 'MIT'];
/** Optional, and used unchanged: its licence concerns only changes to its own files. */
const ALLOWED_UNCHANGED: Readonly<Record<string, string>> = { '@resvg/resvg-js': 'MPL-2.0' };

/** Its script only checks that the binary in the package suits this computer. */
const MAY_RUN_AT_INSTALL = ['@photostructure/sqlite'];

interface Locked {
  readonly version: string;
  readonly resolved?: string;
  readonly integrity?: string;
  readonly dev?: boolean;
  readonly devOptional?: boolean;
  /** Present if it is only installed on some machines. */
  readonly os?: readonly string[];
  readonly license?: string;
  readonly hasInstallScript?: boolean;
}

async function npm(folder: string, ...args: readonly string[]): Promise<string> {
  const { stdout } = await promisify(execFile)('npm', [...args], { cwd: folder, maxBuffer: 64 * 1024 * 1024 });
  return stdout;
}

async function lockedPackages(): Promise<[name: string, locked: Locked][]> {
  const lock = JSON.parse(await readFile(join(ROOT, 'npm-shrinkwrap.json'), 'utf8'));
  return Object.entries<Locked>(lock.packages).filter(([name]) => name !== '');
}

const isRuntime = ({ dev, devOptional }: Locked): boolean => !dev && !devOptional;

test('the lock file names no registry, and every package in it has a checksum', async () => {
  const packages = await lockedPackages();
  expect(packages.length).toBeGreaterThan(100);
  expect(packages.filter(([, { resolved }]) => resolved !== undefined)).toEqual([]);
  expect(packages.filter(([, { integrity }]) => !integrity?.startsWith('sha512-'))).toEqual([]);
});

test('no package that labfeed needs to run compiles or downloads anything when it is installed', async () => {
  const packages = (await lockedPackages()).filter(([, locked]) => isRuntime(locked) && locked.hasInstallScript);
  expect(packages.map(([name]) => name.replace(/^.*node_modules\//, ''))).toEqual(MAY_RUN_AT_INSTALL);
});

test('the bill of materials lists every package that labfeed needs to run, with a permissive licence', async () => {
  // All of them: `--omit dev` also leaves out packages that both labfeed and its tests need.
  const { components } = JSON.parse(await npm(ROOT, 'sbom', '--sbom-format', 'cyclonedx')) as Materials;
  const licences = new Map(
    components.map(({ name, version, licenses }) => [`${name}@${version}`, licenses?.map(idOf)]),
  );
  const needed = (await lockedPackages()).filter(([, locked]) => isRuntime(locked));
  const listed = needed.map(([path, { version, os, license }]) => {
    const name = path.replace(/^.*node_modules\//, '');
    const ids = licences.get(`${name}@${version}`) ?? (os && license ? [license] : []);
    return { name, licences: ids };
  });
  const unchanged = (name: string) =>
    Object.entries(ALLOWED_UNCHANGED).find(([allowed]) => name === allowed || name.startsWith(`${allowed}-`))?.[1];
  const isAllowed = ({ name, licences: ids }: { name: string; licences: readonly string[] }) =>
    ids.length > 0 && ids.every((id) => ALLOWED.includes(id) || id === unchanged(name));
  expect(listed.filter((one) => !isAllowed(one))).toEqual([]);
});

/** Node of each supported version; the running one is used as it is, the others come from the registry. */
async function nodeOf(major: number): Promise<string> {
  if (process.versions.node.startsWith(`${major}.`)) return process.execPath;
  const folder = tempFolder();
  const name = `node-${process.platform}-${process.arch}`;
  await npm(folder, 'install', '--silent', '--no-audit', '--prefix', folder, `${name}@${major}`);
  return join(folder, 'node_modules', name, 'bin/node');
}

test.each([20, 22, 24])(
  'a global installation with Node %i needs no compiler, suits the engine, and files the samples',
  async (major) => {
    const folder = tempFolder();
    const [bin, prefix] = [join(folder, 'bin'), join(folder, 'prefix')];
    // All the programs there are.
    await mkdir(bin);
    await symlink(await nodeOf(major), join(bin, 'node'));
    await symlink('/bin/sh', join(bin, 'sh'));
    const env = { ...process.env, PATH: bin };
    const run = async (...command: string[]) => promisify(execFile)(join(bin, 'node'), command, { cwd: folder, env });

    const npmCli = await realpath((await promisify(execFile)('which', ['npm'])).stdout.trim());
    const tarball = await packInto(ROOT, folder);
    const { stderr } = await run(npmCli, 'install', '--global', '--no-audit', '--prefix', prefix, tarball);
    expect(stderr).not.toMatch(/EBADENGINE|deprecated|gyp ERR/i);
    const { stdout } = await run(join(prefix, 'bin/labfeed'), 'demo', '--once', '--port', '0');
    expect(stdout).toContain('filed');
  },
);

/** The build must be there: building it again would disturb other tests. */
async function packInto(project: string, folder: string): Promise<string> {
  await mkdir(folder, { recursive: true });
  const [packed] = JSON.parse(
    await npm(project, 'pack', '--json', '--ignore-scripts', '--pack-destination', folder),
  ) as { filename: string }[];
  return join(folder, packed?.filename ?? '');
}

test('two packages of one commit have the same bytes, wherever and whenever they are built', async () => {
  const folder = tempFolder();
  const copy = join(folder, 'another place');
  const { stdout } = await promisify(execFile)('git', ['ls-files', '-z'], { cwd: ROOT });
  // Times and permissions are those of another checkout, made with another umask.
  for (const path of stdout.split('\0').filter((name) => name !== '' && !name.startsWith('test/'))) {
    await mkdir(dirname(join(copy, path)), { recursive: true, mode: 0o700 });
    await copyFile(join(ROOT, path), join(copy, path));
    await chmod(join(copy, path), 0o664);
    await utimes(join(copy, path), 1e9, 1e9);
  }
  await symlink(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
  await npm(copy, 'run', '--silent', 'build');
  const [here, there] = [await packInto(ROOT, join(folder, '1')), await packInto(copy, join(folder, '2'))];
  expect(
    createHash('sha256')
      .update(await readFile(there))
      .digest('hex'),
  ).toBe(
    createHash('sha256')
      .update(await readFile(here))
      .digest('hex'),
  );
});

test('the package has no source maps, and mentions none', async () => {
  const folder = tempFolder();
  await promisify(execFile)('tar', ['-xzf', await packInto(ROOT, folder), '-C', folder]);
  const names = (await readdir(join(folder, 'package'), { recursive: true })).filter((name) =>
    /\.(js|map)$/.test(name),
  );
  expect(names.length).toBeGreaterThan(100);
  const isMapped = async (name: string) =>
    name.endsWith('.map') || (await readFile(join(folder, 'package', name), 'utf8')).includes('sourceMappingURL=');
  const mapped = await Promise.all(names.map(async (name) => ((await isMapped(name)) ? [name] : [])));
  expect(mapped.flat()).toEqual([]);
});

interface Licence {
  readonly license?: { readonly id?: string; readonly name?: string };
  readonly expression?: string;
}

interface Materials {
  readonly components: readonly { readonly name: string; readonly version: string; readonly licenses?: Licence[] }[];
}

const idOf = ({ license, expression }: Licence): string => license?.id ?? license?.name ?? expression ?? 'none';
