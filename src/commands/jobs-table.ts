import { basename } from 'node:path';
import type { Job } from '../journal/reader.js';
import { atMinute, withoutPath } from '../text.js';
import { asTable, type Column, outputWidth } from './table.js';

/** A file that is not still yet: the journal does not know it. */
export interface WaitingJob {
  readonly state: 'waiting';
  readonly instrument: string;
  readonly path: string;
  readonly since: number;
  readonly reason: string;
}

type Listed = Job | WaitingJob;

export const jobsTable = (jobs: readonly Listed[], now: number): string =>
  asTable(columns(now), jobs, outputWidth());

const columns = (now: number): Column<Listed>[] => [
  { title: 'job', align: 'right', text: (job) => ('id' in job ? String(job.id) : '-') },
  { title: 'state', text: ({ state }) => state },
  { title: 'instrument', flexible: true, text: ({ instrument }) => instrument },
  { title: 'file', flexible: true, text: ({ path }) => (path === '' ? '(erased)' : basename(path)) },
  { title: 'since', text: (job) => atMinute('id' in job ? job.updatedAt : job.since, now) },
  {
    title: 'exp.',
    align: 'right',
    text: (job) => ('id' in job && job.experiment !== undefined ? String(job.experiment) : ''),
  },
  { title: 'what', flexible: true, text: what },
];

/** Why it is not filed, or as what it is. */
function what(job: Listed): string {
  const [reason = ''] = withoutPath(job.reason ?? '', job.path).split('\n');
  return reason || ('id' in job ? (job.title ?? '') : '');
}
