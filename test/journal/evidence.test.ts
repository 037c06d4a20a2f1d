import { DatabaseSync } from '@photostructure/sqlite';
import { expect, test } from 'vitest';
import { migrate } from '../../src/journal/database.js';
import { createReader } from '../../src/journal/reader.js';

const SERVER = 'https://eln.example.org';

/** A journal with so many runs of two instruments: every fifth one is quarantined. */
function manyRuns(runs: number) {
  const database = new DatabaseSync(':memory:');
  migrate(database, ':memory:');
  database
    .prepare(
      `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
       INSERT INTO runs (id, instrument, sha256, copy, refiling, reference, path, size, modified_ms, backlog, mapping,
                         step, parked, server, experiment, added_at, updated_at)
         SELECT i, iif(i % 2, 'odd', 'even'), printf('%064x', i), '', 0, printf('%016x', i), '/data/' || i, 1, 1, 0, 'm',
                iif(i % 5, 'done', 'pending'), iif(i % 5, NULL, 'quarantined'), '${SERVER}', 1000 + i, 1, 1 FROM n`,
    )
    .run(runs);
  return { database, evidence: createReader(database) };
}

test('every done run comes once, oldest first, read when its turn comes: never are all of them in memory', async () => {
  const { database, evidence } = manyRuns(3000);
  expect(await evidence.countFiled(undefined)).toBe(2400);
  const ids: number[] = [];
  for await (const { id } of evidence.filed(undefined)) {
    ids.push(id);
    // Put aside after the first was read, and long before its turn.
    if (id === 1) database.exec("UPDATE runs SET parked = 'held' WHERE id = 2999");
  }
  expect(ids).toHaveLength(2399);
  expect(ids).toEqual([...new Set(ids)].sort((a, b) => a - b));
  expect(ids).not.toContain(2999);
});

test('of one instrument only its own runs are told, filed or not', async () => {
  const { evidence } = manyRuns(1500);
  const filed = await all(evidence.filed('odd'));
  expect(filed).toHaveLength(600);
  expect(filed.every(({ id }) => id % 2 === 1)).toBe(true);
  expect(await evidence.countFiled('odd')).toBe(600);
  expect((await all(evidence.unfiled('odd'))).map(({ state }) => state)).toEqual(Array(150).fill('quarantined'));
});

test('the last filing of a content counts', async () => {
  const { database, evidence } = manyRuns(10);
  database.exec(
    `INSERT INTO runs (instrument, sha256, copy, refiling, reference, path, size, modified_ms, backlog, mapping, step,
                       added_at, updated_at)
       SELECT instrument, sha256, copy, 1, 'again', path, size, modified_ms, backlog, mapping, 'pending', 2, 2
         FROM runs WHERE id = 1`,
  );
  const content = { instrument: 'odd', sha256: '1'.padStart(64, '0'), copy: '' };
  expect(await evidence.ofContent(content)).toMatchObject({ id: 11, state: 'queued' });
  expect(await evidence.ofContent({ ...content, copy: '/data/1' })).toBeUndefined();
});

test('a done run whose file is to be read anew is not taken for done: its file is still needed', async () => {
  const { database, evidence } = manyRuns(10);
  database.exec("INSERT INTO remaps (run, instrument, path) VALUES (1, 'odd', '/data/1')");
  const content = (id: number) => ({ instrument: 'odd', sha256: `${id}`.padStart(64, '0'), copy: '' });
  expect(await evidence.ofContent(content(1))).toMatchObject({ id: 1, state: 'queued' });
  expect(await evidence.ofContent(content(3))).toMatchObject({ id: 3, state: 'done' });
});

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}
