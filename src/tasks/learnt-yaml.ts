import { stringify } from 'yaml';
import type { Learnt } from './learn.js';

/** What was learnt, as a part of a configuration; what was unsure stands in comments. */
export async function learntAsYaml(
  { name, instrument, doubts }: Learnt,
  samples: readonly string[],
): Promise<string> {
  const from = samples.length === 1 ? samples[0] : `${samples.length} files`;
  const comments = [
    `Learnt from ${from}. Look through it, then try it: labfeed try --config THIS ${shellWord(name)} FILE`,
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
