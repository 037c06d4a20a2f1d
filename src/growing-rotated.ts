import { posix } from 'node:path';
import { explain, FileError } from './errors.js';
import { type Context, followed, handOver, loadGeneration, readAll, readDays, report } from './growing-lines.js';
import type { Generation, OpenGeneration } from './journal/growing.js';
import type { DiskFile } from './model.js';
import {
  beginAlike,
  continues,
  hasFiles,
  isRotationOf,
  look,
  readBlocks,
  readRest,
  siblingsOf,
  tailOf,
} from './watch/growing.js';
import { identify } from './watch/identify.js';
import { statFile } from './watch/settle.js';

/** Growing files that were rotated: where they are, and their last lines. */

/** Where the content of a generation is since it was rotated: renamed, or copied before the file was truncated. */
export async function findMoved(
  generation: Generation,
  file: DiskFile,
  { options }: Context,
): Promise<DiskFile | undefined> {
  for (const sibling of await siblingsOf(file)) {
    const isSame = sibling.inode === generation.inode && sibling.inode !== file.inode;
    if (generation.offset === 0 ? isSame : await continues(sibling, generation, options.guard)) return sibling;
  }
  return undefined;
}

/**
 * Generations that came and went between two looks: rotated files beside it that are newer and have the same header. What
 * begins with the same readings as another one is a copy.
 */
export async function beginBetween(
  before: Generation,
  moved: DiskFile | undefined,
  file: DiskFile,
  context: Context,
): Promise<Generation[]> {
  const { journal, isOwn, isOthers, options, log } = context;
  const { header, headerEnd, instrument, path } = before;
  if (!header || headerEnd === 0) return [];
  const lookedNs = BigInt(before.lookedAt) * 1_000_000n;
  // A share may have a clock of its own.
  const since = moved && (!moved.isLocal || moved.mtimeNs > lookedNs) ? moved.mtimeNs : lookedNs;
  const begun: Generation[] = [];
  for (const sibling of (await siblingsOf(file)).reverse()) {
    if (sibling.mtimeNs <= since || sibling.inode === moved?.inode || !isRotationOf(sibling.path, path)) continue;
    if (isOwn(sibling.path) || isOthers(sibling.path)) continue;
    try {
      if (await isKnown(sibling, context)) continue;
      const { head } = await readBlocks(sibling, headerEnd, options);
      if (!Buffer.from(header.subarray(0, headerEnd)).equals(head)) {
        log.warn({ file: sibling.path }, 'a file beside one that was rotated has another header: it is not read');
        continue;
      }
      const others = [file, ...(moved ? [moved] : [])];
      const alike = await Promise.all(others.map((one) => beginAlike(sibling, one, headerEnd, options.guard)));
      if (alike.includes(true)) continue;
      const blocks = await readBlocks(sibling, 0, options);
      const rotated = { instrument, path, place: sibling.path, state: 'rotated', base: 0, ...blocks } as const;
      begun.push(await journal.growing.begin(rotated));
    } catch (error) {
      if (!(error instanceof FileError)) throw error;
      log.warn({ file: sibling.path, reason: explain(error) }, 'a file beside one that was rotated is not read');
    }
  }
  return begun;
}

/** Whether the lines of this file were taken before. Its name says nothing: numbered logs are renamed at each rotation. */
async function isKnown(file: DiskFile, context: Context): Promise<boolean> {
  const { instrument, journal, options } = context;
  const { head } = await readBlocks(file, file.size, options);
  for (const each of await journal.growing.alike(instrument.name, head))
    if (await continues(file, await loadGeneration(each, context), options.guard)) return true;
  return false;
}

const NO_FILE = { size: 0, mtimeNs: 0n, inode: 0n };

/** Read to the end: nothing was added to a rotated file for so long, and its writer has begun the next one. */
const CLOSE_MS = 60_000;
/** Many programs keep writing to a file that was renamed, until they are restarted. */
const ABANDON_MS = 24 * 3_600_000;
/** A file that was not rotated counts as complete: nothing was added for so long. */
const COMPLETE_MS = 7 * 24 * 3_600_000;

export async function finishRotated(context: Context): Promise<void> {
  const { instrument, journal, growing, signal, clock, log } = context;
  const failed = (error: unknown): OpenGeneration[] => {
    log.error({ reason: explain(error) }, 'cannot read the journal, retrying');
    return [];
  };
  for (const each of await journal.growing.open(instrument.name).catch(failed)) {
    if (signal.aborted) return;
    try {
      if (each.state === 'open') await checkOpen(each, context);
      else if (clock.now() - each.lookedAt >= Math.min(CLOSE_MS, growing.everyMs))
        await finish(await loadGeneration(each, context), context);
    } catch (error) {
      log.warn({ file: each.place ?? each.path, reason: explain(error) }, 'cannot read a rotated file yet, retrying');
    }
  }
}

/** A file can be renamed long before another one takes its place, or never grow again. */
async function checkOpen(each: OpenGeneration, context: Context): Promise<void> {
  const { journal, clock } = context;
  const { id, path, grownAt } = each;
  const file = await statFile({ ...NO_FILE, path, location: path });
  if (file === 'absent') return findRenamed(await loadGeneration(each, context), context);
  const isQuiet = grownAt !== undefined && clock.now() - grownAt >= COMPLETE_MS;
  if (file === 'no answer' || !isQuiet || (await journal.growths.hasEnded(id))) return;
  const generation = await loadGeneration(each, context);
  const seen = await look(file, followed(generation), context.options);
  if (seen.kind !== 'lines' || seen.bytes.length > 0) return;
  await attach(generation, { ...file, ...seen.stamp }, context);
  await report(
    generation,
    `the file ${posix.basename(path)} has not grown for a week, and counts as complete`,
    true,
    context,
  );
}

/** The raw file, once it is complete. If it grows again, the next one takes its place. */
async function attach(generation: Generation, file: DiskFile, context: Context): Promise<void> {
  const { journal, rawFiles, options, signal, wakeDelivery } = context;
  const copies = await rawFiles?.begin(file);
  if (!copies) return;
  try {
    const [copy] = copies.copies();
    const identified = await identify(file, { guard: options.guard, copy, signal, keepBytes: -1 });
    const { attachments = [] } = await copies.keep(identified, undefined);
    const name = posix.basename(generation.path);
    if (
      await journal.growths.attach(
        generation.id,
        attachments.map((each) => ({ ...each, name })),
      )
    )
      wakeDelivery();
  } finally {
    await copies.end();
  }
}

async function findRenamed(generation: Generation, context: Context): Promise<void> {
  const { path } = generation;
  const file: DiskFile = { ...NO_FILE, path, location: path };
  const moved = await findMoved(generation, file, context);
  if (!moved) {
    // After a crash, lines may be in the journal that nothing else would send: the file is gone.
    if (await context.journal.growths.flush(generation.id)) context.wakeDelivery();
    return;
  }
  await report(
    generation,
    `the file ${posix.basename(path)} was renamed to ${posix.basename(moved.path)}`,
    false,
    context,
  );
  await finish({ ...generation, state: 'rotated', place: moved.path }, context);
}

/** Takes the last lines of a rotated file. If there are none, the generation ends, and an unfinished line is reported. */
export async function finish(generation: Generation, context: Context): Promise<void> {
  const { journal, options, clock } = context;
  const { path, place = path } = generation;
  const file = await statFile({ ...NO_FILE, path: place, location: place });
  if (file === 'no answer') return;
  const seen = file === 'absent' ? undefined : await look(file, followed(generation), options);
  if (file === 'absent' || seen?.kind !== 'lines') {
    // Not if the share is not mounted.
    if (await hasFiles(posix.dirname(place)))
      await followPlace(generation, { ...NO_FILE, path, location: path }, context);
    return;
  }
  if (seen.bytes.length > 0) {
    await journal.growing.save(generation);
    await readAll(generation, file, false, context);
    return;
  }
  const hasSuccessor = await journal.growing.hasSuccessor(generation);
  const isQuiet = clock.now() - Number(file.mtimeNs / 1_000_000n) >= (hasSuccessor ? CLOSE_MS : ABANDON_MS);
  if (!isQuiet || generation.lookedAt === 0)
    return journal.growing.save({ ...generation, lookedAt: clock.now(), unfinished: seen.unfinished });
  const ended = await tellRest(generation, file, context);
  await attach(ended, file, context);
  await report(ended, `the file ${posix.basename(place)} was read to its end`, true, context);
  await journal.growths.flush(ended.id, true);
  await journal.growing.save({ ...ended, state: 'closed', unfinished: 0, note: 'it was rotated and read to its end' });
  context.wakeDelivery();
}

/** The last line of a file that gets no more lines: it may be half a reading, so it is reported but not read. */
async function tellRest(generation: Generation, file: DiskFile, context: Context): Promise<Generation> {
  const rest = await readRest(file, generation.offset, context.options);
  if (rest.toString('utf8').replace(/\0/g, '').trim() === '' || !generation.header) return generation;
  const showsText = !context.isSecretIn(rest.toString('latin1'));
  const task = { lines: rest, refused: 'the file ended before the line was finished', showsText };
  const growth = await readDays(generation, file, task, context);
  if (growth.kind !== 'parts') return generation;
  await handOver(generation, file, { ...growth, bytes: rest.length }, rest, false, context);
  return {
    ...generation,
    offset: generation.offset + rest.length,
    lines: generation.lines + 1,
    tail: tailOf(generation.tail, rest),
  };
}

/** Looks for a rotated file that is no longer where it was. If it is not found, it gets no more lines. */
export async function followPlace(generation: Generation, file: DiskFile, context: Context): Promise<boolean> {
  const { journal } = context;
  const moved = await findMoved(generation, { ...file, path: generation.path, location: generation.path }, context);
  if (moved && moved.path !== generation.place) {
    await journal.growing.save({ ...generation, place: moved.path });
    return true;
  }
  if (generation.state === 'rotated')
    await report(
      generation,
      `the file ${posix.basename(generation.place ?? generation.path)} is gone: lines that it got after the last look, if any, are not filed`,
      true,
      context,
    );
  await journal.growths.flush(generation.id, true);
  await journal.growing.save({ ...generation, state: 'closed', place: undefined, note: 'it was rotated and is gone' });
  return false;
}
