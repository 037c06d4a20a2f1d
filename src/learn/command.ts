import { resolve } from 'node:path';
import type { Command } from 'commander';
import { systemClock } from '../clock.js';
import { openSample } from '../mapping/sample.js';
import { learn, learntAsYaml } from './learn.js';

interface LearnOptions {
  readonly json?: boolean;
}

export function addLearn(program: Command): void {
  program
    .command('learn')
    .description('look at sample files and print a configuration part with a mapping that reads them')
    .argument('<file...>', 'files of one instrument; several make the mapping surer')
    .option('--json', 'print it as JSON')
    .addHelpText(
      'after',
      '\nExample:\n  labfeed learn samples/run-17.tsv samples/run-18.tsv > instruments.d/nanodrop.yaml',
    )
    .action(learnFiles);
}

async function learnFiles(paths: string[], { json }: LearnOptions): Promise<void> {
  const unique = [...new Set(paths.map((path) => resolve(path)))];
  const files = [];
  for (const path of unique) files.push(await openSample(path));
  const learnt = await learn(files, systemClock.now());
  if (!json) return console.log(await learntAsYaml(learnt, unique));
  const { name, instrument, doubts } = learnt;
  console.log(JSON.stringify({ instruments: { [name]: instrument }, doubts }, null, 2));
}
