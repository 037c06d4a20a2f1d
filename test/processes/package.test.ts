import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';

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

test('a global installation has the versions that were tested', {
  timeout: 240_000,
}, async () => {
  const folder = await mkdtemp(join(tmpdir(), 'labfeed-package-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  // The build is there already, and building it again would disturb the other tests.
  await npm(ROOT, 'pack', '--silent', '--ignore-scripts', '--pack-destination', folder);
  const [tarball = ''] = await readdir(folder);
  const prefix = join(folder, 'prefix');
  await npm(ROOT, 'install', '--global', '--silent', '--no-audit', '--prefix', prefix, join(folder, tarball));
  const installed = join(prefix, 'lib/node_modules/labfeed');
  const versions = await installedVersions(installed, '');
  const tested = new Map((await lockedPackages()).map(([name, { version }]) => [name, version]));
  expect(versions.length).toBeGreaterThan(50);
  expect(versions.filter(([name, version]) => tested.get(name) !== version)).toEqual([]);
  expect(existsSync(join(installed, 'npm-shrinkwrap.json'))).toBe(true);
  const { stdout } = await promisify(execFile)(join(prefix, 'bin/labfeed'), ['--version']);
  expect(stdout).toMatch(/^\d+\.\d+\.\d+/);
});

interface Licence {
  readonly license?: { readonly id?: string; readonly name?: string };
  readonly expression?: string;
}

interface Materials {
  readonly components: readonly { readonly name: string; readonly version: string; readonly licenses?: Licence[] }[];
}

const idOf = ({ license, expression }: Licence): string => license?.id ?? license?.name ?? expression ?? 'none';

/** Paths below `folder`, as in the lock file. */
async function installedVersions(folder: string, inside: string): Promise<[name: string, version: string][]> {
  const modules = join(folder, inside, 'node_modules');
  if (!existsSync(modules)) return [];
  const names = (await readdir(modules)).filter((name) => !name.startsWith('.'));
  const scoped = names.map(async (name) =>
    name.startsWith('@') ? (await readdir(join(modules, name))).map((inner) => `${name}/${inner}`) : [name],
  );
  const found = (await Promise.all(scoped)).flat().map(async (name): Promise<[string, string][]> => {
    const path = join(inside, 'node_modules', name);
    const { version } = JSON.parse(await readFile(join(folder, path, 'package.json'), 'utf8'));
    return [[path, version], ...(await installedVersions(folder, path))];
  });
  return (await Promise.all(found)).flat();
}
