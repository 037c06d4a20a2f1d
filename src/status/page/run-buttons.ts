import type { Job } from '../api.js';
import { confirm } from './confirm.js';
import type { Decide } from './decide.js';
import { h } from './dom.js';

/** What a person can decide about a run, with a word on when which is right. Nothing where there is nothing to decide. */
export function runButtons(job: Job, decide: Decide): HTMLElement | undefined {
  const needsSomebody = job.state === 'quarantined' || job.state === 'held';
  const buttons = choicesFor(job).map((choice, index) =>
    button(job, choice, index === 0 && needsSomebody, decide),
  );
  if (buttons.length === 0) return undefined;
  return h(
    'div',
    { className: 'decision' },
    h('p', { className: 'soft' }, adviceFor(job)),
    h('div', { className: 'actions' }, ...buttons),
  );
}

type Choice = 'retry' | 'adopt' | 'refile' | 'ignore';

function choicesFor({ state, failure, experiment, step }: Job): Choice[] {
  switch (state) {
    case 'quarantined':
      return experiment === undefined ? ['retry', 'ignore'] : ['retry', 'refile', 'ignore'];
    case 'held':
      if (failure === 'drift') return ['retry', 'ignore'];
      return step === 'done' ? ['refile', 'adopt', 'ignore'] : ['retry', 'adopt', 'refile', 'ignore'];
    case 'done':
    case 'ignored':
      return ['refile'];
    case 'waiting':
    case 'queued':
    case 'sending':
      return [];
  }
}

function adviceFor({ state, failure }: Job): string {
  if (state === 'done')
    return 'It is filed. To have it in the notebook once more, as an experiment of its own:';
  if (state === 'ignored') return 'It was set aside. To file it after all:';
  if (state === 'held')
    return failure === 'drift'
      ? 'If the instrument writes like this from now on, retry files it and takes it as the new pattern.'
      : 'Only a person can know: look into the notebook, then decide.';
  return failure === 'file'
    ? 'Once the mapping or the file is put right, retry reads it anew.'
    : 'Once the cause is put right, retry reads it anew and sends it again.';
}

function button(job: Job, choice: Choice, first: boolean, decide: Decide): HTMLElement {
  const element = h('button', { type: 'button', className: first ? 'primary' : '' }, LABELS[choice]);
  element.addEventListener('click', async () => {
    element.disabled = true;
    await CHOICES[choice](job, decide);
    element.disabled = false;
    // A disabled button loses the focus, and with it the place in the page.
    if (document.activeElement === document.body && element.isConnected) element.focus();
  });
  return element;
}

const LABELS: Readonly<Record<Choice, string>> = {
  retry: 'Retry',
  adopt: 'Adopt …',
  refile: 'Refile …',
  ignore: 'Ignore …',
};

const CHOICES: Readonly<Record<Choice, (job: Job, decide: Decide) => Promise<void>>> = {
  retry: ({ id }, decide) => decide({ kind: 'retry', run: id }),
  async adopt({ id }, decide) {
    const number = await confirm({
      title: `Which experiment is that of run ${id}?`,
      text: [
        'Its title, date, body, tags and comments are written into that experiment, whatever it holds now.',
      ],
      field: { label: 'Number of the experiment', type: 'number' },
      action: 'Adopt it',
    });
    if (number !== undefined) await decide({ kind: 'adopt', run: id, experiment: Number(number) });
  },
  async refile({ id, experiment }, decide) {
    const old = experiment === undefined ? '' : ` Experiment ${experiment} stays as it is.`;
    const answer = await confirm({
      title: `File run ${id} once more?`,
      text: [
        `It gets a new experiment of its own.${old}`,
        'labfeed deletes nothing: this cannot be undone from here.',
      ],
      action: 'Refile it',
    });
    if (answer !== undefined) await decide({ kind: 'refile', run: id });
  },
  async ignore({ id }, decide) {
    const answer = await confirm({
      title: `Ignore run ${id}?`,
      text: [
        'It is set aside and will not be filed, also when the same file comes again.',
        'Refile can still file it later.',
      ],
      action: 'Ignore it',
    });
    if (answer !== undefined) await decide({ kind: 'ignore', run: id });
  },
};
