import { expect, test } from 'vitest';
import type { Existing } from '../../src/config/schema.js';
import { type FoundFile, filesOf } from '../../src/model.js';
import { createIntake, FLOOD } from '../../src/watch/intake.js';

const file = (name: string, mtimeNs = 0n): FoundFile => ({
  path: name,
  location: name,
  size: 1,
  mtimeNs,
  inode: 1n,
});
const files = (count: number): FoundFile[] => Array.from({ length: count }, (_, n) => file(`f${n}`));

function setUp(existing?: Existing, had = false, asked: FoundFile[] = []) {
  const seen = {
    taken: [] as string[],
    backlog: [] as boolean[],
    asked: [] as string[],
    skipped: [] as string[],
    question: 0,
    ended: 0,
  };
  const names = (found: readonly FoundFile[]): string[] => found.map(({ path }) => path);
  const intake = createIntake({
    existing,
    unknown: async (found) => [...found],
    hadFirstScan: async () => had,
    async endFirstScan() {
      seen.ended += 1;
    },
    async ask(found) {
      asked.push(...found);
      seen.asked.push(...names(found));
    },
    async skip(found) {
      seen.skipped.push(...names(found));
    },
    async take({ path }, backlog) {
      seen.taken.push(path);
      seen.backlog.push(backlog);
    },
    asked: (count) => {
      seen.question = count;
    },
  });
  return { intake, seen };
}

test('up to fifty old files are taken, once the first listing is complete', async () => {
  const { intake, seen } = setUp();
  await intake.offer(files(FLOOD), 'scan');
  await intake.scanned({ complete: false });
  expect(seen.taken).toEqual([]);
  await intake.scanned({ complete: true });
  expect(seen.taken).toHaveLength(FLOOD);
  expect(new Set(seen.backlog)).toEqual(new Set([true]));
  expect(seen).toMatchObject({ ended: 1, question: 0 });
});

test('more than fifty are one question, and none of them is taken', async () => {
  const { intake, seen } = setUp();
  await intake.offer(files(FLOOD), 'scan');
  await intake.offer([file('one more')], 'scan');
  await intake.scanned({ complete: true });
  expect(seen).toMatchObject({ taken: [], question: FLOOD + 1, ended: 1 });
  await intake.offer([file('new')], 'scan');
  expect(seen.taken).toEqual(['new']);
});

test('what comes by an event while the first scan goes on is live, and taken', async () => {
  const { intake, seen } = setUp('skip');
  await intake.offer([file('old')], 'scan');
  await intake.offer([file('live')], 'event');
  expect(seen).toMatchObject({ skipped: ['old'], taken: ['live'] });
});

test('since takes the files from that day on and passes the older ones over', async () => {
  const { intake, seen } = setUp({ since: '2026-01-01' });
  const day = (iso: string): bigint => BigInt(new Date(`${iso}T12:00:00`).getTime()) * 1_000_000n;
  await intake.offer([file('old', day('2025-12-31')), file('new', day('2026-01-01'))], 'scan');
  expect(seen).toMatchObject({ skipped: ['old'], taken: ['new'] });
});

test('after the first scan nothing is asked any more, however many come', async () => {
  const { intake, seen } = setUp(undefined, true);
  await intake.offer(files(500), 'scan');
  await intake.idle();
  expect(seen.taken).toHaveLength(500);
});

test('twenty thousand files go through although only ten thousand are under way at once', async () => {
  let underWay = 0;
  let most = 0;
  let done = 0;
  const intake = createIntake({
    ...{ existing: 'ingest', hadFirstScan: async () => true, endFirstScan: async () => undefined },
    unknown: async (found) => [...found],
    ask: async () => undefined,
    skip: async () => undefined,
    asked: () => undefined,
    async take() {
      underWay += 1;
      most = Math.max(most, underWay);
      await new Promise((resolve) => setTimeout(resolve, 5));
      underWay -= 1;
      done += 1;
    },
  });
  await intake.offer(files(20_000), 'scan');
  await intake.idle();
  expect({ done, most }).toEqual({ done: 20_000, most: 10_000 });
});

test('old files that a person has taken later go after what comes in live, which stays live meanwhile', async () => {
  const { intake, seen } = setUp(undefined, true);
  await intake.scanned({ complete: true });
  await intake.asBacklog(async () => {
    await intake.offer([file('old')], 'scan');
    await intake.offer([file('new')], 'event');
  });
  await intake.offer([file('later')], 'scan');
  expect(seen).toMatchObject({ taken: ['old', 'new', 'later'], backlog: [true, false, false] });
});

test('old runs of several files count as runs, and all their files are part of the question', async () => {
  const run = (name: string, ...parts: string[]): FoundFile => ({
    ...file(name),
    parts: parts.map((part) => ({ ...file(`${name}/${part}`), name: part, role: part })),
  });
  const runs = (count: number) => Array.from({ length: count }, (_, n) => run(`r${n}`, 'a', 'b'));
  const few = setUp();
  await few.intake.offer(runs(FLOOD), 'scan');
  // A listing comes in batches: the rest of a run is no further run.
  await few.intake.offer([run('r0', 'c')], 'scan');
  await few.intake.scanned({ complete: true });
  expect(few.seen).toMatchObject({ question: 0 });
  expect(few.seen.taken).toHaveLength(FLOOD);

  const asked: FoundFile[] = [];
  const many = setUp(undefined, false, asked);
  await many.intake.offer(runs(FLOOD), 'scan');
  await many.intake.offer([run('r0', 'c'), run('one more', 'a')], 'scan');
  await many.intake.scanned({ complete: true });
  expect(many.seen).toMatchObject({ taken: [], question: 2 * FLOOD + 2 });
  expect(asked.flatMap(filesOf).map(({ path }) => path)).toEqual(
    expect.arrayContaining(['r0/a', 'r0/b', 'r0/c', 'one more/a']),
  );
});
