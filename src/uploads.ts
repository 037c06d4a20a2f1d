import type { FailureClass } from './errors.js';

/**
 * The raw files that are to be attached. They are uploaded after their run is done, so that a large file delays nothing
 * else, and independently of it.
 */
export interface Uploads {
  /** Takes up to `limit` runs with files that are due. Nobody else gets them until they are released. */
  claim(now: number, limit: number, scope: UploadScope): Promise<number[]>;
  release(run: number): Promise<void>;
  nextDueAt(scope: UploadScope): Promise<number | undefined>;
  /** The files of a run, with the experiment that they belong to. */
  load(run: number): Promise<RunUploads>;
  /** All changes of one call become durable together. */
  record(run: number, ...changes: UploadChange[]): Promise<void>;
  /** Whether a file with this content is still to be uploaded. */
  needs(sha256: string): Promise<boolean>;
  /** The contents that are still to be uploaded, except for ignored runs. */
  needed(): Promise<ReadonlySet<string>>;
}

/**
 * What the configuration says about uploads. Files wait if their run was filed at another notebook, or if its
 * instrument is not configured: the configuration may come back.
 */
export interface UploadScope {
  readonly server: string;
  /** Instruments whose files are attached. */
  readonly attached: readonly string[];
  /** Instruments whose files are not attached, whatever the notebook: what waits is given up. */
  readonly dropped: readonly string[];
}

/** A raw file of a run as intake hands it over. */
export interface NewAttachment {
  /** As the notebook is to show it. */
  readonly name: string;
  /** Where it was read from. */
  readonly path: string;
  readonly sha256: string;
  readonly size: number;
  /** Why it cannot be attached at all. */
  readonly problem?: string;
}

/** The plot of a run, as intake hands it over. */
export type NewPlot =
  | (Omit<NewAttachment, 'path' | 'problem'> & PlotPlace & { readonly reason?: never })
  /** `isFailed`: there should be one, but it could not be drawn or kept: a run that is read again keeps its own. */
  | { readonly name?: never; readonly at: number; readonly reason: string; readonly isFailed: boolean };

interface PlotPlace {
  /** Where it belongs in the draft's body. */
  readonly at: number;
  /** In words, for people who cannot see it. */
  readonly description: string;
}

export interface PlannedUpload extends Omit<NewAttachment, 'problem'> {
  readonly n: number;
  /** `surplus`: a plot of an earlier reading, or a raw file of an earlier version, which is deleted. */
  readonly kind: 'raw' | 'plot' | 'surplus';
  /** Of a plot, as is the next: see `PlotPlace`. */
  readonly at: number | undefined;
  readonly description: string | undefined;
  /** The markup that shows the plot in the draft's body, if it is there. */
  readonly image: string | undefined;
  /** The latest time a POST of it may have been sent. */
  readonly intentAt: number | undefined;
  /** Its id, once the notebook has it. */
  readonly upload: number | undefined;
  /** Why it was not attached so far. */
  readonly reason: string | undefined;
  /** Fingerprints of earlier versions of the raw file: the one that is attached is replaced. */
  readonly earlier: readonly string[];
  /** Whether it is to be uploaded now. */
  readonly isOpen: boolean;
  readonly attempts: number;
}

export interface RunUploads {
  readonly run: number;
  readonly instrument: string;
  readonly server: string | undefined;
  readonly experiment: number | undefined;
  readonly files: readonly PlannedUpload[];
}

export type UploadChange =
  /** Durable before the POST: after a crash, delivery looks for the upload instead of sending it twice. */
  | { readonly kind: 'uploadIntended'; readonly n: number; readonly sha256: string; readonly at: number }
  /** The file was certainly not attached. */
  | { readonly kind: 'notUploaded'; readonly n: number }
  | ({ readonly kind: 'uploaded'; readonly n: number; readonly upload: number; readonly found: boolean } & BodyChange)
  /** It will not be attached; the run is done nevertheless. If its readings were only summarised, it gets them all. */
  | ({ readonly kind: 'uploadRefused'; readonly n: number } & UploadProblem & BodyChange)
  | ({ readonly kind: 'uploadPostponed'; readonly n: number; readonly dueAt: number } & UploadProblem)
  /** A surplus plot is gone. */
  | { readonly kind: 'uploadRemoved'; readonly n: number }
  /** Files are not attached to this notebook, or not for this instrument. */
  | { readonly kind: 'uploadsDropped' };

/** The draft's body, with or without the plot or a note that a file is not attached. Absent if it stays as it is. */
interface BodyChange {
  readonly body?: string;
  /** The body that it was made from: if the draft has another one by now, that stays. */
  readonly was?: string;
  /** See `PlannedUpload.image`. */
  readonly image?: string;
}

interface UploadProblem {
  readonly failure: FailureClass;
  readonly reason: string;
}

/** Raw files of one instrument that wait to be attached at one notebook. */
export interface WaitingUploads {
  readonly instrument: string;
  readonly server?: string | undefined;
  readonly files: number;
  readonly bytes: number;
  /** When the first of their runs was added. */
  readonly since: number;
}

/** All of them together; undefined if none wait. */
export function totalUploads(waiting: readonly WaitingUploads[] = []) {
  if (waiting.length === 0) return undefined;
  const sum = (key: 'files' | 'bytes'): number => waiting.reduce((total, part) => total + part[key], 0);
  return { files: sum('files'), bytes: sum('bytes'), since: Math.min(...waiting.map(({ since }) => since)) };
}

/** What the configuration says about uploads. */
export interface UploadSettings {
  readonly url: string | undefined;
  /** The instruments without a mistake. */
  readonly instruments: readonly string[];
}

/** Why files wait until the configuration is changed, and what to do; undefined if they are uploaded as it is. */
export function uploadObstacle(
  { instrument, server }: Pick<WaitingUploads, 'instrument' | 'server'>,
  { url, instruments }: UploadSettings,
): { readonly text: string; readonly hint: string } | undefined {
  if (server !== url)
    return {
      text: `the run was filed at ${server}, which is not the configured notebook`,
      hint: 'set `notebook.url` back to attach the file; to give it up, set `attach: never` for the instrument',
    };
  if (instruments.includes(instrument)) return undefined;
  return {
    text: `${instrument} is not in the configuration, or has an error there`,
    hint: 'put the instrument back to attach the file; to give it up, set `attach: never` there',
  };
}
