import type { JobDetail, PageState } from '../api.js';
import type { Ask } from './ask.js';
import type { Decide } from './decide.js';
import { byId, type Child, createSlot, h } from './dom.js';
import { inWords } from './history-words.js';
import { bodyFrame, chip, factsOf, isWebAddress, nameOf, reasonOf, timeAgo } from './parts.js';
import { runButtons } from './run-buttons.js';
import { bytes, clockTime, fullTime } from './words.js';

export interface RunDeps {
  readonly ask: Pick<Ask, 'job'>;
  readonly decide: Decide;
  now(): number;
}

export interface RunView {
  open(id: number): Promise<void>;
  refresh(state: PageState): Promise<void>;
}

/** One run: where it is, why, what was sent or will be, and all that happened to it. */
export function createRun({ ask, decide, now }: RunDeps): RunView {
  const head = h('div');
  const draft = h('div');
  const history = h('div');
  byId('view-run').append(
    h('p', { className: 'back' }, h('a', { href: '#/runs' }, '← All runs')),
    head,
    draft,
    history,
  );
  const slots = { head: createSlot(head), draft: createSlot(draft), history: createSlot(history) };
  let shown: number | undefined;
  let servers: PageState['overview']['servers'] = [];

  async function load(id: number): Promise<void> {
    try {
      const job = await ask.job(id);
      if (id === shown) show(job);
    } catch (error) {
      if (id !== shown) return;
      const message = error instanceof Error ? error.message : String(error);
      slots.head(message, () => [h('h1', { tabIndex: -1 }, `Run ${id}`), h('p', {}, message)]);
      slots.draft('', () => []);
      slots.history('', () => []);
    }
  }

  function show(job: JobDetail): void {
    const { draft: drafted, comments, history: events, ...facts } = job;
    slots.head(facts, () => headOf(job, servers, decide, now()));
    slots.draft([job.id, drafted, comments], () => draftOf(job));
    slots.history(events, () => historyOf(job));
  }

  return {
    async open(id) {
      shown = id;
      await load(id);
    },
    async refresh({ overview }) {
      servers = overview.servers;
      if (shown !== undefined) await load(shown);
    },
  };
}

function headOf(
  job: JobDetail,
  servers: PageState['overview']['servers'],
  decide: Decide,
  now: number,
): Child[] {
  const isOpen = job.state === 'queued' || job.state === 'sending';
  return [
    h('h1', { tabIndex: -1 }, nameOf(job)),
    h(
      'p',
      { className: 'standing' },
      chip(job.state),
      ` Run ${job.id} of ${job.instrument}, came `,
      timeAgo(job.addedAt, now),
    ),
    job.reason !== undefined &&
      h('div', { className: 'panel item' }, reasonOf(job.reason, job.path), runButtons(job, decide)),
    factsOf([
      ['Experiment', experimentOf(job, servers)],
      ['File', job.paths.length > 0 ? linesOf(job.paths) : job.path || 'erased'],
      ['Size', bytes(job.size)],
      ['Modified', fullTime(job.modifiedMs)],
      ['SHA-256', h('code', {}, job.sha256)],
      ['Attempts', job.attempts > 0 ? String(job.attempts) : undefined],
      ['Next attempt', isOpen && job.dueAt > now ? clockTime(job.dueAt, now) : undefined],
      ['Differs from the runs before', job.drift.length > 0 ? linesOf(job.drift) : undefined],
    ]),
    job.reason === undefined && runButtons(job, decide),
  ];
}

const linesOf = (lines: readonly string[]): HTMLElement =>
  h('ul', { className: 'plain' }, ...lines.map((line) => h('li', {}, line)));

/** eLabFTW's pages have addresses that are known; of others, only where the notebook is. */
function experimentOf(
  { experiment, server }: JobDetail,
  servers: PageState['overview']['servers'],
): Child & (Node | string) {
  if (experiment === undefined) return 'none yet';
  if (server === undefined || !isWebAddress(server)) return String(experiment);
  const isElabftw = servers.find(({ url }) => url === server)?.dialect === 'elabftw';
  const href = isElabftw ? `${server.replace(/\/$/, '')}/experiments.php?mode=view&id=${experiment}` : server;
  const at = isElabftw ? `${experiment}` : `${experiment} at ${server}`;
  return h('a', { href, target: '_blank', rel: 'noreferrer' }, at);
}

function draftOf({ id, state, draft, comments }: JobDetail): Child[] {
  if (!draft) return [];
  const heading = state === 'done' ? 'As it was sent to the notebook' : 'As the notebook will show it';
  return [
    h('h2', {}, heading),
    h(
      'div',
      { className: 'panel draft' },
      h('h3', {}, draft.title),
      h(
        'p',
        { className: 'soft' },
        draft.date,
        ...draft.tags.map((tag) => h('span', { className: 'tag' }, tag)),
      ),
      bodyFrame(`Body of run ${id}`, draft.body, { src: `/api/jobs/${id}/body` }),
    ),
    ...comments.map(({ n, text, comment }) =>
      h(
        'figure',
        { className: 'panel comment' },
        h(
          'figcaption',
          {},
          `Comment ${n}${comment === undefined ? ', not sent yet' : `, number ${comment} in the notebook`}`,
        ),
        h('pre', { tabIndex: 0 }, text),
      ),
    ),
  ];
}

const historyOf = ({ history }: JobDetail): Child[] => [
  h('h2', {}, 'What happened'),
  h(
    'ol',
    { className: 'plain panel history' },
    ...history.map((happening) =>
      h(
        'li',
        { className: 'event' },
        h(
          'time',
          { className: 'event-time', dateTime: new Date(happening.at).toISOString() },
          fullTime(happening.at),
        ),
        h('span', {}, inWords(happening)),
      ),
    ),
  ),
];
