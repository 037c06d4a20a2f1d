import PQueue from 'p-queue';
import type { Clock } from '../clock.js';
import type { Instrument } from '../config/load.js';
import type { Growing } from '../config/schema.js';
import { explain, FileError } from '../errors.js';
import type { Appended, NewGrowth } from '../growth.js';
import type { Generation, NewGeneration, OpenGeneration } from '../journal/growing.js';
import type { Journal } from '../journal/journal.js';
import type { Log } from '../log.js';
import type { Growth, GrowthTask } from '../mapping/growth.js';
import { type FoundHeader, type HeaderTask, MAX_LEAD_BYTES } from '../mapping/header.js';
import { receiveError } from '../mapping/reading.js';
import type { DiskFile, IdentifiedFile } from '../model.js';
import type { NewRun } from '../outbox.js';
import { containsSecret } from '../secrets.js';
import { formatCount, formatDay, plural } from '../text.js';
import { encodingOf, endOfLines, type Look, lineEndOf, look, readBlocks, readLead, tailOf } from '../watch/growing.js';
import { createGuard } from '../watch/guard.js';
import { standInFor } from '../watch/identify.js';
import type { Activity } from '../watch/intake.js';
import type { RawFiles } from '../watch/raw-files.js';

/** From new lines of a growing file to the outbox. Nothing is remembered as taken before it was handed over. */

/** Reads lines, in a thread with limits of time and memory. */
export interface LineReader {
  /** Finds the lines of a growing file that its later lines are read with. */
  findHeader(task: HeaderTask): Promise<FoundHeader>;
  /** Reads the new lines of a growing file. */
  readGrowth(task: GrowthTask): Promise<Growth>;
}

export interface FollowingDeps {
  readonly instrument: Instrument;
  readonly growing: Growing;
  readonly journal: Pick<Journal, 'intake' | 'outbox' | 'growing' | 'growths'>;
  readonly reader: LineReader;
  readonly rawFiles?: RawFiles | undefined;
  readonly activity: Activity;
  readonly observer: { quarantined?(instrument: string, path: string, problem: FileError): void };
  /** Whether a file with this path is one of the instrument's. */
  isOwn(path: string): boolean;
  /** Whether it is one of another instrument's. */
  isOthers(path: string): boolean;
  isSecretIn(text: string): boolean;
  wakeDelivery(): void;
  readonly signal: AbortSignal;
  readonly clock: Clock;
  readonly log: Log;
}

export type Context = ReturnType<typeof createContext>;

export function createContext(deps: FollowingDeps) {
  const { access, parse } = deps.instrument;
  return {
    ...deps,
    options: { guard: access && createGuard(access), encoding: parse?.[0]?.encoding ?? 'auto' },
    /** One look at a time, because rotation concerns several files. */
    looks: new PQueue({ concurrency: 1 }),
    /** Files without a reading are looked at again when labfeed starts, or with another mapping. */
    tried: new Set<string>(),
  };
}

export const startAt = async (
  file: DiskFile,
  offset: number,
  { instrument, options, isSecretIn }: Context,
): Promise<NewGeneration> => ({
  instrument: instrument.name,
  path: file.path,
  base: offset,
  ...withoutSecrets(await readBlocks(file, offset, options), isSecretIn),
});

/** The blocks that identify a file, unless they contain a secret: then less of the file is compared. */
function withoutSecrets<T extends Pick<Generation, 'head' | 'tail'>>(
  blocks: T,
  isSecretIn: (text: string) => boolean,
): T {
  const clean = (block: Uint8Array): Uint8Array =>
    isSecretIn(Buffer.from(block).toString('latin1')) ? new Uint8Array() : block;
  return { ...blocks, head: clean(blocks.head), tail: clean(blocks.tail) };
}

/** Lines that were handed over before a crash are not read again. */
export async function resume(generation: Generation, { journal }: Context): Promise<Generation> {
  const handed = await journal.growths.upto(generation.id);
  if (!handed || handed.upto <= generation.offset) return generation;
  const { upto: offset, lines, tail } = handed;
  return { ...generation, offset, lines, tail };
}

export async function loadGeneration({ id }: OpenGeneration, context: Context): Promise<Generation> {
  const generation = await context.journal.growing.get(id);
  if (!generation) throw new Error(`generation ${id} is not in the journal`);
  return resume(generation, context);
}

/** However often a file is replaced while it is read, each look ends. */
const MAX_REPLACED = 10;

/**
 * Takes all complete lines, batch by batch. Returns whether there were any. `replace`: finds out what to follow instead
 * if other content took the place of the file. Of a rotated file, the next look finds out where it is.
 */
export async function readAll(
  from: Generation,
  file: DiskFile,
  isBacklog: boolean,
  context: Context,
  replace?: (generation: Generation, file: DiskFile, seen: OtherContent, context: Context) => Promise<Generation>,
): Promise<boolean> {
  const { instrument, journal, options, signal, clock, wakeDelivery } = context;
  let generation = from;
  let hasGrown = false;
  let stamp: DiskFile = file;
  for (let replaced = 0; ; ) {
    signal.throwIfAborted();
    const seen = await look(file, followed(generation), options);
    stamp = { ...file, ...seen.stamp };
    if (seen.kind === 'other') {
      if (!replace || generation.place !== undefined || ++replaced > MAX_REPLACED) break;
      generation = await replace(generation, stamp, seen, context);
      continue;
    }
    if (seen.kind === 'shorter') {
      generation = await noteShorter(generation, seen, context);
      break;
    }
    const step = await takeLines(generation, stamp, seen, isBacklog, context);
    generation = step.generation;
    hasGrown ||= step.hasGrown;
    if (step.isDone) break;
  }
  if (await journal.growths.flush(generation.id)) wakeDelivery();
  await journal.growing.save({ ...generation, lookedAt: clock.now() });
  const [run] = await journal.growths.newest(generation.id);
  if (run !== undefined) journal.intake.remember(instrument.name, stamp, { sha256: run, copy: '', isErased: false });
  return hasGrown;
}

export const followed = ({ inode, base, offset, head, tail, headerEnd, low }: Generation) => ({
  ...{ inode, base, offset, head, tail, low, headerEnd: base + headerEnd },
});

async function noteShorter(
  generation: Generation,
  { low, stamp }: Extract<Look, { kind: 'shorter' }>,
  context: Context,
): Promise<Generation> {
  const gone = generation.offset - stamp.size;
  const note = `the file became shorter: the last ${plural(gone, 'byte')} of what was filed ${gone === 1 ? 'is' : 'are'} gone`;
  if (generation.low === undefined) await report(generation, `${note}; what was filed stays`, false, context);
  return { ...generation, low, note };
}

export type OtherContent = Extract<Look, { kind: 'other' }>;

interface Step {
  readonly generation: Generation;
  readonly hasGrown: boolean;
  /** Whether nothing more can be taken now. */
  readonly isDone: boolean;
}

type SeenLines = Extract<Look, { kind: 'lines' }>;

/** One batch of lines: parsed with the header, handed over, and only then remembered as taken. */
async function takeLines(
  before: Generation,
  file: DiskFile,
  seen: SeenLines,
  isBacklog: boolean,
  context: Context,
): Promise<Step> {
  const { journal, clock } = context;
  const isBack = before.low !== undefined;
  if (isBack) await report(before, 'the file has the lines again that were gone', false, context);
  const looked = { ...before, unfinished: seen.unfinished, low: undefined, ...(isBack && { note: undefined }) };
  const generation = looked.header ? looked : await withHeader(looked, file, context);
  const done = (changes: Partial<Generation> = {}): Step => ({
    generation: { ...generation, ...changes },
    hasGrown: false,
    isDone: true,
  });
  if (!generation.header || seen.bytes.length === 0) return done();
  const read = await readBatch(generation, file, seen.bytes, context);
  if ('problem' in read) return done({ note: await refuse(generation, file, read.problem, context) });
  const { growth } = read;
  const lines = seen.bytes.subarray(0, growth.bytes);
  const appended = await handOver(generation, file, growth, lines, isBacklog, context);
  if (appended.blocked !== undefined) return done({ note: appended.reason });
  const next: Generation = {
    ...generation,
    ...{ inode: seen.stamp.inode, offset: generation.offset + growth.bytes, lines: generation.lines + growth.lines },
    ...withoutSecrets({ head: seen.head, tail: tailOf(generation.tail, lines) }, context.isSecretIn),
    ...{ note: undefined, grownAt: clock.now() },
  };
  journal.growing.saveLater(next);
  const isAll = growth.bytes === seen.bytes.length;
  if (growth.isBreak) return { generation: await beginOther(next, file, context), hasGrown: true, isDone: false };
  return { generation: next, hasGrown: true, isDone: seen.isLast && isAll };
}

/** Other columns begin in the same file: a run of its own. */
async function beginOther(generation: Generation, file: DiskFile, context: Context): Promise<Generation> {
  const { journal } = context;
  await report(
    generation,
    `from line ${formatCount(generation.lines + 1)} on, the columns are others: what follows is another run`,
    true,
    context,
  );
  await journal.growths.flush(generation.id, true);
  const begun = await startAt(file, generation.offset, context);
  const { path, place, state, lines } = generation;
  return journal.growing.replace(
    { ...generation, state: 'closed', note: 'other columns follow' },
    { ...begun, path, place, state, lines },
  );
}

/** Without a mapping, a layout is recognised from several readings. */
const MIN_MEASURED_ROWS = 3;
/** So long and so large, a file may have nothing but its header. */
const MAX_HEADER_MS = 3_600_000;
const MAX_HEADER_BYTES = 16 * 1024;

async function withHeader(generation: Generation, file: DiskFile, context: Context): Promise<Generation> {
  const { instrument, journal, reader, options, clock } = context;
  const lead = await readLead(file, generation.base, MAX_LEAD_BYTES, options);
  if (lead.length === 0) return { ...generation, note: 'it has no complete line yet' };
  const encoding = encodingOf(generation.base === 0 ? lead : generation.head, options.encoding);
  const minRows = instrument.parse ? 1 : MIN_MEASURED_ROWS;
  const { header, reason } = await reader.findHeader({ path: generation.path, lead, encoding, minRows });
  if (header && context.isSecretIn(Buffer.from(header.bytes).toString('latin1')))
    return { ...generation, note: await refuse(generation, file, containsSecret(file.path), context) };
  if (header) {
    const { bytes, end, start } = header;
    const nth = await journal.growing.countAlike(generation, start);
    const known = { ...generation, header: bytes, headerEnd: end, start, nth, note: undefined };
    await journal.growing.save(known);
    return known;
  }
  const problem = receiveError(reason);
  if (!(problem instanceof FileError)) throw problem;
  const note = `it has no reading yet: ${explain(problem)}`;
  const isYoung = lead.length < MAX_HEADER_BYTES && clock.now() - generation.beganAt < MAX_HEADER_MS;
  return isYoung ? { ...generation, note } : { ...generation, note: await refuse(generation, file, problem, context) };
}

type Parts = Extract<Growth, { kind: 'parts' }>;

/** Reads a batch of lines. Lines that cannot be read are reported with the run; if there is none yet, it is quarantined. */
async function readBatch(
  generation: Generation,
  file: DiskFile,
  bytes: Buffer,
  context: Context,
): Promise<{ readonly growth: Parts } | { readonly problem: FileError }> {
  let lines = bytes;
  for (;;) {
    const growth = await readDays(generation, file, { lines }, context);
    if (growth.kind === 'tooMany') {
      const half = lines.subarray(0, lines.length >> 1);
      const shorter = lines.subarray(0, endOfLines(half, lineEndOf(generation.head, context.options.encoding)));
      if (shorter.length === 0)
        return { problem: new FileError('a line has too many cells', { where: { file: file.path } }) };
      lines = shorter;
      continue;
    }
    const problem = growth.kind === 'failed' ? receiveError(growth.error) : findSecret(growth, file, context);
    if (growth.kind === 'parts' && !problem) return { growth };
    if (!(problem instanceof FileError)) throw problem ?? new Error('the lines were not read');
    const { days } = await context.journal.growths.runs(generation.id, []);
    if (days.length === 0) return { problem };
    const report = await readDays(generation, file, { lines, refused: problem.message }, context);
    if (report.kind === 'parts' && !findSecret(report, file, context)) return { growth: report };
    return { problem };
  }
}

/** A secret that somebody wrote into a file reaches neither the journal nor the notebook. */
function findSecret(growth: Growth, { path }: DiskFile, { isSecretIn }: Context): FileError | undefined {
  if (growth.kind !== 'parts') return undefined;
  const texts = growth.parts.flatMap(({ draft, plot }) => [
    ...[draft.title, draft.body, ...draft.tags, ...draft.comments, plot?.png ? plot.texts : ''],
  ]);
  if (!isSecretIn([...texts, ...growth.notes].join('\n'))) return undefined;
  return containsSecret(path);
}

/** With what was accumulated for the days of these lines, which only reading them tells. */
export async function readDays(
  generation: Generation,
  file: DiskFile,
  { lines, ...refusal }: { readonly lines: Buffer } & Pick<GrowthTask, 'refused' | 'showsText'>,
  { instrument, growing, journal, reader, rawFiles, options, clock }: Context,
): Promise<Growth> {
  const { header, headerEnd, start, nth, path, offset, base } = generation;
  if (!header || start === undefined) throw new Error('the header is not known');
  let runs = await journal.growths.runs(generation.id);
  for (;;) {
    const growth = await reader.readGrowth({
      ...{ path, size: offset + lines.length, mtimeNs: file.mtimeNs, lines, nth, ...refusal },
      header: { bytes: header, end: headerEnd, start },
      isFirst: offset === base,
      firstLine: generation.lines + 1,
      encoding: encodingOf(generation.head.length > 0 ? generation.head : lines, options.encoding),
      isMeasured: instrument.parse === undefined,
      per: growing.per,
      today: formatDay(clock.now()),
      days: runs.days,
      before: runs.accumulated,
      isPlotted: rawFiles?.isPlotted ?? false,
    });
    if (growth.kind !== 'wants') return growth;
    const { accumulated } = await journal.growths.runs(generation.id, growth.days);
    const wanted = growth.days.map((day) => [day, accumulated.get(day) ?? ''] as const);
    runs = { ...runs, accumulated: new Map([...runs.accumulated, ...wanted]) };
  }
}

/** Into the outbox, all runs of the batch at once. */
export async function handOver(
  generation: Generation,
  file: DiskFile,
  growth: Parts,
  lines: Uint8Array,
  isBacklog: boolean,
  context: Context,
): Promise<Appended> {
  const { instrument, journal, rawFiles, wakeDelivery, log } = context;
  const { name, mapping, drift, parse, layout } = instrument;
  const upto = generation.offset + growth.bytes;
  const plots = await rawFiles?.beginPlots();
  try {
    const parts: NewGrowth[] = [];
    for (const { day, sha256, draft, rows, shape, accumulation, plot } of growth.parts) {
      const { location, mtimeNs, inode } = file;
      const own: IdentifiedFile = { path: generation.path, location, size: upto, mtimeNs, inode, sha256 };
      const run: NewRun = {
        ...{ instrument: name, file: own, copy: '', backlog: isBacklog, mapping },
        plot: plot && (await plots?.keep(own, plot)),
      };
      const reading = { draft, omits: LATER, shaped: { shape, drift, kinds: parse?.length ?? 1, layout } };
      parts.push({ day, run, reading, rows, accumulated: accumulation });
    }
    const all = generation.lines + growth.lines;
    const range =
      growth.lines === 1
        ? `line ${formatCount(all)}`
        : `lines ${formatCount(generation.lines + 1)}–${formatCount(all)}`;
    const { tail } = withoutSecrets(
      { head: generation.head, tail: tailOf(generation.tail, lines) },
      context.isSecretIn,
    );
    const { notes } = growth;
    const appended = await journal.growths.append({
      generation: generation.id,
      from: generation.offset,
      upto,
      lines: all,
      tail,
      range,
      notes,
      parts,
    });
    const fields = { file: generation.path, lines: range };
    if (appended.blocked !== undefined) {
      if (generation.note !== appended.reason)
        log.warn({ ...fields, run: appended.blocked, reason: appended.reason }, 'run held');
      return appended;
    }
    for (const { run, outcome } of appended.added) log.info({ ...fields, run, outcome }, 'lines taken');
    for (const note of notes) log.warn({ ...fields, note }, 'lines of a growing file need attention');
    if (appended.added.some(({ outcome }) => outcome === 'queued')) wakeDelivery();
    return appended;
  } finally {
    await plots?.end();
  }
}

const LATER = ['lines that are appended to the file'];

/** No run has lines of this generation yet: the file is quarantined, and read again when it has grown. */
export async function refuse(
  generation: Pick<Generation, 'id' | 'path' | 'lines' | 'note'>,
  file: DiskFile,
  problem: FileError,
  context: Context,
): Promise<string> {
  const { instrument, journal, observer, log } = context;
  const reason = explain(problem);
  const { path } = generation;
  if (generation.note === reason) return reason;
  const sha256 = refusedAs(path, generation);
  const { days } = await journal.growths.runs(generation.id, []);
  log.warn({ file: path, reason }, days.length > 0 ? 'cannot read lines of a growing file' : 'run quarantined');
  if (days.length > 0) {
    await report(
      generation,
      `lines after line ${formatCount(generation.lines)} are not filed: ${problem.message}`,
      false,
      context,
    );
    return reason;
  }
  const run = {
    instrument: instrument.name,
    file: { ...file, path, sha256 },
    copy: '',
    backlog: false,
    mapping: instrument.mapping,
  };
  await journal.outbox.add(run, { problem });
  observer.quarantined?.(instrument.name, path, problem);
  return reason;
}

/** The fingerprint of a run without lines: one for each generation, or for a file that is not read at all. */
export const refusedAs = (path: string, { id }: Pick<Generation, 'id'> = { id: 0 }): string =>
  standInFor({ path, size: id, mtimeNs: 0n });

export async function report(
  generation: Pick<Generation, 'id' | 'path'>,
  what: string,
  isEnd: boolean,
  { journal, log }: Context,
): Promise<void> {
  log.warn({ file: generation.path, what }, 'a growing file has changed');
  await journal.growths.report(generation.id, what, isEnd);
}
