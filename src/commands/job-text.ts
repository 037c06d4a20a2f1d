import type { JobDetail } from '../journal/reader.js';
import { happeningInWords } from '../status/history.js';
import { atTime, indent, printableLine, printableLines } from '../text.js';
import { nextStep } from '../why/gather.js';

/** One run for people: where it is, what to do, what happened, what is sent. */
export function jobAsText(job: JobDetail): string {
  return [headline(job), ...facts(job), ...troubles(job), ...history(job), ...draft(job)].join('\n');
}

function headline({ id, state, experiment, server }: JobDetail): string {
  const where = experiment === undefined ? '' : `, experiment ${experiment} of ${server}`;
  return `run ${id}: ${state}${where}`;
}

const fact = (name: string, value: string): string => `${name.padEnd(13)}${printableLine(value)}`;

function facts(job: JobDetail): string[] {
  const { path, size, modifiedMs, paths } = job;
  const others = paths.filter((other) => other !== path);
  // A run that was recovered from the notebook knows its file by name alone.
  const modified = modifiedMs === 0 ? '' : ` (${size} bytes, modified ${atTime(modifiedMs)})`;
  return [
    fact('instrument', job.instrument),
    fact('file', path === '' ? '(erased)' : `${path}${modified}`),
    ...others.map((other) => fact('also seen as', other)),
    fact('sha256', job.sha256),
    fact('taken', `${atTime(job.addedAt)}${job.backlog ? ', as one of the old files' : ''}`),
    fact('last change', atTime(job.updatedAt)),
  ];
}

function troubles(job: JobDetail): string[] {
  const { reason, attempts, drift } = job;
  const tries = attempts > 0 ? ` (${attempts} attempts)` : '';
  return [
    ...(reason === undefined ? [] : [`why${tries}`, indent(printableLines(reason))]),
    ...(drift.length === 0
      ? []
      : ['not like the runs before it', ...drift.map((one) => `  ${printableLine(one)}`)]),
    fact('to do', nextStep(job)),
  ];
}

function history({ history: happenings }: JobDetail): string[] {
  if (happenings.length === 0) return ['', 'history     none is kept of it any more'];
  return [
    '',
    'history',
    ...happenings.map(
      (happening) => `  ${atTime(happening.at)}  ${hanging(printableLines(happeningInWords(happening)))}`,
    ),
  ];
}

const hanging = (text: string): string => text.replaceAll('\n', `\n${' '.repeat(23)}`);

function draft({ draft: sent, comments }: JobDetail): string[] {
  if (sent === undefined) return comments.length === 0 ? [] : ['', ...comments.map(posted)];
  return [
    '',
    fact('title', sent.title),
    fact('date', sent.date),
    fact('tags', sent.tags.join(', ')),
    `body        ${Buffer.byteLength(sent.body)} bytes of HTML`,
    indent(printableLines(sent.body)),
    ...comments.flatMap((comment) => [
      posted(comment),
      ...(comment.text === '' ? [] : [indent(printableLines(comment.text))]),
    ]),
  ];
}

const posted = ({ n, comment }: JobDetail['comments'][number]): string =>
  `comment ${n}   ${comment === undefined ? 'not posted yet' : `posted, as ${comment}`}`;
