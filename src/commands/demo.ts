import { existsSync, mkdtempSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Command } from 'commander';
import { pino } from 'pino';
import { systemClock } from '../clock.js';
import { type LoadedConfig, loadConfig } from '../config/load.js';
import { createDaemon, type Daemon } from '../daemon/daemon.js';
import { EXIT, explain } from '../errors.js';
import { createLog } from '../log.js';
import type { Observer } from '../pipeline.js';
import { onStopRequest, stopRequested } from '../process.js';
import { createSandbox, type Sandbox } from '../sandbox/server.js';
import { makeFolder, portOption, requireVital } from './options.js';

/** The same each time, where it can be: with the address, the journal would take it for another notebook. */
const USUAL_PORT = 7781;
const PAGE_PORT = 7780;

interface DemoOptions {
  readonly port?: number;
  readonly dir?: string;
  readonly once?: boolean;
}

export function addDemo(program: Command): void {
  program
    .command('demo')
    .description(
      'everything on this machine, nothing to configure: a notebook, instruments, files, and their ingest',
    )
    .addOption(portOption())
    .option('--dir <folder>', 'where files, journal and notebook are kept (default: a new temporary folder)')
    .option('--once', 'end when the samples are filed')
    .addHelpText('after', '\nExample:\n  labfeed demo --once')
    .action(demo);
}

async function demo({ port, dir, once }: DemoOptions): Promise<void> {
  const stop = onStopRequest();
  const folder = dir === undefined ? mkdtempSync(join(tmpdir(), 'labfeed-demo-')) : resolve(dir);
  const samples = sampleFiles(new Date());
  for (const { instrument } of samples) makeFolder(join(folder, 'instruments', instrument), '--dir');

  const { notebook, url, key } = await startNotebook(folder, port);
  // Who ends at once has nobody who could look.
  const page = once ? undefined : `127.0.0.1:${await freePort(PAGE_PORT)}`;
  const config = writeConfig(folder, { url, key, page });
  const display = createDemoDisplay({ folder, url, page, samples: samples.length });
  const destination = pino.destination({ dest: join(folder, 'labfeed.log'), sync: true });
  const daemon = createDaemon({
    config,
    ...createLog({ level: 'info', pretty: false, destination }),
    clock: systemClock,
    observer: display,
  });
  try {
    await daemon.start();
    display.begin();
    await dropAll(samples, folder);
    const filed = await untilEnded(daemon.count, samples.length, stop);
    display.explain(await daemon.count(), once ?? false);
    if (once && filed < samples.length) process.exitCode = EXIT.failed;
    if (!once) await stopRequested(stop);
  } finally {
    await daemon.stop();
    await notebook.stop();
  }
}

/** A port that was asked for must be free; the usual one gives way to any free one. */
async function startNotebook(
  folder: string,
  port?: number,
): Promise<{ notebook: Sandbox; url: string; key: string }> {
  const start = async (chosen: number) => {
    const notebook = createSandbox({ file: join(folder, 'notebook.db'), port: chosen });
    return { notebook, ...(await notebook.start()) };
  };
  return port === undefined ? start(USUAL_PORT).catch(() => start(0)) : start(port);
}

/** This port, or any other where it is taken. */
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

interface Addresses {
  readonly url: string;
  readonly key: string;
  readonly page: string | undefined;
}

function writeConfig(folder: string, { url, key, page }: Addresses) {
  const file = join(folder, 'labfeed.yaml');
  writeFileSync(join(folder, 'api-key'), key, { mode: 0o600 });
  const head = `notebook: { url: "${url}", key: { file: api-key }, rate: 100/s }\njournal: journal.db\nstatus: ${page ?? false}\n`;
  writeFileSync(file, head + SAMPLE_MAPPINGS);
  const config: LoadedConfig = loadConfig(file);
  requireVital(config);
  return config;
}

/** Waits until so many runs have come to an end, and tells how many of them are filed. */
async function untilEnded(count: Daemon['count'], runs: number, stop: AbortSignal): Promise<number> {
  for (;;) {
    const { done = 0, quarantined = 0, held = 0 } = await count();
    if (stop.aborted || done + quarantined + held >= runs) return done;
    await sleep(100);
  }
}

/** As instruments do: one file after the other, so that there is something to see. */
async function dropAll(samples: readonly SampleFile[], folder: string): Promise<void> {
  for (const { instrument, name, content } of samples) {
    const file = join(folder, 'instruments', instrument, name);
    if (existsSync(file)) continue;
    writeFileSync(file, content);
    await sleep(150);
  }
}

interface DemoDisplay extends Observer {
  begin(): void;
  /** Tells where everything is, now that there is something to look at. */
  explain(counts: Readonly<Record<string, number>>, ends: boolean): void;
}

interface DemoPlaces {
  readonly folder: string;
  /** Where the notebook is. */
  readonly url: string;
  /** Where the status page is, if there is one. */
  readonly page: string | undefined;
  readonly samples: number;
}

/** What the demo shows while the daemon works: a line a run, and on a terminal how many are left. */
function createDemoDisplay({ folder, url, page, samples }: DemoPlaces): DemoDisplay {
  const terminal = process.stdout.isTTY;
  let ended = 0;

  function line(text: string): void {
    ended += 1;
    process.stdout.write(`${terminal ? '\r\x1b[K' : ''}${text}\n`);
    if (terminal && ended < samples) process.stdout.write(bar(ended, samples));
  }

  return {
    begin() {
      console.log(
        `labfeed demo: ${samples} files of 4 instruments go into the built-in notebook, on this machine only.\n`,
      );
    },
    filed: (run, experiment) =>
      line(`  filed        ${run.instrument.padEnd(14)}${run.draft.title}  →  ${url}/view/${experiment}`),
    quarantined: (instrument, path, problem) =>
      line(
        `  quarantined  ${instrument.padEnd(14)}${basename(path)}\n${explain(problem).replace(/^/gm, '               ')}`,
      ),
    failed(run, change) {
      if (change.kind === 'parked')
        line(`  ${change.as.padEnd(13)}${run.instrument.padEnd(14)}${run.draft.title}: ${change.reason}`);
    },
    explain(counts, ends) {
      const summary = Object.entries(counts).map(([state, runs]) => `${runs} ${state}`);
      console.log(`
${summary.join(', ')}. Every one is filed once, however often this is stopped and started.

${page === undefined ? '' : `  page       http://${page}/   what happens, what waits, what needs you\n`}  notebook   ${url}/
  folders    ${join(folder, 'instruments')}/{balance,spectrometer,plate-reader,logger}
  mappings   ${join(folder, 'labfeed.yaml')}
  log        ${join(folder, 'labfeed.log')}
${ends ? '' : "\nDrop a CSV of your own into the logger's folder and watch it arrive. Ctrl-C ends the demo; the files stay.\n"}`);
    },
  };
}

const WIDTH = 24;

function bar(done: number, all: number): string {
  const full = Math.round((WIDTH * done) / all);
  return `  [${'#'.repeat(full)}${'-'.repeat(WIDTH - full)}] ${done} of ${all}`;
}

/**
 * The sample instruments of the demo: their mappings, as a scientist would write them, and their files.
 * Dates are of today, since a run from the future, or a date after the file's own, would rightly be refused.
 */
interface SampleFile {
  readonly instrument: string;
  readonly name: string;
  readonly content: string;
}

/** The part of the demo's configuration that describes the instruments. */
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

export function sampleFiles(today: Date): SampleFile[] {
  const day = (separator: string, order: 'ymd' | 'dmy'): string => {
    const ymd = [today.getFullYear(), today.getMonth() + 1, today.getDate()].map((part) =>
      String(part).padStart(2, '0'),
    );
    return (order === 'ymd' ? ymd : ymd.reverse()).join(separator);
  };
  const iso = day('-', 'ymd');
  return [
    balance('weighing-0041.csv', 'Caffeine', 'Ada', iso, [12.403, 12.401, 12.404]),
    balance('weighing-0042.csv', 'Sodium chloride', 'Grace', iso, [250.12, 250.09]),
    spectrum('scan-17.tsv', 'Methylene blue', 'water', `${day('/', 'dmy')} 09:14`, 664, 0.74),
    spectrum('scan-18.tsv', 'Rhodamine B', 'ethanol', `${day('/', 'dmy')} 09:31`, 554, 1.12),
    plate('plate-7.txt', 'P-0007', day('.', 'dmy'), ['0,113', '0,118', '0,871', 'OVRFLW']),
    plate('plate-8.txt', 'P-0008', day('.', 'dmy'), ['0,109', '0,112', '0,905', '1,204']),
    logger('fridge-3.csv', iso, [4.1, 4.3, 4.0, 5.2]),
    logger('incubator.csv', iso, [36.9, 37.0, 37.1, 37.0]),
  ];
}

function balance(
  name: string,
  sample: string,
  operator: string,
  date: string,
  weights: readonly number[],
): SampleFile {
  const rows = weights.map((weight, index) => `${index + 1},${weight.toFixed(3)},yes`);
  const content = [
    `Sample,${sample}`,
    `Operator,${operator}`,
    `Date,${date}`,
    '',
    'No,Weight (mg),Stable',
    ...rows,
    '',
  ];
  return { instrument: 'balance', name, content: content.join('\r\n') };
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
  return {
    instrument: 'spectrometer',
    name,
    content: [...head, 'Wavelength (nm)\tAbsorbance', ...rows, ''].join('\n'),
  };
}

function plate(name: string, id: string, date: string, absorbances: readonly string[]): SampleFile {
  const rows = absorbances.map((value, index) => `A${index + 1};${value};37,${index}`);
  const content = [`Platte: ${id}`, `Datum: ${date}`, 'Well;Absorption;Temperatur', ';AU;°C', ...rows, ''];
  return { instrument: 'plate-reader', name, content: content.join('\r\n') };
}

function logger(name: string, date: string, temperatures: readonly number[]): SampleFile {
  const rows = temperatures.map(
    (temperature, index) => `${date} 0${index}:00:00,${temperature.toFixed(1)},${40 + index}`,
  );
  return {
    instrument: 'logger',
    name,
    content: ['time,temperature (°C),humidity (%)', ...rows, ''].join('\n'),
  };
}
