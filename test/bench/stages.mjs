import { createHash } from 'node:crypto';
import { mkdirSync, statSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse as parseCsv } from 'csv-parse/sync';
import { loadConfig } from '../../dist/config/load.js';
import { createMapping } from '../../dist/mapping/mapping.js';
import { identify } from '../../dist/watch/identify.js';
import { median, ratios } from './ratios.mjs';
import { csv, NOWHERE } from './site.mjs';

const ROWS = 100;
const FILE_BYTES = 10_000;
/** Short and many, one after the other: what else the machine does changes both sides of a round alike. */
const ROUNDS = 150;
const BATCH = 20;
/** V8 still compiles until then: a call takes up to twice the processor time in the first thousand. */
const WARM_UP_CALLS = 3000;

const MAPPING = `parse:
      delimiter: ","
      table: { header: Sample, units: inHeader }
    experiment: { title: "{{ file.stem }} on {{ instrument }}", tags: [reader, "{{ readings.size }} readings"] }`;

/** What one file costs between the folder and the journal, in this process. */
export async function measureStages(folder, tell, rounds = ROUNDS) {
  tell('stages');
  mkdirSync(folder, { recursive: true });
  const [mapped, measured] = instruments(folder);
  const path = join(folder, 'run.csv');
  const text = csv(ROWS);
  writeFileSync(path, text);
  const file = await identify(found(path), { signal: new AbortController().signal });
  const large = join(folder, 'large.bin');
  writeFileSync(large, Buffer.alloc(FILE_BYTES, 'labfeed'));

  const bare = () => void parseCsv(text);
  const parse = `parse and map ${ROWS} rows`;
  const compare = (...compared) => compareIn(rounds, ...compared);
  return [
    await compare(parse, 'csv-parse', 3, readAndMap(mapped, file), bare),
    await compare(`${parse}, no mapping given`, 'csv-parse', 6, readAndMap(measured, file), bare),
    await compare(`identify ${FILE_BYTES / 1000} kB`, 'readFile + SHA-256', 1.5, identifying(large), () =>
      readFile(large).then((bytes) => createHash('sha256').update(bytes).digest('hex')),
    ),
  ];
}

function instruments(folder) {
  const config = join(folder, 'stages.yaml');
  writeFileSync(
    config,
    `notebook: { url: "${NOWHERE.url}", key: { env: NONE } }
instruments:
  mapped:
    watch: .
    ${MAPPING}
  measured: { watch: . }
`,
  );
  const { instruments: loaded, problems } = loadConfig(config);
  if (problems.length > 0) throw new Error(problems.map(({ message }) => message).join('\n'));
  return loaded.map(createMapping);
}

/** The file is in memory, as identifying it left it. */
const readAndMap = (mapping, file) => async () => {
  const { draft } = mapping.map(await mapping.parse(file), file, Date.now());
  if (draft.comments.length !== 1) throw new Error('the file of the bench is to make one comment');
};

function identifying(path) {
  const { signal } = new AbortController();
  const file = found(path);
  return () => identify(file, { signal });
}

function found(path) {
  const { size, mtimeNs, ino } = statSync(path, { bigint: true });
  return { path, location: path, size: Number(size), mtimeNs, inode: ino };
}

async function compareIn(rounds, what, baseline, target, ours, theirs) {
  const us = [];
  const them = [];
  for (const side of [ours, theirs]) for (let n = 0; n < WARM_UP_CALLS; n++) await side();
  for (let round = 0; round < rounds; round++) {
    us.push(await perCallUs(ours));
    them.push(await perCallUs(theirs));
  }
  const raw = `${median(us).toFixed(0)} µs, ${baseline} ${median(them).toFixed(0)} µs`;
  return { what, baseline, target, ratios: ratios(us, them), raw };
}

/** Processor time, of all threads: it does not count what other programs do meanwhile. */
async function perCallUs(call) {
  const before = process.cpuUsage();
  for (let n = 0; n < BATCH; n++) await call();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / BATCH;
}
