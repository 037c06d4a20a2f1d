import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { PassThrough } from 'node:stream';
import { expect, onTestFinished, test, vi } from 'vitest';
import { useProxyOf } from '../../src/check/service.js';
import { loadConfig } from '../../src/config/load.js';
import { readKey } from '../../src/config/secrets.js';
import { chooseConfig, type SetupDeps, setUp } from '../../src/setup/command.js';
import { createFiles } from '../../src/setup/create.js';
import { askPerson } from '../../src/setup/questions.js';
import { runSandbox } from '../support/sandbox.js';
import { tempFolder } from '../support/temp-folder.js';
import { HAS_OPENSSL, makeAuthority, serveTls } from '../support/tls.js';

const SAMPLE = 'Sample: Lambda DNA\nDate: 2026-04-03\n\nWell\tA260 (AU)\nA1\t1.230\nA2\t1.198\n';

/** A service without restrictions. */
const unit = () => new Map<string, string>();

/** A notebook, the folder of an instrument with a sample, and an empty folder for the configuration. */
async function scene() {
  const { url, key } = await runSandbox(join(tempFolder(), 'notebook.db'));
  const folder = join(tempFolder(), 'nanodrop');
  const site = tempFolder();
  mkdirSync(folder);
  writeFileSync(join(folder, 'run-17.tsv'), SAMPLE);
  return { url, key, folder, site, file: join(site, 'labfeed.yaml') };
}

/** Everything below a folder, with contents. */
const tree = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .map((entry) => join(entry.parentPath, entry.name))
    .map((path) => `${path}: ${statSync(path).isFile() ? readFileSync(path, 'utf8') : ''}`)
    .sort();

/** A person who types these lines, then closes the terminal. */
async function converse(file: string, typed: readonly string[], more: Partial<SetupDeps> = {}) {
  const [input, output] = [new PassThrough(), new PassThrough()];
  let shown = '';
  output.on('data', (chunk: Buffer) => {
    shown += chunk;
  });
  input.end(typed.map((line) => `${line}\n`).join(''));
  const print = (text: string) => void output.write(`${text}\n`);
  const answers = askPerson({ input, output });
  const systemctl = () => new Error('there is no systemd');
  const error = await setUp({ file, answers, print, systemctl, ...more }).then(
    () => undefined,
    (reason: Error) => reason,
  );
  answers.close();
  return { shown, error };
}

test('asks, tests, previews and writes a configuration that the daemon accepts, with a private key file', async () => {
  const { url, key, folder, site, file } = await scene();
  const { shown, error } = await converse(file, [url, key, folder, '', '', '']);
  expect(error).toBeUndefined();
  const { problems, notebook, instruments, placeOf } = loadConfig(file);
  expect(problems).toEqual([]);
  expect(notebook).toMatchObject({ url });
  expect(instruments).toMatchObject([{ name: 'nanodrop', watch: folder, files: ['*.tsv'], parse: [{}] }]);
  expect(readKey(notebook?.key ?? {}, placeOf([]))).toBe(key);
  expect(statSync(join(site, 'api-key')).mode & 0o777).toBe(0o600);
  expect(readdirSync(site).sort()).toEqual(['api-key', 'labfeed.yaml']);
  expect(shown).toContain('title       Lambda DNA (nanodrop)');
  expect(shown).toContain('Start it: labfeed run');
  expect(shown + readFileSync(file, 'utf8')).not.toContain(key);
});

test('every question says why it asks and what Enter means', async () => {
  const { url, key, folder, site, file } = await scene();
  writeFileSync(join(site, 'api-key'), key);
  const systemctl = () => undefined;
  const { shown } = await converse(file, [url, '', folder, '', '', '', ''], { unit, systemctl });
  const questions = [...shown.matchAll(/^.+\?\n {2}.+\.\n\[(.+)\] > /gm)].map(([, preset]) => preset);
  expect(questions).toEqual([
    'Enter: http://127.0.0.1:7781',
    `hidden, Enter: the key in ${join(site, 'api-key')}`,
    expect.stringMatching(/^Enter: \//),
    `Enter: ${join(folder, 'run-17.tsv')}`,
    'Enter: nanodrop',
    'Enter: yes',
    'Enter: yes',
  ]);
});

test('a wrong answer is asked again, with the reason', async () => {
  const { url, key, folder, file } = await scene();
  writeFileSync(join(folder, 'empty.txt'), '');
  const { shown, error } = await converse(file, [
    'eln',
    'http://127.0.0.1:1',
    `${url}/wiki`,
    url,
    '',
    'wrong-key',
    'two words',
    key,
    join(folder, 'gone'),
    join(folder, 'run-17.tsv'),
    folder,
    'gone.tsv',
    'empty.txt',
    'run-17.tsv',
    'a/b',
    'drop',
    'perhaps',
    'no',
    'none',
    'plain',
    'yes',
  ]);
  expect(error).toBeUndefined();
  for (const reason of [
    'expected a URL\n  → write it with https://',
    'cannot connect to http://127.0.0.1:1: connection refused',
    'there is no notebook at this address',
    'this question has no default',
    'the API key was rejected',
    'a key has no spaces',
    'gone does not exist',
    'run-17.tsv is not a folder',
    'gone.tsv: no such file',
    'empty.txt: the file is empty',
    '"a/b" is not a valid name',
    'expected yes or no',
  ])
    expect(shown).toContain(reason);
  expect(loadConfig(file)).toMatchObject({ problems: [], instruments: [{ name: 'plain' }] });
  expect(loadConfig(file).instruments[0]?.parse).toBeUndefined();
});

test('a key that may only read is a wrong answer', async () => {
  const { url, key } = await runSandbox(join(tempFolder(), 'notebook.db'), 0, 'elabftw');
  const created = await fetch(`${url}/api/v2/apikeys`, {
    method: 'POST',
    headers: { authorization: key, 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'reader', canwrite: 0 }),
  });
  const readOnly = created.headers.get('location')?.split('/').at(-1) ?? '';
  const { shown, error } = await converse(join(tempFolder(), 'labfeed.yaml'), [url, readOnly]);
  expect(shown).toContain('"reader" may only read');
  expect(error?.message).toMatch(/nothing was changed/);
});

test.skipIf(!HAS_OPENSSL)(
  'the certificate of a private authority is asked for if the server needs it, and verified',
  async () => {
    const { url, key, folder, file } = await scene();
    const authority = makeAuthority();
    const secure = `https://127.0.0.1:${await serveTls(url, authority.sign('IP:127.0.0.1'))}`;
    const typed = [secure, '', secure, join(folder, 'run-17.tsv'), makeAuthority().file, authority.file, key, folder];
    const { shown, error } = await converse(file, [...typed, '', '', '']);
    expect(error).toBeUndefined();
    expect(shown).toContain('run-17.tsv has no certificate');
    expect(shown.match(/cannot connect to https/g)?.length).toBeGreaterThan(2);
    expect(loadConfig(file)).toMatchObject({ problems: [], notebook: { url: secure, ca: authority.file } });
    const hiding = () => new Map([['PrivateTmp', 'yes']]);
    const hidden = await converse(join(tempFolder(), 'labfeed.yaml'), [secure, authority.file], { unit: hiding });
    expect(hidden.shown).toContain(`the unit of the service hides ${authority.file}`);
  },
);

test('stopped at any question, setup changes nothing', async () => {
  const { url, key, folder, site, file } = await scene();
  const answers = [url, key, folder, '', '', ''];
  const before = [...tree(site), ...tree(folder)];
  for (let count = 0; count < answers.length; count++) {
    const { error } = await converse(join(site, 'new', 'labfeed.yaml'), answers.slice(0, count));
    expect(error?.message).toBe('setup was stopped; nothing was changed');
    expect([...tree(site), ...tree(folder)]).toEqual(before);
  }
  expect((await converse(join(site, 'new', 'labfeed.yaml'), answers)).error).toBeUndefined();
  expect(readdirSync(dirname(file))).toEqual(['new']);
});

test('an existing configuration is never changed; an instrument is added beside it if it includes that folder', async () => {
  const { folder, site, file } = await scene();
  const config = 'notebook: { url: "http://127.0.0.1:1", key: { env: KEY } }\n';
  const own = `${config}instruments: { nanodrop: { watch: /srv/other } }\n`;
  writeFileSync(file, own);
  expect((await converse(file, [])).error?.message).toContain('already exists, and setup does not change it');
  writeFileSync(file, `${own}include: "instruments.d/*.yaml"\n`);
  const before = readFileSync(file, 'utf8');
  const { shown, error } = await converse(file, [folder, '', 'nanodrop', '', '']);
  expect(error).toBeUndefined();
  expect(shown).toContain('there is already an instrument "nanodrop"');
  expect(readFileSync(file, 'utf8')).toBe(before);
  expect(readdirSync(site).sort()).toEqual(['instruments.d', 'labfeed.yaml']);
  const { problems, instruments } = loadConfig(file);
  expect(problems).toEqual([]);
  expect(instruments).toMatchObject([{ name: 'nanodrop' }, { name: 'nanodrop-2', watch: folder }]);
  writeFileSync(file, 'notebok: {}\n');
  expect((await converse(file, [])).error?.message).toContain('the configuration has');
});

test('another key in the key file is not overwritten', async () => {
  const { url, key, site, file } = await scene();
  writeFileSync(join(site, 'api-key'), 'somebody-elses');
  const { shown } = await converse(file, [url, key]);
  expect(shown).toContain('already contains another key');
  expect(shown).not.toContain('somebody-elses');
  expect(readFileSync(join(site, 'api-key'), 'utf8')).toBe('somebody-elses');
});

test('for the service, the key is a credential, and the service is started if the person agrees', async () => {
  const { url, key, folder, file, site } = await scene();
  const calls: string[] = [];
  const systemctl = (...args: readonly string[]) => void calls.push(args.join(' '));
  const typed = [url, key, folder, '', '', ''];
  // The terminal is closed at the last question, when everything is written.
  expect((await converse(file, typed, { unit, systemctl })).shown).toContain('Later: systemctl enable');
  expect(loadConfig(file)).toMatchObject({ problems: [], notebook: { key: { credential: 'api-key' } } });
  expect(statSync(join(site, 'api-key')).mode & 0o777).toBe(0o600);
  expect(statSync(file).mode & 0o777).toBe(0o644);
  expect(calls).toEqual([]);
  await converse(join(site, 'other', 'labfeed.yaml'), [...typed, 'yes'], { unit, systemctl });
  expect(calls).toEqual(['reset-failed', 'enable', 'reload-or-restart'].map((verb) => `${verb} labfeed.service`));
  const fails = () => new Error('unit is masked');
  const added = await converse(file, [folder, '', '', '', 'yes'], { unit, systemctl: fails });
  expect(added.error?.message).toBe('the configuration was written, but the service did not start: unit is masked');
});

const COMMAND = '{ path=/usr/bin/labfeed ; argv[]=/usr/bin/labfeed run --config /etc/labfeed/config.yaml ; pid=0 }';
const SERVICE = '/etc/labfeed/config.yaml';

test('root sets up the service if its unit uses this configuration; others set up the folder that they are in', () => {
  const folder = tempFolder();
  vi.spyOn(process, 'cwd').mockReturnValue(folder);
  const own = join(folder, 'labfeed.yaml');
  const installed = () => new Map([['ExecStart', COMMAND]]);
  expect(chooseConfig(undefined, true, installed)).toEqual({ file: SERVICE, unit: installed });
  expect(chooseConfig(SERVICE, true, installed)).toEqual({ file: SERVICE, unit: installed });
  expect(chooseConfig(`${SERVICE}.old`, true, installed)).toEqual({ file: `${SERVICE}.old` });
  // Without a unit there is no service, and nobody else may start it.
  expect(chooseConfig(undefined, true, unit)).toEqual({ file: SERVICE });
  expect(chooseConfig(SERVICE, false, installed)).toEqual({ file: SERVICE });
  writeFileSync(own, '');
  expect(chooseConfig(undefined, false, installed)).toEqual({ file: own });
  expect(chooseConfig('labfeed.yaml', true, installed)).toEqual({ file: own });
  expect(chooseConfig(undefined, true, installed)).toEqual({ file: SERVICE, unit: installed, other: own });
});

test('a configuration in this folder, which other commands would use, is mentioned first', async () => {
  const { shown } = await converse(join(tempFolder(), 'config.yaml'), [], { other: '/home/ada/labfeed.yaml' });
  expect(shown).toMatch(
    /^note: in this folder, the other commands use \/home\/ada\/labfeed\.yaml\n.*--config \S+config\.yaml/,
  );
});

test('a folder that the unit hides is refused until the unit has a bind mount for it', async () => {
  const { url, key, folder, file } = await scene();
  const hiding = new Map([['PrivateTmp', 'yes']]);
  const { shown } = await converse(file, [url, key, folder], { unit: () => hiding });
  expect(shown).toContain(`the unit of the service hides ${folder} (PrivateTmp=yes)`);
  expect(shown).toContain(`run systemctl edit labfeed, add [Service] and BindReadOnlyPaths=-${folder}, and restart it`);
  const bound = () => new Map([...hiding, ['BindReadOnlyPaths', `${folder}:${folder}:rbind`]]);
  expect((await converse(file, [url, key, folder, '', '', ''], { unit: bound })).error).toBeUndefined();
});

test('a folder that the user of the service may not read is refused, with the command that grants access', async ({
  skip,
}) => {
  if (process.geteuid?.() !== 0) skip('only root can try as another user');
  const { url, key, folder, file } = await scene();
  const user = () => new Map([['User', 'nobody']]);
  const ask = async (...typed: string[]) => (await converse(file, [url, key, ...typed], { unit: user })).shown;
  chmodSync(dirname(folder), 0o700);
  expect(await ask(folder)).toContain(
    `the service runs as the user nobody, who may not enter ${dirname(folder)}, and so cannot read ${folder}\n  → give nobody access: setfacl -m u:nobody:x ${dirname(folder)}\n`,
  );
  chmodSync(dirname(folder), 0o711);
  chmodSync(folder, 0o711);
  expect(await ask(folder)).toContain(
    `who may not read ${folder}\n  → give nobody access: setfacl -R -m u:nobody:rX ${folder}\n`,
  );
  chmodSync(folder, 0o755);
  const sample = join(folder, 'run-17.tsv');
  chmodSync(sample, 0o600);
  expect(await ask(folder, sample)).toContain(
    `who may not read ${sample}\n  → give nobody access: setfacl -m u:nobody:rX ${sample}\n`,
  );
  // The groups of the unit count, too.
  chmodSync(folder, 0o750);
  const member = () => new Map([...user(), ['SupplementaryGroups', 'root']]);
  chmodSync(sample, 0o640);
  expect((await converse(file, [url, key, folder, '', '', ''], { unit: member })).error).toBeUndefined();
});

test('requests use the proxy of the service, not the one of the shell', async () => {
  const { url, key, folder, file } = await scene();
  vi.stubEnv('HTTPS_PROXY', 'http://secret@127.0.0.1:1');
  onTestFinished(() => void vi.unstubAllEnvs());
  const { shown } = await converse(file, [url, key, folder], { unit });
  expect(shown).toContain('note: HTTPS_PROXY is set in this shell, but not for the service');
  expect(shown).toContain('run systemctl edit labfeed, add [Service] and Environment=HTTPS_PROXY=…');
  expect(shown).not.toContain('secret');
  const env: NodeJS.ProcessEnv = { https_proxy: 'http://a', NO_PROXY: 'b', PATH: '/bin' };
  const given = new Map([['Environment', 'UV_THREADPOOL_SIZE=16 HTTPS_PROXY=http://c "NO_PROXY=d e"']]);
  expect(useProxyOf(given, env)).toEqual([]);
  expect(env).toEqual({ HTTPS_PROXY: 'http://c', NO_PROXY: 'd e', PATH: '/bin' });
  expect(useProxyOf(new Map(), env)).toEqual(['HTTPS_PROXY', 'NO_PROXY']);
  expect(env).toEqual({ PATH: '/bin' });
});

test('a team that forces templates is mentioned before anything is written', async () => {
  const { folder, file } = await scene();
  const { url, key } = await runSandbox(join(tempFolder(), 'notebook.db'), 0, 'elabftw', { forcesTemplate: true });
  const { shown } = await converse(file, [url, key, folder, '', '']);
  expect(shown).toContain('note: nanodrop: the team creates experiments from templates only');
});

test('whatever the umask, the service can read the folders and the configuration', () => {
  const before = process.umask(0o077);
  onTestFinished(() => void process.umask(before));
  const folder = tempFolder();
  const path = join(folder, 'etc', 'instruments.d', 'a.yaml');
  createFiles([{ path, text: 'new', mode: 0o644 }], () => undefined);
  const modes = [path, join(folder, 'etc', 'instruments.d'), join(folder, 'etc')].map(
    (one) => statSync(one).mode & 0o777,
  );
  expect(modes).toEqual([0o644, 0o755, 0o755]);
});

test('all files are created or none, none is overwritten, and an invalid draft is not put in place', () => {
  const folder = tempFolder();
  const [key, config] = [join(folder, 'new', 'api-key'), join(folder, 'config.yaml')];
  const files = [key, config].map((path) => ({ path, text: 'new', mode: 0o600 }));
  const refuse = () => {
    throw new Error('invalid');
  };
  expect(() => createFiles(files, refuse)).toThrow('invalid');
  expect(tree(folder)).toEqual([]);
  // Somebody else creates the configuration meanwhile.
  expect(() => createFiles(files, () => writeFileSync(config, 'old'))).toThrow(/nothing was written: EEXIST/);
  expect(tree(folder)).toEqual([`${config}: old`]);
});

test('a folder that this user cannot write to is reported before anything is asked', async ({ skip }) => {
  if (process.geteuid?.() === 0) skip('root may write everywhere');
  const folder = tempFolder();
  chmodSync(folder, 0o500);
  const { shown, error } = await converse(join(folder, 'labfeed.yaml'), []);
  expect(error?.message).toContain('cannot write to');
  expect(shown).toBe('');
});
