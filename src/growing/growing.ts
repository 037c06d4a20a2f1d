import { posix } from 'node:path';
import { explain, FileError } from '../errors.js';
import type { Generation, NewGeneration, OpenGeneration } from '../journal/growing.js';
import { splitLines } from '../mapping/header.js';
import type { DiskFile, FoundFile } from '../model.js';
import {
  beginAlike,
  continues,
  encodingOf,
  hasFiles,
  isRotationOf,
  look,
  type Replacement,
  readBlocks,
  readRest,
  siblingsOf,
  startOfLine,
  tailOf,
} from '../watch/growing.js';
import { FileBusyError, identify } from '../watch/identify.js';
import { quietMsOf, statFile } from '../watch/settle.js';
import {
  type Context,
  createContext,
  type FollowingDeps,
  followed,
  handOver,
  loadGeneration,
  type OtherContent,
  readAll,
  readDays,
  refuse,
  refusedAs,
  report,
  resume,
  startAt,
} from './growing-lines.js';

/**
 * The story of a file that keeps growing, from the folder to the outbox:
 *
 *   found → due → compared with what is known of it → new complete lines → parsed with its header → comments and body
 *
 * Record, act, record: a generation is in the journal before its first lines are handed over, and the outbox knows the
 * end of each batch, so that lines which were handed over before a crash are not handed over again.
 */
export function createFollowing(deps: FollowingDeps) {
  const context = createContext(deps);
  let isFinishing = false;
  return {
    /** Takes the new lines of a file, when they are due. */
    take: (found: FoundFile, isBacklog: boolean) => follow(found, isBacklog, context),
    /** Reads files that were rotated to their end. */
    async finishRotated(): Promise<void> {
      if (isFinishing) return;
      isFinishing = true;
      await context.looks
        .add(() => finishRotated(context))
        .finally(() => {
          isFinishing = false;
        });
    },
  };
}

/** Due: complete lines are taken at most once per `every`. The file need not be quiet, and never may be. */
async function follow(found: FoundFile, isBacklog: boolean, context: Context) {
  const { instrument, growing, journal, activity, tried, looks, signal, clock } = context;
  const known = await journal.growing.at(instrument.name, found.path);
  const isRetried = known && !known.header && !tried.has(found.path);
  const quietMs = Math.min(growing.everyMs, quietMsOf(instrument.ready));
  // If the clock was ahead at the last look, the wait is not longer for it.
  const leftMs = known?.lookedAt ? known.lookedAt + growing.everyMs - clock.now() : quietMs;
  const waitMs = isRetried ? quietMs : Math.min(growing.everyMs, leftMs);
  if (waitMs > 0) {
    activity.waiting.update(found.path, { for: 'next update', untilMs: clock.monotonic() + waitMs });
    await clock.sleep(waitMs, signal);
  }
  signal.throwIfAborted();
  tried.add(found.path);
  activity.waiting.update(found.path, { for: 'reader' });
  return looks.add(async () => {
    const file = await statFile(found);
    if (file === 'absent') return 'gone';
    if (file === 'no answer')
      throw new FileBusyError('the disk or share does not respond', { where: { file: found.path } });
    let generation: Generation | undefined;
    try {
      generation = (await stillThere(file, context)) ?? (await generationOf(file, context));
      if (!generation) return 'skipped';
      const hasGrown = await readAll(generation, file, isBacklog, context, replace);
      return hasGrown ? 'revised' : 'unchanged';
    } catch (error) {
      if (!(error instanceof FileError)) throw error;
      return await refuseFile(generation, file, error, context);
    }
  });
}

/** A file that must not be read, such as a link to elsewhere, or one with a line of megabytes. */
async function refuseFile(
  generation: Generation | undefined,
  file: DiskFile,
  problem: FileError,
  context: Context,
): Promise<'quarantined'> {
  const { instrument, journal, clock } = context;
  const note = await refuse(
    generation ?? { id: 0, path: file.path, lines: 0, note: undefined },
    file,
    problem,
    context,
  );
  if (generation) await journal.growing.save({ ...generation, note, lookedAt: clock.now() });
  journal.intake.remember(instrument.name, file, {
    sha256: refusedAs(file.path, generation),
    copy: '',
    isErased: false,
  });
  return 'quarantined';
}

/** A rotated file that was found there before. If another one took its place, it was rotated on. */
async function stillThere(file: DiskFile, context: Context): Promise<Generation | undefined> {
  const { instrument, journal, options } = context;
  const known = await journal.growing.at(instrument.name, file.path);
  if (known?.place !== file.path) return undefined;
  const generation = await resume(known, context);
  const seen = await look(file, followed(generation), options);
  if (seen.kind !== 'other') return generation;
  await followPlace(generation, file, context);
  return undefined;
}

/** The generation of a file: known, renamed from another path, or new. Undefined for a copy of another one. */
async function generationOf(file: DiskFile, context: Context): Promise<Generation | undefined> {
  const { instrument, journal, options, log } = context;
  const { name } = instrument;
  const known = await journal.growing.at(name, file.path);
  if (known) return resume(known, context);
  const { moved, copied } = await findKnown(file, context);
  if (copied) {
    log.warn({ file: file.path, of: copied.path }, 'the file is a copy of one that is growing, skipping it');
    await journal.intake.skip(name, [file]);
    return undefined;
  }
  if (moved) {
    await reportRenamed(moved, file, context);
    await journal.growing.save(moved);
    return moved;
  }
  const skipped = await journal.growing.skippedSize(name, file);
  const offset = skipped > 0 ? await startOfLine(file, skipped, options) : 0;
  return journal.growing.begin({ ...(await startAt(file, offset, context)), base: 0, offset });
}

/** The generation whose lines this file has: it was moved here, or was copied and is still where it was. */
async function findKnown(
  file: DiskFile,
  context: Context,
): Promise<{ readonly moved?: Generation; readonly copied?: Generation }> {
  const { instrument, journal, options } = context;
  const { head } = await readBlocks(file, file.size, options);
  for (const each of await journal.growing.alike(instrument.name, head)) {
    if (!mayBe(file, each)) continue;
    const other = await loadGeneration(each, context);
    if (!(await continues(file, other, options.guard))) continue;
    if (await isStillAt(other, file, context)) return { copied: other };
    return { moved: { ...other, place: file.path, state: other.state === 'closed' ? 'closed' : 'rotated' } };
  }
  return {};
}

async function reportRenamed(moved: Generation, file: DiskFile, context: Context): Promise<void> {
  if (moved.state === 'closed') return;
  const [from, to] = [posix.basename(moved.path), posix.basename(file.path)];
  await report(moved, `the file ${from} was renamed to ${to}`, false, context);
}

/** One that was read to its end is another file if it has been written to since. */
const mayBe = (file: DiskFile, { inode, path, state, lookedAt }: OpenGeneration): boolean =>
  (state !== 'closed' || file.mtimeNs <= BigInt(lookedAt) * 1_000_000n) &&
  (file.inode === inode ||
    (posix.dirname(path) === posix.dirname(file.path) && posix.basename(file.path).startsWith(posix.parse(path).name)));

/** Whether the file that was followed still is where it was. */
async function isStillAt(generation: Generation, file: DiskFile, { options }: Context): Promise<boolean> {
  const { path, place = path, inode } = generation;
  if (place === file.path) return false;
  const now = await statFile({ ...file, path: place, location: place });
  return typeof now === 'object' && now.inode === inode && (await continues(now, generation, options.guard));
}

const HOW: Readonly<Record<Replacement, string>> = {
  replaced: 'was replaced by another file',
  truncated: 'was truncated',
  rewritten: 'was rewritten',
};

/**
 * Other content took the place of what was followed. What was filed stays; lines that were not are read from where the
 * old content is now, if it was renamed or copied; the new content is a run of its own.
 */
async function replace(
  generation: Generation,
  file: DiskFile,
  seen: OtherContent,
  context: Context,
): Promise<Generation> {
  const { journal } = context;
  const { how } = seen;
  const moved = await findMoved(generation, file, context);
  // Content that takes the place of what was copied is new, even if it begins with the same readings.
  const from = moved && how === 'truncated' ? 0 : seen.from;
  const where = moved ? `, and is now ${posix.basename(moved.path)}` : '';
  const lost = moved ? '' : '; lines that it got after the last look, if any, are not filed';
  await report(
    generation,
    `the file ${posix.basename(generation.path)} ${HOW[how]}${where}${lost}; what follows is another run`,
    !moved,
    context,
  );
  await journal.growths.flush(generation.id, !moved);
  // In the journal before the generation is: after a crash, only what is there is read to its end.
  const between = from === 0 ? await beginBetween(generation, moved, file, context) : [];
  const ended: Generation = {
    ...generation,
    ...(moved ? { state: 'rotated', place: moved.path } : { state: 'closed' }),
    ...{ low: undefined, unfinished: 0, note: `it ${HOW[how]}${lost}` },
  };
  const { moved: other } = from === 0 ? await findKnown(file, context) : {};
  if (other) {
    await reportRenamed(other, file, context);
    await journal.growing.save(ended, other);
  }
  const begun = other ?? (await journal.growing.replace(ended, await successor(generation, file, from, context)));
  if (moved) await finish(ended, context);
  for (const each of between) await finish(each, context);
  return begun;
}

/** The content that takes the place of another one, from this offset. */
async function successor(
  generation: Generation,
  file: DiskFile,
  from: number,
  context: Context,
): Promise<NewGeneration> {
  const { path, header, headerEnd, start, base, offset, tail } = generation;
  const begun = { ...(await startAt(file, from, context)), path };
  if (from === 0 || !header || !start) return { ...begun, base: 0, offset: from };
  // The file begins as before, so its header still describes the lines.
  const nth = (await context.journal.growing.countAlike(generation, start)) + 1;
  const gone = tail.subarray(Math.max(0, from - (offset - tail.length)));
  const encoding = encodingOf(generation.head, context.options.encoding);
  const lines = Math.max(0, generation.lines - splitLines(gone, encoding).length);
  return { ...begun, header, headerEnd, start, nth, lines, base, offset: from };
}

/** Growing files that were rotated: where they are, and their last lines. */

/** Where the content of a generation is since it was rotated: renamed, or copied before the file was truncated. */
async function findMoved(generation: Generation, file: DiskFile, { options }: Context): Promise<DiskFile | undefined> {
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
async function beginBetween(
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

async function finishRotated(context: Context): Promise<void> {
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
async function finish(generation: Generation, context: Context): Promise<void> {
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
async function followPlace(generation: Generation, file: DiskFile, context: Context): Promise<boolean> {
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
