import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { createReadStream, createWriteStream, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse as csvParse } from 'csv-parse';
import { withDefaults } from '../../dist/config/vocabulary.js';
import { parse } from '../../dist/parse/parse.js';
import { measureDaemon } from './long-file-daemon.mjs';
import { ratios } from './ratios.mjs';
import { NOWHERE } from './site.mjs';

const ROWS = 6_000_000;
const MOST_MB = 200;
const ROUNDS = 3;
const SELF = fileURLToPath(import.meta.url);
const CLI = fileURLToPath(new URL('../../dist/cli.js', import.meta.url));
const MAPPING = '{ delimiter: ",", table: {}, limits: { seconds: 10m } }';

/** A file of 200 MB, each time in a process of its own: how long against csv-parse alone, and in how much memory. */
export async function measureLongFile(folder, tell) {
  tell('a long file');
  mkdirSync(folder, { recursive: true });
  const path = join(folder, 'long.csv');
  await write(path);
  const rounds = Array.from({ length: ROUNDS }, () => ({
    ours: run('ours', path),
    theirs: run('theirs', path),
  }));
  const cpu = (side) => rounds.map((round) => round[side].cpuMs);
  return [
    {
      ...{
        what: 'read a file of 200 MB',
        baseline: 'csv-parse',
        target: 2,
        ratios: ratios(cpu('ours'), cpu('theirs')),
      },
      raw: `${cpu('ours').join(', ')} ms of processor time, csv-parse ${cpu('theirs').join(', ')} ms`,
    },
    {
      ...{ what: 'its memory', baseline: `${MOST_MB} MB`, target: 1 },
      ratios: rounds.map(({ ours }) => ours.peakMb / MOST_MB),
      raw: rounds.map(({ ours }) => `${ours.peakMb.toFixed(0)} MB`).join(', '),
    },
    {
      ...{ what: 'longest wait of others', baseline: '1 s', target: 1 },
      ratios: rounds.map(({ ours }) => ours.longestWaitMs / 1000),
      raw: rounds.map(({ ours }) => `${ours.longestWaitMs.toFixed(0)} ms`).join(', '),
    },
    measureTry(folder, path, MAPPING),
    measureTry(folder, path, undefined),
    ...(await measureDaemon(join(folder, 'daemon'), path, MAPPING, tell)),
    ...(await measureDaemon(join(folder, 'unmapped'), path, undefined, tell)),
  ];
}

/** `labfeed try`, with and without a mapping. */
function measureTry(folder, path, parse) {
  const config = join(folder, 'try.yaml');
  const mapping = parse ? `, parse: ${parse}` : '';
  const notebook = `{ url: "${NOWHERE.url}", key: { env: NONE } }`;
  writeFileSync(config, `notebook: ${notebook}\ninstruments:\n  logger: { watch: .${mapping} }\n`);
  const report = 'data:text/javascript,process.on("exit",()=>console.error(process.resourceUsage().maxRSS))';
  const options = ['--import', report, CLI, 'try', '--config', config, 'logger', path];
  const { stderr, status } = spawnSync(process.execPath, options, { encoding: 'utf8' });
  if (status !== 0) throw new Error(stderr);
  const peakMb = Number(stderr.trim().split('\n').at(-1)) / 1024;
  return {
    ...{ what: `memory of \`labfeed try\`${parse ? '' : ', no mapping given'}`, baseline: `${MOST_MB} MB`, target: 1 },
    ...{ ratios: [peakMb / MOST_MB], raw: `${peakMb.toFixed(0)} MB` },
  };
}

async function write(path) {
  const out = createWriteStream(path);
  let text = 'Time (s),Channel,Temperature (°C),Pressure (mbar),Flow (mL/min),Remark\n';
  for (let n = 0; n < ROWS; n++) {
    text += `${(n / 10).toFixed(1)},${n % 8},${(20 + (n % 500) / 100).toFixed(4)},${1000 + (n % 97)}.25,${(n % 1000) / 10},ok\n`;
    if (text.length < 1 << 20) continue;
    if (!out.write(text)) await once(out, 'drain');
    text = '';
  }
  out.end(text);
  await once(out, 'finish');
}

function run(side, path) {
  const { stdout, stderr, status } = spawnSync(process.execPath, [SELF, side, path], { encoding: 'utf8' });
  if (status !== 0) throw new Error(stderr);
  return JSON.parse(stdout);
}

async function readOurs(path) {
  const content = () => createReadStream(path, { highWaterMark: 1 << 18 });
  const options = withDefaults({ delimiter: ',', table: {}, limits: { seconds: 600 } });
  const { tables } = await parse({ path, name: 'long.csv', content }, [options]);
  return tables[0].count;
}

async function readTheirs(path) {
  let rows = -1;
  for await (const _ of createReadStream(path, { highWaterMark: 1 << 18 }).pipe(csvParse({ delimiter: ',' }))) rows++;
  return rows;
}

if (process.argv[1] === SELF) {
  const [, , side, path] = process.argv;
  let [peak, longestWaitMs, last] = [0, 0, performance.now()];
  const timer = setInterval(() => {
    const now = performance.now();
    longestWaitMs = Math.max(longestWaitMs, now - last);
    last = now;
    peak = Math.max(peak, process.memoryUsage.rss());
  }, 5);
  const before = process.cpuUsage();
  const rows = await (side === 'ours' ? readOurs(path) : readTheirs(path));
  if (rows !== ROWS) throw new Error(`${rows} rows were read`);
  const { user, system } = process.cpuUsage(before);
  clearInterval(timer);
  console.log(JSON.stringify({ cpuMs: (user + system) / 1000, peakMb: peak / 2 ** 20, longestWaitMs }));
}
