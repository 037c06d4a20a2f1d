import { resolve } from 'node:path';
import type { Command } from 'commander';
import type { Learnt } from '../learn.js';

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
  const [{ learn }, { openSample }, { systemClock }] = await Promise.all([
    import('../learn.js'),
    import('../sample.js'),
    import('../clock.js'),
  ]);
  const unique = [...new Set(paths.map((path) => resolve(path)))];
  const files = [];
  for (const path of unique) files.push(await openSample(path));
  const learnt = await learn(files, systemClock.now());
  if (!json) return console.log(await asYaml(learnt, unique));
  const { name, instrument, doubts } = learnt;
  console.log(JSON.stringify({ instruments: { [name]: instrument }, doubts }, null, 2));
}

async function asYaml({ name, instrument, doubts }: Learnt, paths: readonly string[]): Promise<string> {
  const { stringify } = await import('yaml');
  const samples = paths.length === 1 ? paths[0] : `${paths.length} files`;
  const comments = [
    `Learnt from ${samples}. Look through it, then try it: labfeed try --config THIS ${shellWord(name)} FILE`,
    'watch is where the samples are: put the folder there that the instrument writes to.',
    ...doubts.map((doubt) => `Unsure: ${doubt}`),
  ];
  const part = stringify({ instruments: { [name]: instrument } }, { lineWidth: 0 });
  return `${comments.map(asComment).join('')}${part}`.trimEnd();
}

const shellWord = (text: string): string => (/^[\w.-]+$/.test(text) ? text : `'${text}'`);

/** Whatever a file or an error says stays within the comment. */
const asComment = (text: string): string =>
  text
    .split(/[\r\n\u0085\u2028\u2029]+/)
    .map((line, n) => `# ${n === 0 ? '' : '  '}${line.replace(/[^\P{Cc}\t]/gu, ' ').trimEnd()}\n`)
    .join('');
