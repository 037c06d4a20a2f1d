import { type ComponentChildren, createContext } from 'preact';
import { useContext, useEffect, useRef, useState } from 'preact/hooks';
import { formatDay, plural } from '../../text.js';
import type { DecisionAnswer, DecisionRequest, Job } from '../api.js';
import { postDecision } from './client.js';

interface Choice {
  readonly label: string;
  /** Asked first if the decision cannot be undone from the page. */
  readonly question?: Question;
  request(input: string): DecisionRequest;
}

interface Question {
  readonly title: string;
  readonly paragraphs: readonly string[];
  readonly action: string;
  readonly field?: { readonly label: string; readonly type: 'number' | 'date'; readonly initial?: string };
}

const Perform = createContext<(choice: Choice) => Promise<void>>(async () => undefined);

interface OpenQuestion {
  readonly question: Question;
  answer(input: string | undefined): void;
}

const MAX_OUTCOMES = 4;

/** Lets the components within make decisions: asks for confirmation, sends them, and shows what became of them. */
export function Decisions({ children }: { children: ComponentChildren }) {
  const [open, setOpen] = useState<OpenQuestion>();
  const [outcomes, setOutcomes] = useState<readonly DecisionAnswer[]>([]);

  async function ask(question: Question): Promise<string | undefined> {
    const input = await new Promise<string | undefined>((answer) => setOpen({ question, answer }));
    setOpen(undefined);
    return input;
  }

  async function perform({ question, request }: Choice): Promise<void> {
    const input = question ? await ask(question) : '';
    if (input === undefined) return;
    const outcome = await postDecision(request(input)).catch(
      (error: Error): DecisionAnswer => ({ done: false, text: error.message }),
    );
    setOutcomes((shown) => [...shown, outcome].slice(-MAX_OUTCOMES));
  }

  const close = (outcome: DecisionAnswer): void => setOutcomes((shown) => shown.filter((other) => other !== outcome));
  return (
    <Perform.Provider value={perform}>
      {children}
      {open && <ConfirmDialog {...open} />}
      <div class="outcomes" role="log" aria-label="Decisions">
        {outcomes.map((outcome) => (
          <div key={outcome} class={`outcome ${outcome.done ? 'done' : 'refused'}`}>
            <p>
              <b>{outcome.done ? 'Done: ' : 'Not done: '}</b>
              {outcome.text}
            </p>
            <button type="button" class="quiet" onClick={() => close(outcome)}>
              Close
            </button>
          </div>
        ))}
      </div>
    </Perform.Provider>
  );
}

/** Closing the dialog returns the focus to the button that opened it. */
function ConfirmDialog({ question: { title, paragraphs, action, field }, answer }: OpenQuestion) {
  const dialog = useRef<HTMLDialogElement>(null);
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  const isConfirmed = (): boolean => dialog.current?.returnValue === 'confirmed';
  const closed = (): void => answer(isConfirmed() ? (input.current?.value ?? '') : undefined);
  return (
    <dialog ref={dialog} class="dialog" aria-labelledby="dialog-title" onClose={closed}>
      <form method="dialog">
        <h2 id="dialog-title">{title}</h2>
        {paragraphs.map((text) => (
          <p>{text}</p>
        ))}
        {field && (
          <label for="dialog-field">
            {field.label}
            <input
              ref={input}
              id="dialog-field"
              type={field.type}
              defaultValue={field.initial ?? ''}
              required
              autofocus
              {...(field.type === 'number' && { min: 1, step: 1, inputMode: 'numeric' })}
            />
          </label>
        )}
        <div class="actions">
          <button type="submit" class="primary" value="confirmed">
            {action}
          </button>
          <button type="button" autofocus={!field} onClick={() => dialog.current?.close()}>
            Cancel
          </button>
        </div>
      </form>
    </dialog>
  );
}

function ChoiceButton({ choice, isPrimary }: { choice: Choice; isPrimary: boolean }) {
  const perform = useContext(Perform);
  const [isBusy, setBusy] = useState(false);
  async function click(): Promise<void> {
    if (isBusy) return;
    setBusy(true);
    await perform(choice);
    setBusy(false);
  }
  // Not `disabled`: a disabled button loses the focus.
  return (
    <button type="button" class={isPrimary ? 'primary' : ''} aria-disabled={isBusy} onClick={click}>
      {choice.label}
    </button>
  );
}

const Choices = ({ choices, hasPrimary }: { choices: readonly Choice[]; hasPrimary: boolean }) => (
  <div class="actions">
    {choices.map((choice, index) => (
      <ChoiceButton key={choice.label} choice={choice} isPrimary={index === 0 && hasPrimary} />
    ))}
  </div>
);

type RunChoice = 'retry' | 'adopt' | 'refile' | 'ignore';

export function RunChoices({ job }: { job: Job }) {
  const needsDecision = job.state === 'quarantined' || job.state === 'held';
  const choices = choicesFor(job);
  if (choices.length === 0) return null;
  return (
    <div class="decision">
      <p class="soft">{adviceFor(job)}</p>
      <Choices choices={choices.map((name) => RUN_CHOICES[name](job))} hasPrimary={needsDecision} />
    </div>
  );
}

function choicesFor({ state, failure, experiment, step, path }: Job): RunChoice[] {
  switch (state) {
    case 'quarantined':
      return experiment === undefined ? ['retry', 'ignore'] : ['retry', 'refile', 'ignore'];
    case 'held':
      if (failure === 'drift') return ['retry', 'ignore'];
      return step === 'done' ? ['refile', 'adopt', 'ignore'] : ['retry', 'adopt', 'refile', 'ignore'];
    case 'done':
      return path === '' ? [] : ['refile'];
    case 'ignored':
      return path === '' ? ['refile'] : ['retry'];
    case 'waiting':
    case 'queued':
    case 'sending':
      return [];
  }
}

function adviceFor({ state, failure }: Job): string {
  if (state === 'done') return 'This run is filed. Refile it to create a second experiment.';
  if (state === 'ignored') return 'This run was set aside. You can still file it.';
  if (state === 'held')
    return failure === 'drift'
      ? 'If the instrument now always writes this format, retry: the run is filed and becomes the new reference.'
      : 'labfeed cannot decide this. Check the notebook, then choose what to do.';
  return failure === 'file'
    ? 'Fix the mapping or the file, then retry to read it again.'
    : 'Fix the cause, then retry to read it again and send it.';
}

const NO_UNDO = 'labfeed never deletes experiments, so this cannot be undone here.';

const RUN_CHOICES: Readonly<Record<RunChoice, (job: Job) => Choice>> = {
  retry: ({ id }) => ({ label: 'Retry', request: () => ({ kind: 'retry', run: id }) }),
  adopt: ({ id }) => ({
    label: 'Adopt…',
    question: {
      title: `Which experiment belongs to run ${id}?`,
      paragraphs: [
        'This replaces the title, date and body of the experiment and adds the tags and comments of the run.',
      ],
      field: { label: 'Experiment number', type: 'number' },
      action: 'Adopt experiment',
    },
    request: (experiment) => ({ kind: 'adopt', run: id, experiment: Number(experiment) }),
  }),
  refile: ({ id }) => ({
    label: 'Refile…',
    question: {
      title: `File run ${id} again?`,
      paragraphs: ['This creates a new experiment. An existing one stays as it is.', NO_UNDO],
      action: 'Refile run',
    },
    request: () => ({ kind: 'refile', run: id }),
  }),
  ignore: ({ id }) => ({
    label: 'Ignore…',
    question: {
      title: `Ignore run ${id}?`,
      paragraphs: ['It is set aside and not filed, even if the same file appears again. You can file it later.'],
      action: 'Ignore run',
    },
    request: () => ({ kind: 'ignore', run: id }),
  }),
};

const MONTH_MS = 30 * 86_400_000;

/** What a person can decide about a backlog. */
export function BacklogChoices({ instrument, asked }: { instrument: string; asked: number }) {
  const files = plural(asked, 'existing file');
  const choices: Choice[] = [
    {
      label: 'File all…',
      question: {
        title: `File ${files} of ${instrument}?`,
        paragraphs: ['Each file becomes an experiment. New runs are filed first.', NO_UNDO],
        action: `File ${files}`,
      },
      request: () => ({ kind: 'backfill', instrument, existing: 'ingest' }),
    },
    {
      label: 'File recent ones…',
      question: {
        title: `Which existing files of ${instrument} should be filed?`,
        paragraphs: ['Files modified on this day or later are filed. Older files are skipped.'],
        field: { label: 'Modified since', type: 'date', initial: formatDay(Date.now() - MONTH_MS) },
        action: 'File these',
      },
      request: (since) => ({ kind: 'backfill', instrument, existing: { since } }),
    },
    {
      label: 'Skip all…',
      question: {
        title: `Skip ${files} of ${instrument}?`,
        paragraphs: ['They stay in the folder and are not filed. Files that arrive from now on are filed.'],
        action: 'Skip them',
      },
      request: () => ({ kind: 'backfill', instrument, existing: 'skip' }),
    },
  ];
  return <Choices choices={choices} hasPrimary />;
}
