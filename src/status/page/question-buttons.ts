import type { ExistingAnswer } from '../api.js';
import { confirm, type Question } from './confirm.js';
import type { Decide } from './decide.js';
import { h } from './dom.js';
import { day, plural } from './words.js';

interface Choice {
  readonly label: string;
  readonly question: Question;
  /** What is decided, given what was filled in. */
  answer(filledIn: string): ExistingAnswer;
}

/** The answers to the question that many old files raise. */
export function questionButtons(instrument: string, asked: number, decide: Decide): HTMLElement {
  const buttons = choicesFor(instrument, plural(asked, 'old file')).map(
    ({ label, question, answer }, index) => {
      const button = h('button', { type: 'button', className: index === 0 ? 'primary' : '' }, label);
      button.addEventListener('click', async () => {
        const filledIn = await confirm(question);
        if (filledIn !== undefined)
          await decide({ kind: 'backfill', instrument, existing: answer(filledIn) });
      });
      return button;
    },
  );
  return h('div', { className: 'actions' }, ...buttons);
}

const MONTH_MS = 30 * 86_400_000;

const choicesFor = (instrument: string, files: string): Choice[] => [
  {
    label: 'Take them all …',
    question: {
      title: `Take ${files} of ${instrument}?`,
      text: [
        'Each becomes an experiment, after the runs that come in now.',
        'labfeed deletes nothing in the notebook: this cannot be undone from here.',
      ],
      action: `Take ${files}`,
    },
    answer: () => 'ingest',
  },
  {
    label: 'Only the newer ones …',
    question: {
      title: `Take the old files of ${instrument} since when?`,
      text: [
        'Those that were changed on that day or later are filed; the older ones are passed over for good.',
      ],
      field: { label: 'Since', type: 'date', value: day(Date.now() - MONTH_MS) },
      action: 'Take those',
    },
    answer: (since) => ({ since }),
  },
  {
    label: 'Pass them over …',
    question: {
      title: `Pass over ${files} of ${instrument}?`,
      text: ['They stay where they are and are not filed. Only files that come from now on are.'],
      action: 'Pass them over',
    },
    answer: () => 'skip',
  },
];
