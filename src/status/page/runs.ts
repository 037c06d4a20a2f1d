import type { Job, PageState } from '../api.js';
import type { Ask } from './ask.js';
import { byId, createList, createSlot, h, type Row, setText } from './dom.js';
import { chip, nameOf, timeAgo } from './parts.js';
import { type Route, runsHash } from './route.js';
import { createFilters } from './run-filters.js';
import { plural } from './words.js';

const PAGE = 50;

export interface RunsDeps {
  readonly ask: Pick<Ask, 'jobs'>;
  now(): number;
  go(hash: string): void;
}

export type RunsRoute = Extract<Route, { view: 'runs' }>;

export interface RunsView {
  open(route: RunsRoute): Promise<void>;
  /** Something has changed: what is shown is asked for again. */
  refresh(state: PageState): Promise<void>;
}

/** The journal's runs, the newest first, by state and instrument. */
export function createRuns({ ask, now, go }: RunsDeps): RunsView {
  const filters = createFilters((state, instrument) => go(runsHash({ state, instrument })));
  const list = h('ul', { className: 'plain panel rows' });
  const told = h('p', { className: 'soft', attrs: { role: 'status' } });
  const paging = h('nav', { className: 'paging', attrs: { 'aria-label': 'Pages of runs' } });
  byId('view-runs').append(h('h1', { tabIndex: -1 }, 'Runs'), filters.element, told, list, paging);
  const rows = createList<Job>(list, { key: ({ id }) => String(id), create: () => createRow(now) });
  const pages = createSlot(paging);
  let route: RunsRoute | undefined;
  /** Of two answers that cross, the later question counts. */
  let turn = 0;

  async function load(shown: RunsRoute): Promise<void> {
    turn += 1;
    const mine = turn;
    try {
      const jobs = await ask.jobs({ ...shown, limit: PAGE + 1 });
      if (mine !== turn) return;
      rows(jobs.slice(0, PAGE));
      list.hidden = jobs.length === 0;
      setText(told, tellOf(jobs.length, shown));
      pages([shown, jobs[PAGE - 1]?.id, jobs.length > PAGE], () => pagesOf(shown, jobs));
    } catch (error) {
      setText(told, error instanceof Error ? error.message : String(error));
    }
  }

  return {
    async open(next) {
      route = next;
      filters.choose(next);
      await load(next);
    },
    async refresh({ overview }) {
      filters.offer(overview.instruments.map(({ name }) => name));
      if (!route) return;
      filters.choose(route);
      await load(route);
    },
  };
}

function tellOf(found: number, { state, instrument, before }: RunsRoute): string {
  const which = `${state ? `${state} ` : ''}${instrument ? `of ${instrument} ` : ''}`.trim();
  if (found === 0) return before === undefined ? `No runs ${which}`.trim() : 'No older runs';
  const older = before === undefined ? '' : `, older than run ${before}`;
  return found > PAGE
    ? `The newest ${PAGE} runs ${which}${older}`
    : `${plural(found, 'run')} ${which}${older}`;
}

function pagesOf(shown: RunsRoute, jobs: readonly Job[]) {
  const { state, instrument, before } = shown;
  const last = jobs[PAGE - 1];
  return [
    before !== undefined && h('a', { href: runsHash({ state, instrument }) }, 'The newest'),
    jobs.length > PAGE &&
      last !== undefined &&
      h('a', { href: runsHash({ state, instrument, before: last.id }), className: 'older' }, 'Older runs'),
  ];
}

function createRow(now: () => number): Row<Job> {
  const element = h('li', { className: 'row' });
  const slot = createSlot(element);
  return {
    element,
    update: (job) =>
      slot(job, () => [
        h(
          'a',
          { href: `#/runs/${job.id}`, className: 'row-link' },
          chip(job.state),
          h('span', { className: 'name' }, nameOf(job)),
          h('span', { className: 'soft' }, job.instrument),
          h(
            'span',
            { className: 'soft' },
            job.experiment === undefined ? '' : `experiment ${job.experiment}`,
          ),
          h('span', { className: 'soft when' }, timeAgo(job.addedAt, now())),
        ),
      ]),
  };
}
