import type { FiledRun, Filing } from '../../journal/evidence.js';
import type { ReadableExperiment } from '../readable-notebook.js';
import { type CommentDeps, examineComments } from './comments.js';
import type { Finding, FindingKind, Repair } from './findings.js';

export interface FiledRunDeps extends CommentDeps {
  readonly server: string;
  /** Whether an experiment that is read is one that somebody deleted, which some notebooks only mark. */
  isDeleted(experiment: ReadableExperiment): boolean;
  look(experiment: number): Promise<ReadableExperiment | 'missing' | 'private'>;
  /** Rejects unless it is the notebook itself who answers. */
  prove(): Promise<unknown>;
  filingOf(run: number): Filing;
  /** Whether a body says that it came from this run. */
  isFiled(body: unknown, run: FiledRun): boolean;
}

type Draft = NonNullable<Filing['draft']>;

/** What became of a run in the notebook. */
export interface Examined {
  readonly findings: readonly Finding[];
  /** Whether the experiment and all comments were read back, and hold what was filed. */
  readonly isProved: boolean;
  readonly missing: Repair['comments'];
}

/** Holds one run that the journal has as done against the notebook. */
export async function examineFiled(run: FiledRun, deps: FiledRunDeps): Promise<Examined> {
  const { experiment } = run;
  if (run.server !== deps.server)
    return unproved(run, 'elsewhere', `it was filed at ${run.server ?? 'another notebook'}`);
  if (experiment === undefined) return unproved(run, 'vanished', 'the journal has no experiment of it');
  const page = await deps.look(experiment);
  if (page === 'missing') {
    // A proxy that has lost the notebook behind it answers 404 to everything: absence counts only from the notebook.
    await deps.prove();
    return unproved(run, 'vanished', 'there is no such experiment any more');
  }
  if (page === 'private') return unproved(run, 'forbidden', 'this key may not read it');
  if (deps.isDeleted(page)) return unproved(run, 'deleted', 'somebody deleted it');
  if (!deps.isFiled(page.body, run))
    return unproved(run, 'not ours', 'its body lacks the line that says which run it is');
  return examineContent(run, experiment, page, deps);
}

async function examineContent(
  run: FiledRun,
  experiment: number,
  page: ReadableExperiment,
  deps: FiledRunDeps,
): Promise<Examined> {
  const { draft, comments } = deps.filingOf(run.id);
  const edited = draft ? editsOf(page, draft, deps) : [];
  const held = await examineComments({ experiment, reference: run.reference, comments }, page, deps);
  return {
    findings: [
      ...edited.map((text) => found(run, 'edited', text)),
      ...held.findings.map(({ kind, text }) => found(run, kind, text)),
    ],
    // A title is a name; a body or a comment that somebody changed may no longer hold what the file does.
    isProved: held.isProved && !edited.includes(OTHER_BODY),
    missing: held.missing,
  };
}

function editsOf(page: ReadableExperiment, draft: Draft, { textOf }: FiledRunDeps): string[] {
  const { title, date, body } = page;
  const edits: string[] = [];
  if (typeof title === 'string' && squeezed(title) !== squeezed(draft.title))
    edits.push(`the title is now ${JSON.stringify(title)}`);
  if (typeof date === 'string' && !date.startsWith(draft.date)) edits.push(`the date is now ${date}`);
  // Servers clean the markup that they store: only what it says is compared.
  if (textOf(String(body)) !== textOf(draft.body)) edits.push(OTHER_BODY);
  return edits;
}

const OTHER_BODY = 'the body says something else';

const squeezed = (text: string): string => text.replace(/\s+/g, '');

const found = (run: FiledRun, kind: FindingKind, text: string): Finding => ({
  kind,
  instrument: run.instrument,
  run: run.id,
  experiment: run.experiment,
  path: run.path,
  text,
});

/** A run that the notebook does not bear out. */
export const unproved = (run: FiledRun, kind: FindingKind, text: string): Examined => ({
  findings: [found(run, kind, text)],
  isProved: false,
  missing: [],
});
