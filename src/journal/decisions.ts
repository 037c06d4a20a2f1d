import { basename } from 'node:path';
import { z } from 'zod';
import { type Backfill, backfillSchema } from '../config/schema.js';
import { referenceOf } from '../markers.js';
import type { RunStep } from '../outbox.js';
import { plural } from '../text.js';

const id = z.int().positive();

/** What people can ask for, as it is stored. */
export const requestSchema = z.discriminatedUnion('kind', [
  /**
   * A held run continues where it stopped; the file of a quarantined run is read again. `only`: nothing is done unless
   * the run is still in this state.
   */
  z.strictObject({ kind: z.literal('retry'), run: id, only: z.enum(['quarantined', 'held']).exactOptional() }),
  /** This experiment belongs to the run, whatever it contains. */
  z.strictObject({ kind: z.literal('adopt'), run: id, server: z.string(), experiment: id }),
  /** File the content again, as another run. */
  z.strictObject({ kind: z.literal('refile'), run: id }),
  /** `undo`: it needs a decision again. */
  z.strictObject({ kind: z.literal('ignore'), run: id, undo: z.literal(true).exactOptional() }),
  /** Remove everything but the run's identity. */
  z.strictObject({ kind: z.literal('erase'), run: id }),
  /** Decide about the backlog of an instrument. */
  z.strictObject({ kind: z.literal('backfill'), instrument: z.string(), existing: backfillSchema }),
  /** Post missing comments again, each named by the id that it had. Without comments: continue at once. */
  z.strictObject({
    kind: z.literal('repair'),
    run: id,
    comments: z.array(z.strictObject({ n: id, comment: id })).readonly(),
    /** Files that are missing, each by the id that it had, or that were refused. */
    uploads: z
      .array(z.strictObject({ n: id, upload: id.nullable() }))
      .readonly()
      .exactOptional(),
  }),
  /** Read the file of a done run again, and update its experiment and comments. */
  z.strictObject({ kind: z.literal('remap'), run: id }),
]);

export type Request = z.output<typeof requestSchema>;

/** What a request is about, for people. */
export const subjectOf = (request: Request): string => ('run' in request ? `run ${request.run}` : request.instrument);

export const answerSchema = z.strictObject({
  /** Whether it was done. A refused request has changed nothing. */
  done: z.boolean(),
  /** For people. */
  text: z.string(),
  /** The instrument whose folder has files to be read again. */
  rescan: z.string().optional(),
});

export type Answer = z.output<typeof answerSchema>;

export const runRowSchema = z.object({
  id: z.number(),
  instrument: z.string(),
  sha256: z.string(),
  copy: z.string(),
  refiling: z.number(),
  /** Empty if the run was erased. */
  path: z.string(),
  size: z.number(),
  step: z.enum(['pending', 'creating', 'created', 'described', 'done']),
  parked: z.enum(['quarantined', 'held', 'ignored']).nullable(),
  failure: z.string().nullable(),
  experiment: z.number().nullable(),
  dueAt: z.number(),
  /** Whether there is a draft. A run that was recovered or pruned has none. */
  hasDraft: z.number().transform((count) => count > 0),
  /** The run that it was last refiled as. */
  refiledAs: z.number().nullable(),
  /** Of a growing file. */
  generation: z.number().nullish(),
  /** Whether that still gets lines. */
  grows: z
    .number()
    .nullish()
    .transform((value) => value === 1),
});

/** A run as a decision sees it. */
export type RunRow = Readonly<z.output<typeof runRowSchema>>;

/** What a decision depends on besides the run. */
export interface Facts {
  readonly at: number;
  readonly source: Source;
  /** Another run that has the experiment to adopt. */
  readonly owner: number | undefined;
  /** The posted comments of the run. */
  readonly comments: readonly PostedComment[];
  /** Its raw files, with their ids in the notebook. */
  readonly uploads: readonly { readonly n: number; readonly upload: number | null }[];
  /** Other runs that are held for the same drift; undefined if accepting the drift has no effect. */
  readonly driftPeers: readonly number[] | undefined;
  /** The next refiling count of the run whose reference no run has. */
  readonly refiling: number;
  /** The number that the next new run gets. */
  readonly nextRun: number;
  /** Where labfeed has moved its file. */
  readonly movedTo?: string | undefined;
}

/** What is now where a run was read from. */
export interface Source {
  readonly path: string;
  readonly has: 'nothing' | 'otherBytes' | 'itsBytes';
}

interface PostedComment {
  readonly n: number;
  readonly comment: number;
}

/** A decision: changes to the outbox, and the answer for the person. A refused request changes nothing. */
export interface Decision {
  readonly answer: Answer;
  readonly changes: readonly Change[];
}

export type Change =
  /** Of the run itself, unless another one is named. */
  | { readonly kind: 'set'; readonly run?: number; readonly values: RunValues }
  | { readonly kind: 'history'; readonly run?: number; readonly event: string; readonly detail?: object }
  /** Every comment is looked for before it is posted. */
  | { readonly kind: 'lookForComments' }
  /** These comments are gone from the notebook, and are posted again. */
  | { readonly kind: 'repostComments'; readonly comments: readonly PostedComment[] }
  /** These files are not in the notebook, and are uploaded again. */
  | { readonly kind: 'reattach'; readonly numbers: readonly number[] }
  | { readonly kind: 'dropSpare'; readonly server: string; readonly experiment: number }
  /** Adds a run with the same content, and with the same draft if there is one. */
  | { readonly kind: 'refile'; readonly as: number; readonly refiling: number; readonly reference: string }
  | { readonly kind: 'requestRemap'; readonly path: string }
  | { readonly kind: 'cancelRemap' }
  /** Later runs are compared with the shape of this one. */
  | { readonly kind: 'acceptShape' }
  /** Removes everything but the run's identity and the ids that the notebook assigned. */
  | { readonly kind: 'erase' };

export interface RunValues {
  readonly step?: RunStep;
  readonly parked?: 'quarantined' | 'held' | 'ignored' | null;
  readonly failure?: null;
  readonly reason?: string | null;
  readonly mapping?: string;
  readonly server?: string;
  readonly experiment?: number;
  readonly adopted?: 1;
  readonly attempts?: 0;
  readonly dueAt?: 0;
}

export type RunRequest = Exclude<Request, { readonly kind: 'backfill' }>;

type RequestOf<Kind> = Extract<RunRequest, { readonly kind: Kind }>;

/** For each request: why it is refused (undefined if it is not), and what it does. */
const DECISIONS: {
  readonly [Kind in RunRequest['kind']]: {
    refuse(run: RunRow, facts: Facts, request: RequestOf<Kind>): string | undefined;
    accept(run: RunRow, facts: Facts, request: RequestOf<Kind>): Decision;
  };
} = {
  retry: { refuse: refuseRetry, accept: retry },
  adopt: { refuse: refuseAdopt, accept: adopt },
  refile: { refuse: refuseRefile, accept: refile },
  remap: { refuse: refuseRemap, accept: remap },
  ignore: { refuse: refuseIgnore, accept: ignore },
  erase: { refuse: refuseErase, accept: erase },
  repair: { refuse: refuseRepair, accept: repair },
};

/** Decides about one run. A pure function: the caller gathers the facts and applies the changes in one transaction. */
export function decide<Kind extends RunRequest['kind']>(
  run: RunRow | undefined,
  request: RequestOf<Kind> & { readonly kind: Kind; readonly run: number },
  facts: Facts,
): Decision {
  if (run === undefined) return refused(`there is no run ${request.run}`);
  const { refuse, accept } = DECISIONS[request.kind];
  const reason = refuse(run, facts, request);
  if (reason !== undefined) return refused(`${nameOf(run)} ${reason}`);
  const decision = accept(run, facts, request);
  return ACCEPTS_DRIFT.has(request.kind) ? withDriftAccepted(run, facts, decision) : decision;
}

const refused = (text: string): Decision => ({ answer: { done: false, text }, changes: [] });

const accepted = (text: string, ...changes: readonly Change[]): Decision => ({
  answer: { done: true, text },
  changes,
});

/** These accept a run as it is, whatever its columns and units. */
const ACCEPTS_DRIFT: ReadonlySet<Request['kind']> = new Set(['retry', 'adopt', 'refile']);

function withDriftAccepted(run: RunRow, { driftPeers }: Facts, { answer, changes }: Decision): Decision {
  if (run.parked === null || run.failure !== 'drift' || driftPeers === undefined) return { answer, changes };
  const peers = driftPeers.flatMap((peer): Change[] => [
    { kind: 'set', run: peer, values: { parked: null, failure: null, reason: null } },
    { kind: 'history', run: peer, event: 'retried', detail: { with: run.id } },
  ]);
  const text =
    driftPeers.length === 0
      ? answer.text
      : `${answer.text}; ${plural(driftPeers.length, 'other run')} held for the same drift ${driftPeers.length === 1 ? 'continues' : 'continue'} too`;
  return { answer: { ...answer, text }, changes: [...changes, { kind: 'acceptShape' }, ...peers] };
}

function refuseRetry(run: RunRow, _: Facts, { only }: RequestOf<'retry'>): string | undefined {
  const { id, step, parked, refiledAs } = run;
  if (only !== undefined && parked !== only) return undefined;
  const refileIt = `to file it again: labfeed refile ${id}`;
  if (refiledAs !== null) return statusOf(run);
  if (isErased(run)) return `${statusOf(run)}; ${refileIt}`;
  if (parked === null && step === 'done')
    return `${statusOf(run)}; to update it with the current mapping: labfeed retry ${id} --remap; ${refileIt}`;
  if (parked === null) return statusOf(run);
  // The server was restored to a state without its experiment: there is nothing to continue with.
  if (step !== 'done') return undefined;
  return run.experiment === null
    ? `${statusOf(run)}, and its experiment no longer exists; ${refileIt}`
    : `${statusOf(run)}; ${refileIt}`;
}

/** A quarantined run is read again, if its file is still there; a held run continues where it stopped. */
function retry(run: RunRow, { source }: Facts, { only }: RequestOf<'retry'>): Decision {
  // The retry of another run, or a reload, has released it since it was listed.
  if (only !== undefined && run.parked !== only) return accepted(`${nameOf(run)} is no longer ${only}`);
  const isAboutFile = wasQuarantined(run);
  if (!run.hasDraft || (isAboutFile && source.has === 'itsBytes')) return readAgain(run);
  const text = `${nameOf(run)} ${continuation(run)}`;
  return accepted(
    isAboutFile ? `${text}; its file is no longer at ${run.path}, so the existing draft is sent` : text,
    { kind: 'set', values: { parked: null, failure: null, reason: null, attempts: 0, dueAt: 0 } },
    { kind: 'history', event: 'retried' },
  );
}

/** Whether it is quarantined, or was before a person ignored it. */
const wasQuarantined = ({ parked, failure }: RunRow): boolean =>
  parked === 'quarantined' || (parked === 'ignored' && failure !== 'conflict' && failure !== 'drift');

function continuation({ step, experiment }: RunRow): string {
  if (experiment !== null) return `continues where it stopped, and keeps experiment ${experiment}`;
  return step === 'creating'
    ? 'continues: labfeed searches again for the experiment whose creation was not confirmed'
    : 'starts again; none of it is in the notebook yet';
}

/** Quarantined until its file is read, even if it was ignored: intake re-reads only the files of such runs. */
function readAgain(run: RunRow): Decision {
  const keeps = run.experiment === null ? '' : `; it keeps experiment ${run.experiment}`;
  const { answer, changes } = accepted(
    `${nameOf(run)} will be re-read as soon as ${run.path || 'its file'} is seen${keeps}`,
    { kind: 'set', values: { mapping: '', parked: 'quarantined' } },
    { kind: 'history', event: 'retried' },
  );
  return { answer: { ...answer, rescan: run.instrument }, changes };
}

function refuseAdopt(run: RunRow, { owner }: Facts, { experiment }: RequestOf<'adopt'>): string | undefined {
  if (run.parked !== 'held') return `${statusOf(run)}; an experiment can be assigned only to a held run`;
  if (!run.hasDraft)
    return `was recovered from the notebook and its file has not been read since; use labfeed refile ${run.id}`;
  return owner === undefined ? undefined : `cannot adopt experiment ${experiment}, which belongs to run ${owner}`;
}

/** The server's highest id stays as it is: a mistyped number must not become a floor. */
function adopt(run: RunRow, _: Facts, { server, experiment }: RequestOf<'adopt'>): Decision {
  const continues = { parked: null, failure: null, reason: null, attempts: 0, dueAt: 0 } as const;
  return accepted(
    `${nameOf(run)} is now assigned experiment ${experiment}, whose content will be overwritten`,
    { kind: 'set', values: { server, experiment, adopted: 1, step: 'created', ...continues } },
    // It may contain comments of the run already.
    { kind: 'lookForComments' },
    { kind: 'dropSpare', server, experiment },
    { kind: 'history', event: 'adopted', detail: { server, experiment, before: run.experiment } },
  );
}

function refuseRefile(run: RunRow): string | undefined {
  if (run.refiledAs !== null) return `${statusOf(run)}; refile that one`;
  return isOnItsWay(run)
    ? `${statusOf(run)}; only a run that is done, quarantined, held or ignored can be refiled`
    : undefined;
}

function refile(run: RunRow, { nextRun, refiling }: Facts): Decision {
  const { id, instrument, sha256, copy, step, parked, hasDraft } = run;
  // Never read, so never filed: there is nothing to distinguish a second filing from.
  if (!hasDraft && step === 'pending') return readAgain(run);
  const reference = referenceOf({ instrument, sha256, copy, refiling });
  // A parked run is replaced: otherwise it could be filed in addition to its successor.
  const replaced: Change = { kind: 'set', values: { parked: 'ignored', reason: `refiled as run ${nextRun}` } };
  const { answer, changes } = accepted(
    `${nameOf(run)} is refiled as run ${nextRun}${hasDraft ? '' : ' once its file has been read'}`,
    { kind: 'cancelRemap' },
    { kind: 'refile', as: nextRun, refiling, reference },
    ...(parked === null ? [] : [replaced]),
    { kind: 'history', event: 'refiled', detail: { as: nextRun } },
    { kind: 'history', run: nextRun, event: 'refiled', detail: { of: id } },
  );
  return { answer: hasDraft ? answer : { ...answer, rescan: instrument }, changes };
}

function refuseRemap(run: RunRow, { source, movedTo }: Facts): string | undefined {
  if (run.generation != null)
    return 'is of a file that keeps growing: the current mapping is used for its next lines, and what was filed stays';
  const { id, parked, experiment, hasDraft, refiledAs } = run;
  if (refiledAs !== null) return `${statusOf(run)}; remap that one`;
  if (parked !== null) return `${statusOf(run)}; only a done run can be remapped; use labfeed retry ${id}`;
  if (isOnItsWay(run) || experiment === null) return `${statusOf(run)}; only a done run can be remapped`;
  if (!hasDraft)
    return `has no draft, because it was recovered or is older than \`keep\`, so labfeed cannot tell what people changed; to file it again: labfeed refile ${id}`;
  if (source.has === 'nothing' && movedTo !== undefined)
    return `cannot be remapped: its file was moved to ${movedTo}; copy it back to ${source.path} first`;
  if (source.has === 'nothing')
    return `cannot be remapped: its file is no longer at ${source.path}; its experiment stays as it is`;
  if (source.has === 'otherBytes')
    return `cannot be remapped: the content of ${source.path} has changed; its experiment stays as it is`;
  return undefined;
}

/** The run stays done until its file has been read and differs from what was filed. */
function remap(run: RunRow, { source: { path } }: Facts): Decision {
  const { answer, changes } = accepted(
    `${nameOf(run)} will be re-read as soon as ${path} is seen; edits that people made to experiment ${run.experiment} are kept`,
    { kind: 'requestRemap', path },
    { kind: 'set', values: { failure: null, reason: null } },
    { kind: 'history', event: 'remapAsked' },
  );
  return { answer: { ...answer, rescan: run.instrument }, changes };
}

function refuseIgnore(run: RunRow, _: Facts, { undo }: RequestOf<'ignore'>): string | undefined {
  if (undo) {
    // It may have new lines, which `retry` files.
    if (run.generation != null)
      return `${nameOf(run)} belongs to a file that keeps growing, so it cannot be put back; to file it: labfeed retry ${run.id}`;
    // Without a failure, labfeed itself has set it aside: another run has its file.
    return run.parked === 'ignored' && run.failure !== null && run.refiledAs === null && !isErased(run)
      ? undefined
      : `${statusOf(run)}; only a run that a person has ignored can be put back`;
  }
  return run.parked === 'quarantined' || run.parked === 'held'
    ? undefined
    : `${statusOf(run)}; only a quarantined or held run can be ignored`;
}

/** Failure and reason stay: they tell why it was not filed, and how it continues if somebody retries it. */
function ignore(run: RunRow, _: Facts, { undo }: RequestOf<'ignore'>): Decision {
  if (undo) {
    const parked = wasQuarantined(run) ? 'quarantined' : 'held';
    return accepted(
      `${nameOf(run)} is ${parked} again and needs a decision`,
      { kind: 'set', values: { parked } },
      { kind: 'history', event: 'ignoreUndone', detail: { became: parked } },
    );
  }
  return accepted(
    `${nameOf(run)} is ignored; to undo this: labfeed ignore ${run.id} --undo`,
    { kind: 'set', values: { parked: 'ignored' } },
    { kind: 'history', event: 'ignored', detail: { was: run.parked } },
  );
}

function refuseErase(run: RunRow): string | undefined {
  const { id, parked } = run;
  if (isErased(run)) return undefined;
  if (run.grows) return 'is of a file that keeps growing; rename or remove the file first, then erase the run';
  if (parked === 'held') return `is held; first retry, adopt, refile or ignore run ${id}`;
  return isOnItsWay(run)
    ? `${statusOf(run)}; only a run that is done, quarantined or ignored can be erased`
    : undefined;
}

/** The same bytes are not filed again. The answer does not name the file, because answers are kept for a while. */
function erase(run: RunRow, { source }: Facts): Decision {
  const { id, instrument, experiment, refiledAs } = run;
  if (isErased(run)) return accepted(`run ${id} is already erased`);
  const remains = [
    ...(experiment === null ? [] : [`its experiment ${experiment} stays in the notebook`]),
    ...(source.has === 'itsBytes'
      ? [`its file is still in the folder of ${instrument} and will not be filed again unless it changes`]
      : []),
    ...(refiledAs === null ? [] : [`it was refiled as run ${refiledAs}, which still has the file name`]),
  ];
  return accepted(
    [`run ${id} is erased`, ...remains].join('; '),
    { kind: 'erase' },
    { kind: 'history', event: 'erased' },
  );
}

function refuseRepair(run: RunRow): string | undefined {
  if (run.parked !== null) return `${statusOf(run)}; it needs a decision`;
  return run.step === 'done' && !run.hasDraft
    ? `has no draft, so the text of its comments is unknown; to file it again: labfeed refile ${run.id}`
    : undefined;
}

/** Posts missing comments again. A run that is not done yet continues without waiting. */
function repair(run: RunRow, { at, comments, uploads }: Facts, request: RequestOf<'repair'>): Decision {
  if (run.step !== 'done')
    return run.dueAt > at
      ? accepted(`${nameOf(run)} continues now`, { kind: 'set', values: { dueAt: 0 } })
      : accepted(`${nameOf(run)} is already being delivered`);
  // Only under the id that was missing: if it was repaired since, it has another one.
  const missing = request.comments.filter(({ n, comment }) =>
    comments.some((posted) => posted.n === n && posted.comment === comment),
  );
  const files = (request.uploads ?? []).filter(({ n, upload }) =>
    uploads.some((known) => known.n === n && known.upload === upload),
  );
  const numbers = missing.map(({ n }) => n).join(', ');
  const parts = [
    ...(missing.length === 0
      ? []
      : [
          `${missing.length === 1 ? 'comment' : 'comments'} ${numbers} on experiment ${run.experiment} will be posted again`,
        ]),
    ...(files.length === 0
      ? []
      : [`${plural(files.length, 'raw file')} will be attached to experiment ${run.experiment} again`]),
  ];
  if (parts.length === 0) return accepted(`${nameOf(run)} is already repaired`);
  const reposted: Change[] = [
    { kind: 'repostComments', comments: missing },
    { kind: 'set', values: { step: 'described', attempts: 0, dueAt: 0 } },
  ];
  return accepted(
    `${nameOf(run)}: ${parts.join('; ')}`,
    ...(missing.length === 0 ? [] : reposted),
    ...(files.length === 0 ? [] : [{ kind: 'reattach', numbers: files.map(({ n }) => n) } as const]),
    {
      kind: 'history',
      event: 'repaired',
      detail: { comments: missing, ...(files.length > 0 && { files: files.length }) },
    },
  );
}

/** What intake knows about the backlog of an instrument. */
export interface BacklogFacts {
  readonly isScanned: boolean;
  readonly files: number;
  readonly toFile: number;
}

export function decideBackfill(
  instrument: string,
  existing: Backfill,
  { isScanned, files, toFile }: BacklogFacts,
): Answer {
  if (existing === 'undo')
    return files === 0
      ? { done: false, text: `no file of ${instrument} was skipped by a decision about its backlog` }
      : {
          done: true,
          text: `${instrument}: ${plural(files, 'skipped file')} of the backlog ${files === 1 ? 'needs' : 'need'} a decision again`,
        };
  if (!isScanned)
    return {
      done: false,
      text: `the first scan of ${instrument} has not finished; run this command again when it has`,
    };
  if (files === 0) return { done: false, text: `${instrument} has no backlog that needs a decision` };
  const skipped = files - toFile;
  const parts = [
    ...(toFile > 0 ? [`${plural(toFile, 'file')} of the backlog will be filed, after new files`] : []),
    ...(skipped > 0
      ? [`${plural(skipped, 'file')} of the backlog skipped; to undo this: labfeed backfill ${instrument} --undo`]
      : []),
  ];
  return { done: true, text: `${instrument}: ${parts.join('; ')}`, rescan: instrument };
}

const isErased = ({ path }: RunRow): boolean => path === '';

const isOnItsWay = ({ step, parked }: RunRow): boolean => step !== 'done' && parked === null;

const nameOf = ({ id, path }: RunRow): string => (path === '' ? `run ${id}` : `run ${id} (${basename(path)})`);

function statusOf(run: RunRow): string {
  const { step, parked, experiment, refiledAs } = run;
  if (refiledAs !== null) return `was refiled as run ${refiledAs}`;
  if (isErased(run) && parked === 'ignored') return 'was erased';
  if (parked !== null) return `is ${parked}`;
  if (step === 'done') return experiment === null ? 'is done' : `is done (experiment ${experiment})`;
  return 'is being delivered';
}
