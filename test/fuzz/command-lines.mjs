import { execFile } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';

/*
 * Command lines that a person may mistype, and worse.
 */

const CLI = fileURLToPath(new URL('../../dist/cli.js', import.meta.url));

/** Without those that serve until they are stopped, and `recover`, which waits for the notebook. */
const COMMANDS = [
  'learn',
  'setup',
  'try',
  'check',
  'status',
  'jobs',
  'show',
  'why',
  'retry',
  'refile',
  'adopt',
  'ignore',
  'erase',
  'backfill',
  'audit',
  'backup',
  'comments',
  'keys',
  'schema',
  'completion',
  'runn',
  '',
  '--',
  '-',
];
const OPTIONS = [
  '--config',
  'labfeed.yaml',
  'nowhere.yaml',
  '--json',
  '--debug',
  '--help',
  '-h',
  '--version',
  '--held',
  '--all',
  '--since',
  '2026-02-30',
  '--ids',
  '1-',
  '9-1',
  '--safe',
  '--instrument',
  'reader',
  '--limit',
  '-1',
  '1e9',
  'NaN',
  '--state',
  'donee',
  '--plot',
  '--html',
  '/dev/null',
  '/proc/self/mem',
  '.',
  '..',
  '',
  ' ',
  '\u001B[2J',
  '-x',
  '--nonsense=1',
  'list',
  '0',
  '99999999999999999999',
  "'",
  '"',
  '$(true)',
  '*',
  'é',
];

const arbitrary = fc.record({
  command: fc.constantFrom(...COMMANDS),
  args: fc.array(fc.oneof({ weight: 5, arbitrary: fc.constantFrom(...OPTIONS) }, fc.string({ maxLength: 20 })), {
    maxLength: 6,
  }),
});

const STATUSES = [0, 1, 2, 78];

function makeFolder(folder) {
  mkdirSync(join(folder, 'data'), { recursive: true });
  writeFileSync(join(folder, 'key'), 'key', { mode: 0o600 });
  writeFileSync(
    join(folder, 'labfeed.yaml'),
    'notebook: { url: "http://127.0.0.1:1", key: { file: key } }\njournal: journal.db\nstatus: false\ninstruments:\n  reader: { watch: data }\n',
  );
}

export function createCase(seed) {
  const [{ command, args }] = fc.sample(arbitrary, { seed, numRuns: 1, noBias: true });
  const argv = [command, ...args.map((arg) => arg.replaceAll('\0', ''))];
  return {
    what: `labfeed ${JSON.stringify(argv)}`,
    perform(folder) {
      makeFolder(folder);
      return new Promise((resolve) => {
        const child = execFile(
          process.execPath,
          [CLI, ...argv],
          { cwd: folder, maxBuffer: 1e8 },
          (error, _stdout, stderr) => {
            const status = error ? (error.code ?? error.signal) : 0;
            if (!STATUSES.includes(status)) return resolve(`ends with ${status}: ${stderr.slice(0, 2000)}`);
            if (/this is a bug/.test(stderr)) return resolve(`says that it is a bug: ${stderr.slice(0, 2000)}`);
            const isTrace = !argv.includes('--debug') && /^\s+at .+:\d+:\d+\)?$/m.test(stderr);
            resolve(isTrace ? `shows a stack trace: ${stderr.slice(0, 2000)}` : undefined);
          },
        );
        child.stdin.end();
      });
    },
  };
}
