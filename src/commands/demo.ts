import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import type { Command } from 'commander';
import { pino } from 'pino';
import { systemClock } from '../clock.js';
import { loadConfig, type UsableConfig } from '../config/load.js';
import { createDaemon, type Daemon } from '../daemon/daemon.js';
import { EXIT, explain } from '../errors.js';
import { createLog } from '../log.js';
import type { Observer } from '../pipeline.js';
import { createSandbox } from '../sandbox/server.js';
import { loginLink, readLoginSecret } from '../status/auth.js';
import { onStopRequest, stopRequested } from '../system/process.js';
import { formatDay, indent } from '../text.js';
import { createFolder, portOption, requireUsable, withExamples } from './options.js';
import { createProgressLine } from './terminal.js';

/** The same port every time, if it is free: with another address the journal would expect another notebook. */
const NOTEBOOK_PORT = 7781;
const PAGE_PORT = 7780;

export function addDemo(command: Command): void {
  withExamples(command, ['labfeed demo --once'])
    .addOption(portOption())
    .option('--dir <folder>', 'Folder for the files, journal and notebook (default: a new temporary folder)')
    .option('--once', 'Exit when the samples are filed')
    .action(demo);
}

async function demo({ port, dir, once = false }: { port?: number; dir?: string; once?: boolean }): Promise<void> {
  const stop = onStopRequest();
  const folder = dir === undefined ? mkdtempSync(join(tmpdir(), 'labfeed-demo-')) : resolve(dir);
  for (const instrument of INSTRUMENTS) createFolder(join(folder, 'instruments', instrument), '--dir');
  const { notebook, ...access } = await startNotebook(folder, port).catch((error: unknown) => {
    // Nothing was filed yet, so that nobody needs the temporary folder.
    if (dir === undefined) rmSync(folder, { recursive: true });
    throw error;
  });
  try {
    await fileSamples({ folder, ...access, once, stop });
  } finally {
    await notebook.stop();
  }
}

interface Demo {
  readonly folder: string;
  /** Of the built-in notebook, with its key. */
  readonly url: string;
  readonly key: string;
  readonly once: boolean;
  readonly stop: AbortSignal;
}

async function fileSamples({ folder, url, key, once, stop }: Demo): Promise<void> {
  const samples = sampleFiles(new Date());
  const page = once ? undefined : `127.0.0.1:${await freePort(PAGE_PORT)}`;
  const destination = pino.destination({ dest: join(folder, 'labfeed.log'), sync: true });
  const daemon = createDaemon({
    config: writeConfig(folder, url, key, page),
    ...createLog({ level: 'info', destination }),
    clock: systemClock,
    observer: createProgress(url, samples.length),
  });
  try {
    await daemon.start();
    console.log(
      `labfeed demo: filing ${samples.length} files from 4 instruments in the built-in notebook, on this machine only.\n`,
    );
    await writeSamples(samples, folder);
    const filed = await waitForRuns(daemon, samples.length, stop);
    const link = page && loginLink(`http://${page}/`, readLoginSecret(join(folder, 'journal.db')), Date.now(), DAY_MS);
    console.log(summary(await daemon.count(), folder, url, link));
    if (once && filed < samples.length) process.exitCode = EXIT.failed;
    if (!once) await stopRequested(stop);
  } finally {
    await daemon.stop();
  }
}

/** A port that the user chose must be free. If the default port is taken, any free port is used. */
async function startNotebook(folder: string, port?: number) {
  const start = async (chosen: number) => {
    const notebook = createSandbox({ file: join(folder, 'notebook.db'), port: chosen });
    return { notebook, ...(await notebook.start()) };
  };
  return port === undefined ? start(NOTEBOOK_PORT).catch(() => start(0)) : start(port);
}

/** This port if it is free, otherwise any free port. */
function freePort(wanted: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const trial = createServer();
    trial.once('error', (error) => (wanted === 0 ? reject(error) : resolve(freePort(0))));
    trial.listen(wanted, '127.0.0.1', () => {
      const { port } = trial.address() as AddressInfo;
      trial.close(() => resolve(port));
    });
  });
}

function writeConfig(folder: string, url: string, key: string, page: string | undefined): UsableConfig {
  const file = join(folder, 'labfeed.yaml');
  writeFileSync(join(folder, 'api-key'), key, { mode: 0o600 });
  const head = `notebook: { url: "${url}", key: { file: api-key }, rate: 100/s }\njournal: journal.db\nstatus: ${page ?? false}\n`;
  writeFileSync(file, head + SAMPLE_MAPPINGS);
  const config = loadConfig(file);
  requireUsable(config);
  return config;
}

/** One file after the other, as instruments do, so that there is something to see. */
async function writeSamples(samples: readonly SampleFile[], folder: string): Promise<void> {
  for (const { instrument, name, content } of samples) {
    const file = join(folder, 'instruments', instrument, name);
    if (existsSync(file)) continue;
    writeFileSync(file, content);
    await systemClock.sleep(150);
  }
}

/** Waits until all runs are done or parked, and returns how many are done. */
async function waitForRuns(daemon: Daemon, runs: number, stop: AbortSignal): Promise<number> {
  for (;;) {
    const { done = 0, quarantined = 0, held = 0 } = await daemon.count();
    if (stop.aborted || done + quarantined + held >= runs) return done;
    await systemClock.sleep(100);
  }
}

/** Prints one line per run; on a terminal also how many are finished. */
function createProgress(url: string, total: number): Observer {
  const progress = createProgressLine();
  let finished = 0;

  function print(state: string, instrument: string, text: string): void {
    finished += 1;
    progress.end();
    console.log(`  ${state.padEnd(13)}${instrument.padEnd(14)}${text}`);
    if (finished < total) progress.show(`  ${finished} of ${total}`);
  }

  return {
    filed: (run, experiment) => print('filed', run.instrument, `${run.draft.title}  →  ${url}/view/${experiment}`),
    quarantined: (instrument, path, problem) =>
      print('quarantined', instrument, `${basename(path)}\n${indent(explain(problem), ' '.repeat(15))}`),
    failed(run, change) {
      if (change.kind === 'parked') print(change.as, run.instrument, `${run.draft.title}: ${change.reason}`);
    },
  };
}

const DAY_MS = 24 * 60 * 60_000;

/** `page`: a link that logs in, so that decisions can be tried. */
function summary(counts: Record<string, number>, folder: string, url: string, page: string | undefined): string {
  const states = Object.entries(counts).map(([state, runs]) => `${runs} ${state}`);
  return `
${states.join(', ')}. Each run is filed exactly once, however often you stop and restart the demo.

${page === undefined ? '' : `  page       ${page}\n`}  notebook   ${url}/
  folders    ${join(folder, 'instruments')}/{${INSTRUMENTS.join(',')}}
  mappings   ${join(folder, 'labfeed.yaml')}
  log        ${join(folder, 'labfeed.log')}
${page === undefined ? '' : '\nDrop a CSV file into the logger folder and watch it arrive. Press Ctrl-C to stop; the files are kept.\n'}`;
}

const INSTRUMENTS = ['balance', 'spectrometer', 'plate-reader', 'logger'];

interface SampleFile {
  readonly instrument: string;
  readonly name: string;
  readonly content: string;
}

/** Mappings as a scientist would write them. */
const SAMPLE_MAPPINGS = `instruments:
  balance:
    watch: instruments/balance
    files: "*.csv"
    ready: { quiet: 500ms }
    parse:
      delimiter: ","
      meta: { until: blank, separator: "," }
      table: { after: blank }
    experiment:
      title: "{{ meta.Sample }}, weighed by {{ meta.Operator }}"
      date: "{{ meta.Date }}"
      tags: [balance, "{{ meta.Operator }}"]

  spectrometer:
    watch: instruments/spectrometer
    files: "*.tsv"
    ready: { quiet: 500ms }
    parse:
      delimiter: tab
      dates: { format: "dd/MM/yyyy HH:mm" }
      meta: { until: Wavelength, separator: tab }
      facts: { date: Measured }
      table: { header: Wavelength }
    experiment:
      title: "UV/Vis of {{ meta.Sample }}"
      body: |
        <p>{{ meta.Sample }} in {{ meta.Solvent }}, path length {{ meta["Path length"] }}</p>
        {{ readings | table }}
      tags: [uv-vis, "{{ meta.Solvent }}"]

  plate-reader:
    watch: instruments/plate-reader
    files: "*.txt"
    ready: { quiet: 500ms }
    parse:
      delimiter: ";"
      decimal: ","
      missing: [OVRFLW]
      dates: { format: dd.MM.yyyy }
      meta: { until: Well, separator: ":" }
      facts: { date: Datum, plate: Platte }
      table: { header: Well, units: nextRow }
    experiment:
      title: "Plate {{ meta.plate }}"
      tags: [plate-reader]

  logger:                       # only a folder: everything else has a default
    watch: instruments/logger
    ready: { quiet: 500ms }
`;

/** Dates are today's: labfeed quarantines dates after the modification of the file. */
export function sampleFiles(today: Date): SampleFile[] {
  const iso = formatDay(today.getTime());
  const [year, month, day] = iso.split('-');
  const [slashes, dots] = [`${day}/${month}/${year}`, `${day}.${month}.${year}`];
  return [
    balance('weighing-0041.csv', 'Caffeine', 'Ada', iso, [12.403, 12.401, 12.404]),
    balance('weighing-0042.csv', 'Sodium chloride', 'Grace', iso, [250.12, 250.09]),
    spectrum('scan-17.tsv', 'Methylene blue', 'water', `${slashes} 09:14`, 664, 0.74),
    spectrum('scan-18.tsv', 'Rhodamine B', 'ethanol', `${slashes} 09:31`, 554, 1.12),
    plate('plate-7.txt', 'P-0007', dots, ['0,113', '0,118', '0,871', 'OVRFLW']),
    plate('plate-8.txt', 'P-0008', dots, ['0,109', '0,112', '0,905', '1,204']),
    logger('fridge-3.csv', iso, [4.1, 4.3, 4.0, 5.2]),
    logger('incubator.csv', iso, [36.9, 37.0, 37.1, 37.0]),
  ];
}

function balance(name: string, sample: string, operator: string, date: string, weights: readonly number[]): SampleFile {
  const rows = weights.map((weight, index) => `${index + 1},${weight.toFixed(3)},yes`);
  const head = [`Sample,${sample}`, `Operator,${operator}`, `Date,${date}`, '', 'No,Weight (mg),Stable'];
  return { instrument: 'balance', name, content: [...head, ...rows, ''].join('\r\n') };
}

function spectrum(
  name: string,
  sample: string,
  solvent: string,
  measured: string,
  peakNm: number,
  height: number,
): SampleFile {
  const rows = Array.from({ length: 41 }, (_, index) => {
    const nm = peakNm - 100 + 5 * index;
    return `${nm.toFixed(1)}\t${(height * Math.exp(-(((nm - peakNm) / 30) ** 2))).toFixed(4)}`;
  });
  const head = [`Sample\t${sample}`, `Solvent\t${solvent}`, 'Path length\t10 mm', `Measured\t${measured}`];
  const content = [...head, 'Wavelength (nm)\tAbsorbance', ...rows, ''].join('\n');
  return { instrument: 'spectrometer', name, content };
}

function plate(name: string, id: string, date: string, absorbances: readonly string[]): SampleFile {
  const rows = absorbances.map((value, index) => `A${index + 1};${value};37,${index}`);
  const content = [`Platte: ${id}`, `Datum: ${date}`, 'Well;Absorption;Temperatur', ';AU;°C', ...rows, ''];
  return { instrument: 'plate-reader', name, content: content.join('\r\n') };
}

function logger(name: string, date: string, temperatures: readonly number[]): SampleFile {
  const rows = temperatures.map((celsius, hour) => `${date} 0${hour}:00:00,${celsius.toFixed(1)},${40 + hour}`);
  return { instrument: 'logger', name, content: ['time,temperature (°C),humidity (%)', ...rows, ''].join('\n') };
}
