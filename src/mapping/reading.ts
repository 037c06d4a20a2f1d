import { createHash } from 'node:crypto';
import type { Instrument } from '../config/load.js';
import { explain, FileChangedError, FileError, LabfeedError, type Place } from '../errors.js';
import type { Mapped } from '../map/draft.js';
import { describePlot, isPlot } from '../map/plot.js';
import {
  type Draft,
  type FileRecord,
  type FoundFile,
  type IdentifiedFile,
  type PlotPicture,
  type Shape,
  shapeOf,
} from '../model.js';
import type { Reading } from '../outbox.js';
import { CopyWriter } from '../spool.js';
import { FileBusyError, identify } from '../watch/identify.js';
import type { Mapping } from './mapping.js';

/**
 * One run read in one go: hashed unless it was before, parsed and mapped. All of it can be sent between threads.
 * `isCopied`: whether all bytes that were hashed were copied.
 */
export type ReadRun =
  | {
      readonly sha256: string;
      readonly isCopied?: boolean;
      readonly draft: Draft;
      readonly omits: readonly string[];
      readonly shape: Shape;
      readonly plot?: PlotPicture | undefined;
      readonly error?: never;
    }
  /** `sha256`: absent if the file could not be hashed. */
  | {
      readonly sha256?: string;
      readonly isCopied?: never;
      readonly draft?: never;
      readonly omits?: never;
      readonly shape?: never;
      readonly plot?: never;
      readonly error: SentError;
    };

/** An error as it is sent between threads. */
export interface SentError {
  readonly name: string;
  readonly message: string;
  readonly where: Place | undefined;
  readonly hint: string | undefined;
}

/** What is needed of a run whose files are attached. */
export interface ReadOptions {
  /** Where the bytes are copied to as they are hashed. */
  readonly copyTo?: string | undefined;
  readonly isPlotted?: boolean;
}

/** Never throws: an error is a result too. */
export async function readRun(
  file: FoundFile | IdentifiedFile,
  mapping: Mapping,
  nowMs: number,
  { copyTo, isPlotted }: ReadOptions = {},
): Promise<ReadRun> {
  let sha256: string | undefined;
  try {
    const copy = copyTo === undefined ? undefined : new CopyWriter(copyTo);
    const hashed = () => identify(file, { guard: mapping.guard, copy });
    const identified = isIdentified(file) ? file : await hashed().finally(() => copy?.close());
    sha256 = identified.sha256;
    const record = await mapping.parse(identified);
    const mapped = mapping.map(record, identified, nowMs);
    const { draft, omits } = mapped;
    const plot = isPlotted ? await drawPicture(record, mapped, mapping) : undefined;
    return { sha256, draft, omits, shape: shapeOf(record), plot, ...(copy && { isCopied: copy.isComplete }) };
  } catch (error) {
    return { ...(sha256 !== undefined && { sha256 }), error: sendError(error) };
  }
}

/** The same record always gives the same bytes. The run is filed even if its plot cannot be drawn. */
export async function drawPicture(
  record: FileRecord,
  { plotAt }: Pick<Mapped, 'plotAt'>,
  { choosePlot }: Pick<Mapping, 'choosePlot'>,
): Promise<PlotPicture> {
  try {
    const plot = choosePlot(record);
    if (!isPlot(plot)) return { at: plotAt, reason: plot.reason, isFailed: false };
    const description = describePlot(plot);
    const { drawSvg, textsOf } = await import('../plot/draw.js');
    const { toPng } = await import('../plot/svg.js');
    const svg = drawSvg(plot, description);
    const png = await toPng(svg);
    const sha256 = createHash('sha256').update(png).digest('hex');
    return { png, sha256, description, texts: textsOf(svg), at: plotAt };
  } catch (error) {
    return { at: plotAt, reason: explain(error), isFailed: true };
  }
}

const isIdentified = (file: FoundFile | IdentifiedFile): file is IdentifiedFile => 'sha256' in file;

export function sendError(error: unknown): SentError {
  const { name, message } = error instanceof Error ? error : { name: 'Error', message: String(error) };
  const { where, hint } = error instanceof LabfeedError ? error : {};
  return { name, message, where, hint };
}

const ERRORS = { FileError, FileChangedError, FileBusyError, LabfeedError };

/** The same error in the thread that receives it. */
export function receiveError({ name, message, where, hint }: SentError): Error {
  const Known = Object.hasOwn(ERRORS, name) ? ERRORS[name as keyof typeof ERRORS] : undefined;
  return Known ? new Known(message, { ...(where && { where }), hint }) : new Error(message);
}

/** Without a fingerprint if the thread was ended before it had hashed the file. */
export type EarlyReading = Reading & {
  readonly sha256?: string | undefined;
  readonly isCopied?: boolean | undefined;
  readonly plot?: PlotPicture | undefined;
};

/** A file that does not fit its mapping is a result too: its run is quarantined with the reason. */
export function toReading(
  read: ReadRun,
  { drift, parse, layout }: Pick<Instrument, 'drift' | 'parse' | 'layout'>,
): EarlyReading {
  const { sha256, isCopied, draft, omits, shape, plot, error } = read;
  const shaped = shape && { shape, drift, kinds: parse?.length ?? 1, layout };
  if (draft) return { sha256, isCopied, plot, draft, omits, shaped };
  const problem = receiveError(error);
  // A file that has changed, or cannot be read now, is tried again later.
  if (!(problem instanceof FileError)) throw problem;
  return { sha256, problem };
}
