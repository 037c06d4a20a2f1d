import type { LiveAlarm, LiveInstrument, WaitingFile } from '../../live.js';
import type { RunState } from '../../model.js';
import type { InstrumentSummary } from '../api.js';
import { type Child, createSlot, h, type Row, setData } from './dom.js';
import { chip, runLink, timeAgo } from './parts.js';
import type { Plots } from './plot.js';
import { count, fileName, plural } from './words.js';

/** An instrument as the running daemon and the journal know it; either may not. */
export interface CardModel {
  readonly name: string;
  readonly live: LiveInstrument | undefined;
  readonly summary: InstrumentSummary | undefined;
  readonly alarms: readonly LiveAlarm[];
}

/** In the order in which they matter to somebody who passes by. */
const SHOWN_STATES: readonly RunState[] = ['done', 'queued', 'sending', 'quarantined', 'held', 'ignored'];

/** So many waiting files are named. */
const MOST_WAITING = 3;

export function createCard(plots: Plots, now: () => number): Row<CardModel> {
  const head = h('div', { className: 'card-head' });
  const last = h('div', { className: 'last' });
  const counts = h('ul', { className: 'plain counts' });
  const notes = h('div', { className: 'notes' });
  const plot = plots.create();
  const element = h('li', { className: 'panel card' }, head, last, plot.element, counts, notes);
  const slots = {
    head: createSlot(head),
    last: createSlot(last),
    counts: createSlot(counts),
    notes: createSlot(notes),
  };

  return {
    element,
    update(model) {
      const { name, live, summary, alarms } = model;
      const condition = conditionOf(live);
      const needsSomebody =
        alarms.length + (summary ? summary.runs.quarantined + summary.runs.held + summary.asked : 0);
      setData(element, 'tone', needsSomebody > 0 && condition.tone === 'well' ? 'look' : condition.tone);
      slots.head([name, condition], () => [
        h('h3', {}, name),
        h('span', { className: `condition ${condition.tone}` }, condition.text),
      ]);
      slots.last(summary?.last, () => lastOf(summary, now()));
      plot.update(summary?.hours ?? [], now());
      slots.counts(summary?.runs, () => countsOf(name, summary));
      slots.notes([live && { ...live, scannedAt: undefined }, alarms], () => notesOf(model, now()));
    },
  };
}

interface Condition {
  readonly tone: 'well' | 'look' | 'broken';
  readonly text: string;
}

function conditionOf(live: LiveInstrument | undefined): Condition {
  if (!live) return { tone: 'look', text: 'not configured any more' };
  if (live.line === 'stopped') return { tone: 'broken', text: 'stopped' };
  if (live.folder.state === 'missing') return { tone: 'broken', text: 'folder missing' };
  if (live.folder.state === 'unreadable') return { tone: 'broken', text: 'folder unreadable' };
  return { tone: 'well', text: live.line === 'starting' ? 'first look …' : 'watching' };
}

function lastOf(summary: InstrumentSummary | undefined, now: number): Child[] {
  const last = summary?.last;
  if (!last) return [h('p', { className: 'soft' }, 'No run yet')];
  return [
    h('p', { className: 'title' }, runLink(last)),
    h('p', {}, chip(last.state), ' ', timeAgo(last.addedAt, now)),
  ];
}

function countsOf(name: string, summary: InstrumentSummary | undefined): Child[] {
  if (!summary) return [];
  return SHOWN_STATES.filter((state) => summary.runs[state] > 0).map((state) => {
    const query = new URLSearchParams({ state, instrument: name });
    return h(
      'li',
      {},
      h(
        'a',
        { href: `#/runs?${query}`, className: `tally ${state}` },
        h('b', {}, count(summary.runs[state])),
        ` ${state}`,
      ),
    );
  });
}

function notesOf({ live, alarms }: CardModel, now: number): Child[] {
  if (!live) return [h('p', { className: 'soft' }, 'Its runs are kept; nothing is watched for it.')];
  const { folder, waiting, unmatched, lastFileAt, watch } = live;
  return [
    ...alarms.map(({ text }) => h('p', { className: 'alarm' }, text)),
    folder.reason !== undefined && h('p', { className: 'alarm' }, folder.reason),
    waiting.files > 0 && waitingOf(waiting.files, waiting.first),
    unmatched.files > 0 &&
      h(
        'p',
        {},
        `${plural(unmatched.files, 'file fits', 'files fit')} none of its patterns${
          unmatched.example === undefined ? '' : `, for example ${fileName(unmatched.example)}`
        }`,
      ),
    lastFileAt !== undefined && h('p', { className: 'soft' }, 'Last file ', timeAgo(lastFileAt, now)),
    h('p', { className: 'path' }, watch),
  ];
}

const waitingOf = (files: number, first: readonly WaitingFile[]): HTMLElement =>
  h(
    'div',
    {},
    h('p', {}, `${plural(files, 'file is', 'files are')} not still yet:`),
    h(
      'ul',
      { className: 'waiting' },
      ...first
        .slice(0, MOST_WAITING)
        .map(({ path, reason }) => h('li', {}, h('b', {}, fileName(path)), `, ${reason}`)),
    ),
  );
