import { basename, join } from 'node:path';
import { explain } from '../errors.js';
import type { Observer } from '../pipeline.js';

export interface DemoDisplay extends Observer {
  begin(): void;
  /** Tells where everything is, now that there is something to look at. */
  explain(counts: Readonly<Record<string, number>>, ends: boolean): void;
}

export interface DemoPlaces {
  readonly folder: string;
  /** Where the notebook is. */
  readonly url: string;
  /** Where the status page is, if there is one. */
  readonly page: string | undefined;
  readonly samples: number;
}

/** What the demo shows while the daemon works: a line a run, and on a terminal how many are left. */
export function createDemoDisplay({ folder, url, page, samples }: DemoPlaces): DemoDisplay {
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
    refused: (instrument, path, problem) =>
      line(
        `  quarantined  ${instrument.padEnd(14)}${basename(path)}\n${explain(problem).replace(/^/gm, '               ')}`,
      ),
    setBack(run, change) {
      if (change.kind === 'rested')
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
