import { expect } from 'vitest';
import type { Job } from '../../src/journal/jobs.js';
import type { Control } from '../support/sandbox.js';
import { until } from '../support/until.js';
import { EDITED } from './events.js';
import type { Lab, Pc } from './lab.js';

/** The requests of the contract, and eLabFTW's tags, files, search and newest entry. */
const ALLOWED = [
  /^GET \/api\/v2\/apikeys$/,
  /^POST \/api\/v2\/experiments$/,
  /^(GET|PATCH) \/api\/v2\/experiments\/[1-9]\d*$/,
  /^(GET|POST) \/api\/v2\/experiments\/[1-9]\d*\/comments$/,
  /^(GET|PATCH|DELETE) \/api\/v2\/experiments\/[1-9]\d*\/comments\/[1-9]\d*$/,
];
const SESSION_KEYS = [/^POST \/api\/v2\/apikeys$/, /^DELETE \/api\/v2\/apikeys\/[1-9]\d*$/];
const ELABFTW = [
  /^(GET|POST) \/api\/v2\/experiments\/[1-9]\d*\/tags$/,
  /^POST \/api\/v2\/experiments\/[1-9]\d*\/uploads$/,
  /^(POST|DELETE) \/api\/v2\/experiments\/[1-9]\d*\/uploads\/[1-9]\d*$/,
  /^GET \/api\/v2\/experiments\/[1-9]\d*\/uploads\?state=1,2,3$/,
  /^GET \/api\/v2\/experiments\?(extended=(body|title)|order=id&sort=desc&)/,
];

/** eLabFTW may carry out a cut-off request for two minutes, so nothing is decided before then. */
const SETTLED_WITHIN_MS = 400_000;

/** How often to print what is still open, for somebody who does not wait until the end. */
const REPORT_MS = 60_000;

/**
 * Waits until every run is filed without a person, and poisoned runs are parked. A run that may own an unreadable entry
 * waits, and no other does; it is filed once the entry can be read.
 */
export async function settle(lab: Lab): Promise<void> {
  await finished(lab, ({ reason }) => reason?.includes('cannot be read') === true);
  lab.people.unreadable.clear();
  await finished(lab, () => false);
}

async function finished(lab: Lab, mayWait: (job: Job) => boolean): Promise<void> {
  let open: string[] = [];
  let reportAt = Date.now() + REPORT_MS;
  const isOver = async (): Promise<boolean> => {
    open = (await Promise.all(lab.pcs.map((pc) => openRuns(lab, pc, mayWait)))).flat();
    // A run is to blame only if others are accepted.
    for (const pc of lab.pcs) if (pc.poisoned.some((title) => open.some((one) => one.startsWith(title)))) pc.drop();
    if (open.length > 0 && Date.now() > reportAt) {
      console.log([`on ${lab.dialect}, still open:`, ...open, ...lastRequests(lab.control)].join('\n'));
      reportAt = Date.now() + REPORT_MS;
    }
    if (open.length > 0) await new Promise((resolve) => setTimeout(resolve, 1000));
    return open.length === 0;
  };
  await until('all runs filed', isOver, SETTLED_WITHIN_MS).catch((error: Error) => {
    throw new Error([error.message, ...open, ...lastRequests(lab.control)].join('\n'));
  });
}

const SHOWN_REQUESTS = 30;

export function lastRequests(control: Control): string[] {
  const last = control.requests().slice(-SHOWN_REQUESTS);
  const now = Date.now();
  return last.map(({ atMs, method, path, status }) => {
    const agoS = ((now - atMs) / 1000).toFixed(1);
    return `${agoS} s ago: ${method} ${path}: ${status ?? 'not carried out'}`;
  });
}

async function openRuns(lab: Lab, pc: Pc, mayWait: (job: Job) => boolean): Promise<string[]> {
  const jobs = await pc.jobs();
  const open: string[] = [];
  for (const title of [...pc.titles, ...pc.poisoned]) {
    const job = jobs.get(title);
    const isPoisoned = pc.poisoned.includes(title);
    if (job && isParked(job) && !isExpected(job, title, lab, isPoisoned))
      throw new Error(`${title} was parked: ${JSON.stringify(job)}`);
    const isCurrent = job?.sha256 === (pc.revised.get(title) ?? job?.sha256);
    const isFiled = !isPoisoned && job?.state === 'done' && isCurrent;
    const isOver = job !== undefined && (isParked(job) || isFiled || mayWait(job));
    if (!isOver) open.push(`${title}: ${describe(job)}`);
  }
  return open;
}

function describe(job: Job | undefined): string {
  if (!job) return 'not in the journal';
  const { id, state, step, attempts, dueAt = 0, reason } = job;
  const dueS = ((dueAt - Date.now()) / 1000).toFixed(1);
  return `run ${id}, ${state}, ${step}, ${attempts ?? 0} attempts, due in ${dueS} s, ${reason ?? 'no failure'}`;
}

const isParked = ({ state }: Job): boolean => state === 'quarantined' || state === 'held';

/** Only what the server never accepts is quarantined, and only what people changed or deleted, or nobody refiled, is held. */
const isExpected = ({ state, reason }: Job, title: string, lab: Lab, isPoisoned: boolean): boolean =>
  state === 'quarantined'
    ? isPoisoned && reason?.includes('accepts the same request for other runs') === true
    : isDisputed(title, lab) || (isPoisoned && reason?.includes('restored to an older state') === true);

const isDisputed = (title: string, { people, disputed }: Lab): boolean =>
  people.deleted.has(title) || [...people.edited.values()].includes(title) || disputed.has(title);

export async function verify(lab: Lab): Promise<void> {
  const { control, people, pcs, dialect, disputed } = lab;
  const present = control.experiments().filter(({ state }) => state === 'normal');
  const ours = present.filter(({ id }) => !people.created.has(id) && !people.edited.has(id));
  const blanks = ours.filter(({ title }) => title.startsWith('labfeed '));
  const count = new Map<string, number>();
  for (const { title } of ours) count.set(title, (count.get(title) ?? 0) + 1);
  for (const title of pcs.flatMap(({ titles }) => titles)) {
    const times = count.get(title) ?? 0;
    const isEdited = [...people.edited.values()].includes(title);
    if (disputed.has(title)) expect(times, title).toBeLessThanOrEqual(1);
    else expect(times, title).toBe(isEdited || people.deleted.has(title) ? 0 : 1);
    count.delete(title);
  }
  // There is nothing else but blank experiments.
  for (const { title } of blanks) count.delete(title);
  expect([...count.keys()]).toEqual([]);
  for (const { id, title, comments, tags, body, uploads } of ours.filter((one) => !blanks.includes(one))) {
    // `recover` asks a person to check those of a lost journal, whose delivery may not have been finished.
    if (lab.withoutComments.has(id)) expect(comments.length, title).toBeLessThanOrEqual(1);
    else expect({ title, comments: comments.length, tags }).toEqual({ title, comments: 1, tags: ['balance'] });
    const version = pcs.flatMap(({ revised }) => revised.get(title) ?? [])[0] ?? '';
    if (!disputed.has(title)) expect(body, title).toContain(`sha256:${version}`);
    // Raw files and plots are attached later. Those of earlier versions are archived or deleted.
    const shown = uploads.filter(({ state }) => state === 1);
    const plots = shown.filter(({ real_name }) => real_name.endsWith('-plot.png'));
    expect(plots.length, title).toBeLessThanOrEqual(1);
    expect(shown.length - plots.length, title).toBeLessThanOrEqual(1);
    expect(body.split('<img').length - 1, title).toBeLessThanOrEqual(plots.length);
  }
  await verifyBlanks(
    lab,
    blanks.map(({ id }) => id),
  );
  for (const { id, title } of present) if (people.edited.has(id)) expect(title).toBe(EDITED);
  for (const [id, title] of people.created) {
    const entry = present.find((one) => one.id === id);
    expect({ title: entry?.title, comments: entry?.comments, body: entry?.body ?? '' }).toEqual({
      title,
      comments: [],
      body: '',
    });
  }
  const allowed = [...ALLOWED, ...(dialect === 'v2' ? [] : ELABFTW), ...(lab.isFleet ? SESSION_KEYS : [])];
  const unexpected = control
    .requests()
    .filter(({ method, path }) => !allowed.some((form) => form.test(`${method} ${path}`)));
  expect(unexpected).toEqual([]);
}

/** A blank experiment is that of a poisoned run, or a spare; `audit` lists it. */
async function verifyBlanks({ pcs }: Lab, blanks: readonly number[]): Promise<void> {
  const audits = await Promise.all(pcs.map((pc) => pc.json<{ findings: readonly { experiment?: number }[] }>('audit')));
  const listed = audits.flatMap(({ findings }) => findings.map(({ experiment }) => experiment));
  expect(blanks.filter((id) => !listed.includes(id))).toEqual([]);
}
