import { clockTime } from './words.js';

export interface Happening {
  readonly at: number;
  readonly event: string;
  readonly detail?: unknown;
}

type Detail = Readonly<Record<string, unknown>>;

/** What the journal's events mean to people. One that this page does not know stands for itself. */
const WORDS: Readonly<Record<string, (detail: Detail) => string>> = {
  read: ({ path }) => `read from ${text(path)}`,
  refused: ({ reason }) => `could not be read: ${text(reason)}`,
  recovered: ({ experiment }) => `recovered from experiment ${text(experiment)} of the notebook`,
  drifted: ({ changes }) => `differs from the runs before it: ${list(changes)}`,
  intended: ({ server }) => `about to be created at ${text(server)}`,
  notCreated: () => 'was surely not created; it is tried again',
  created: ({ experiment, found }) =>
    found === true
      ? `found again as experiment ${text(experiment)}: the answer to its creation was lost`
      : `created as experiment ${text(experiment)}`,
  described: () => 'title, date, body and tags are written',
  commentIntended: ({ n }) => `comment ${text(n)} is about to be sent`,
  notCommented: ({ n }) => `comment ${text(n)} was surely not taken; it is tried again`,
  commented: ({ n, found }) => `comment ${text(n)} ${found === true ? 'found again' : 'is written'}`,
  finished: () => 'filed',
  postponed: ({ dueAt, reason }) =>
    `put off${typeof dueAt === 'number' ? ` until ${clockTime(dueAt, Date.now())}` : ''}: ${text(reason)}`,
  rested: ({ as, reason }) => `${text(as)}: ${text(reason)}`,
  retried: ({ with: other }) =>
    other === undefined ? 'asked to go on' : `goes on with run ${text(other)}, which had the same question`,
  adopted: ({ experiment }) => `a person said that experiment ${text(experiment)} is its own`,
  refiled: ({ as, of }) =>
    as === undefined ? `files run ${text(of)} anew` : `filed anew as run ${text(as)}`,
  ignored: () => 'set aside by a person',
  setBack: ({ became }) => `the notebook was set back to an older state: ${text(became)}`,
};

export function inWords({ event, detail }: Happening): string {
  const fields = isDetail(detail) ? detail : {};
  const words = WORDS[event];
  if (words) return words(fields);
  const rest = Object.entries(fields).map(([name, value]) => `${name} ${text(value)}`);
  return rest.length === 0 ? event : `${event}: ${rest.join(', ')}`;
}

const isDetail = (detail: unknown): detail is Detail => typeof detail === 'object' && detail !== null;

const text = (value: unknown): string =>
  value === undefined || value === null
    ? '?'
    : typeof value === 'object'
      ? JSON.stringify(value)
      : String(value);

const list = (value: unknown): string => (Array.isArray(value) ? value.map(text).join('; ') : text(value));
