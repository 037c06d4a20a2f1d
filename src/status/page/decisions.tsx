import { type ComponentChildren, createContext } from 'preact';
import { useContext, useEffect, useRef, useState } from 'preact/hooks';
import { formatDay, plural } from '../../text.js';
import type { DecisionAnswer, DecisionRequest, Job } from '../api.js';
import { postDecision, role } from './client.js';

interface Choice {
  readonly label: string;
  /** Asked first if the decision cannot be undone from the page. */
  readonly question?: Question;
  request(input: string): DecisionRequest;
  /** What undoes the decision. */
  readonly undo?: DecisionRequest;
}

interface Outcome extends DecisionAnswer {
  readonly undo?: DecisionRequest | undefined;
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
  const [outcomes, setOutcomes] = useState<readonly Outcome[]>([]);

  async function ask(question: Question): Promise<string | undefined> {
    const input = await new Promise<string | undefined>((answer) => setOpen({ question, answer }));
    setOpen(undefined);
    return input;
  }

  async function send(request: DecisionRequest, undo?: DecisionRequest): Promise<void> {
    const answer = await postDecision(request).catch(
      (error: Error): DecisionAnswer => ({ done: false, text: error.message }),
    );
    // The answer names the command, but here is a button.
    const text = undo ? answer.text.replace(/; to undo this: labfeed .*$/, '') : answer.text;
    const outcome = { undo: answer.done ? undo : undefined, done: answer.done, text };
    setOutcomes((shown) => [...shown, outcome].slice(-MAX_OUTCOMES));
  }

  async function perform({ question, request, undo }: Choice): Promise<void> {
    const input = question ? await ask(question) : '';
    if (input === undefined) return;
    await send(request(input), undo);
  }

  const close = (outcome: Outcome): void => setOutcomes((shown) => shown.filter((other) => other !== outcome));
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
            {outcome.undo && (
              <button
                type="button"
                class="quiet"
                onClick={() => {
                  close(outcome);
                  if (outcome.undo) void send(outcome.undo);
                }}
              >
                Undo
              </button>
            )}
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

/** Shown once, instead of buttons that do not work. */
export const MayNotDecide = () =>
  role === 'read' ? (
    <p class="soft">
      You can read this page but not decide. To decide, <a href="/login">log in with the token</a>, or open the link
      that <code>labfeed status --login</code> prints on the machine that runs labfeed.
    </p>
  ) : null;

const Choices = ({ choices, hasPrimary }: { choices: readonly Choice[]; hasPrimary: boolean }) => (
  <div class="actions">
    {choices.map((choice, index) => (
      <ChoiceButton key={choice.label} choice={choice} isPrimary={index === 0 && hasPrimary} />
    ))}
  </div>
);

type RunChoice = 'retry' | 'adopt' | 'refile' | 'ignore' | 'decideAgain';

export function RunChoices({ job }: { job: Job }) {
  const needsDecision = job.state === 'quarantined' || job.state === 'held';
  const choices = choicesFor(job);
  if (choices.length === 0 || role === 'read') return null;
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
      if (path === '') return ['refile'];
      // Without a failure, labfeed has set it aside.
      return failure === undefined ? ['retry'] : ['retry', 'decideAgain'];
    case 'waiting':
    case 'queued':
    case 'sending':
      return [];
  }
}

function adviceFor({ state, failure }: Job): string {
  if (state === 'done') return 'This run is filed.';
  if (state === 'ignored') return 'This run was set aside. You can still file it.';
  if (state === 'held')
    return failure === 'drift'
      ? 'If the instrument now always writes these columns, accept them: the run is filed, and later runs are compared with it.'
      : 'labfeed cannot decide this. Check the notebook, then choose what to do.';
  return failure === 'file' ? 'Fix the mapping or the file first.' : 'Fix the cause first.';
}

/** Says what a retry does. */
function retryLabel({ state, failure }: Job): string {
  if (state === 'ignored') return 'File it after all';
  if (state === 'held') return failure === 'drift' ? 'Accept new columns' : 'Check the notebook again';
  return failure === 'file' ? 'Read the file again' : 'Read and send it again';
}

const NO_UNDO = 'labfeed never deletes experiments, so this cannot be undone here.';

const RUN_CHOICES: Readonly<Record<RunChoice, (job: Job) => Choice>> = {
  retry: (job) => ({ label: retryLabel(job), request: () => ({ kind: 'retry', run: job.id }) }),
  adopt: ({ id }) => ({
    label: 'Use an existing experiment…',
    question: {
      title: `Which experiment belongs to run ${id}?`,
      paragraphs: [
        'This replaces the title, date and body of the experiment and adds the tags and comments of the run.',
      ],
      field: { label: 'Experiment number', type: 'number' },
      action: 'Use this experiment',
    },
    request: (experiment) => ({ kind: 'adopt', run: id, experiment: Number(experiment) }),
  }),
  refile: ({ id, state }) => ({
    label: state === 'done' ? 'File it a second time…' : 'Create a new experiment…',
    question: {
      title: `File run ${id} again?`,
      paragraphs: ['This creates a new experiment. An existing one stays as it is.', NO_UNDO],
      action: 'Create experiment',
    },
    request: () => ({ kind: 'refile', run: id }),
  }),
  ignore: ({ id }) => ({
    label: 'Do not file it',
    request: () => ({ kind: 'ignore', run: id }),
    undo: { kind: 'ignore', run: id, undo: true },
  }),
  decideAgain: ({ id }) => ({
    label: 'Move back to “Needs a decision”',
    request: () => ({ kind: 'ignore', run: id, undo: true }),
    undo: { kind: 'ignore', run: id },
  }),
};

const MONTH_MS = 30 * 86_400_000;

/** What a person can decide about a backlog. */
export function BacklogChoices({ instrument, asked }: { instrument: string; asked: number }) {
  if (role === 'read') return null;
  const files = plural(asked, 'existing file');
  const undo: DecisionRequest = { kind: 'backfill', instrument, existing: 'undo' };
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
      undo,
    },
    {
      label: 'Skip all…',
      question: {
        title: `Skip ${files} of ${instrument}?`,
        paragraphs: ['They stay in the folder and are not filed. Files that arrive from now on are filed.'],
        action: 'Skip them',
      },
      request: () => ({ kind: 'backfill', instrument, existing: 'skip' }),
      undo,
    },
  ];
  return <Choices choices={choices} hasPrimary />;
}
