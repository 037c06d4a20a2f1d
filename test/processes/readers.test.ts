import { appendFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { utils, write as xlsx } from '@e965/xlsx';
import { expect, onTestFinished, test, vi } from 'vitest';
import { systemClock } from '../../src/clock.js';
import { loadConfig } from '../../src/config/load.js';
import { createReaders } from '../../src/daemon/readers.js';
import { runGoldenTests } from '../../src/mapping/tests.js';
import type { DiskFile } from '../../src/model.js';
import { keepHeapSmall } from '../../src/system/process.js';
import { identify, stampOf } from '../../src/watch/identify.js';
import { childrenOf } from '../support/child-processes.js';
import { tempFolder } from '../support/temp-folder.js';
import { until } from '../support/until.js';

vi.mock(import('../../src/system/process.js'), async (original) => ({ ...(await original()), keepHeapSmall: vi.fn() }));

/** Real threads, and a reader for an instrument with these keys. */
function setUp(keys = '', limits: Parameters<typeof createReaders>[0] = {}) {
  const folder = tempFolder();
  writeFileSync(join(folder, 'labfeed.yaml'), `instruments: { balance: { watch: . ${keys} } }\n`);
  const [instrument = expect.fail('no instrument')] = loadConfig(join(folder, 'labfeed.yaml')).instruments;
  const readers = createReaders(limits);
  onTestFinished(() => readers.stop());
  const write = (name: string, content: string | Uint8Array): DiskFile => {
    const path = join(folder, name);
    writeFileSync(path, content);
    return { path, location: path, ...stampOf(statSync(path, { bigint: true })) };
  };
  return { readers, instrument, reader: readers.open(instrument, '12345678'), write };
}

const WEIGHING = 'Sample,Weight (mg)\na,1.5\n';
const NOW = Date.now();
/** Never ends, because tests run without the limit on backtracking that commands set. */
const [ENDLESS, ENDLESS_KEYS] = [`${'a'.repeat(50)}b\n`, ', parse: { when: "/^(a+)+$/", limits: { seconds: 0.1 } }'];

test('a file is hashed, parsed and mapped, and an error keeps its kind, place and hint', async () => {
  const { reader, write } = setUp(', parse: { table: {} }');
  const good = await reader.read(write('a.csv', WEIGHING), NOW);
  expect(good.draft).toMatchObject({ title: 'a (balance)', tags: ['balance'] });
  expect(good.draft?.body).toContain(`sha256:${good.sha256} journal:12345678`);
  expect(good.shape?.tables).toEqual([
    { name: 'readings', columns: [{ name: 'Sample' }, { name: 'Weight', unit: 'mg' }] },
  ]);
  const ambiguous = write('b.csv', 'Sample;Weight\na;1,234\n');
  expect(await reader.read(ambiguous, NOW)).toMatchObject({
    sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
    error: {
      name: 'FileError',
      message: expect.stringContaining('1,234'),
      where: { file: ambiguous.path, line: 2 },
      hint: expect.stringContaining('decimal'),
    },
  });
  const changed = write('c.csv', WEIGHING);
  appendFileSync(changed.path, 'b,2\n');
  expect((await reader.read(changed, NOW)).error).toMatchObject({
    name: 'FileChangedError',
    where: { file: changed.path },
  });
});

test('the heap is kept smallest from the start of a thread for large files to its end', async () => {
  vi.mocked(keepHeapSmall).mockClear();
  const { reader, readers, write } = setUp();
  const small = write('small.csv', WEIGHING);
  await reader.read(small, NOW);
  expect(vi.mocked(keepHeapSmall).mock.calls).toEqual([[false]]);
  await reader.read(write('large.csv', WEIGHING + 'a,1.5\n'.repeat(50_000)), NOW);
  expect(keepHeapSmall).toHaveBeenLastCalledWith(true);
  await readers.stop();
  expect(keepHeapSmall).toHaveBeenLastCalledWith(false);
});

test('a large file is handed over with its content', async () => {
  const { reader, write } = setUp();
  const content = WEIGHING + 'a,1.5\n'.repeat(50_000);
  const { draft, error } = await reader.read(await identify(write('a.csv', content)), NOW);
  expect(error).toBeUndefined();
  expect(draft?.body).toContain('50,001 rows');
});

test('a file that takes too long is refused, and those behind it are read', async () => {
  const { reader, write } = setUp(ENDLESS_KEYS, { graceMs: 3000 });
  const files = [ENDLESS, 'aaaa\nx\n', ENDLESS, 'aaa\nx\n'].map((text, n) => write(`${n}.csv`, text));
  const [first, second, third, fourth] = await Promise.all(files.map((file) => reader.read(file, NOW)));
  const tooLong = {
    message: 'reading the file took longer than 0.1 s',
    hint: 'to read such files, raise the limit: `limits: { seconds: 300 }`',
  };
  expect(first?.error).toMatchObject({ ...tooLong, where: { file: files[0]?.path } });
  expect(third?.error).toMatchObject({ ...tooLong, where: { file: files[2]?.path } });
  expect([second?.sha256, fourth?.sha256]).toEqual([expect.any(String), expect.any(String)]);
});

test('a file that takes too much memory is refused, and the next one is read', async () => {
  const { reader, write } = setUp('', { maxHeapMb: 40 });
  const rows = Array.from({ length: 400_000 }, (_, n) => `s${n},${n}.25`);
  const large = write('large.csv', `Sample,Weight (mg)\n${rows.join('\n')}\n`);
  const [refused, read] = await Promise.all([
    reader.read(await identify(large), NOW),
    reader.read(await identify(write('next.csv', WEIGHING + 'a,1.5\n'.repeat(30_000))), NOW),
  ]);
  expect(refused.error).toMatchObject({ name: 'FileError', where: { file: large.path } });
  expect(refused.error?.message).toMatch(/takes more than \d+ MB of memory$/);
  expect(read.error).toBeUndefined();
});

test('small files that take long make way for others, and are abandoned at once when their reader is closed', async () => {
  const { readers, reader, write } = setUp(ENDLESS_KEYS, { graceMs: 60_000 });
  const abandoned = [1, 2].map((n) => reader.read(write(`${n}.csv`, ENDLESS), NOW));
  const { access, ...anywhere } = balance();
  expect(access).toBeDefined();
  const other = readers.open({ ...anywhere, name: 'other' }, '12345678');
  expect((await other.read(write('a.csv', WEIGHING), NOW)).draft?.title).toBe('a (other)');
  const next = other.read(write('b.csv', WEIGHING), NOW);
  reader.close();
  for (const one of abandoned) await expect(one).rejects.toThrow('reading was stopped');
  expect((await next).draft?.title).toBe('b (other)');
});

test('golden tests run in a thread, which is ended if the sample takes too long', async () => {
  const { readers, instrument, write } = setUp(ENDLESS_KEYS, { graceMs: 8000 });
  const quarantined = { key: 'quarantined', of: 'quarantined' as const, wanted: true as const };
  const tests = [
    { file: write('a.csv', 'aaa\n').path, expect: [quarantined] },
    { file: write('b.csv', ENDLESS).path, expect: [quarantined] },
    { file: write('c.csv', 'aaa\n').path, expect: [] },
  ];
  const runTests = (signal?: AbortSignal) =>
    runGoldenTests([{ ...instrument, tests }], { clock: systemClock, signal, run: readers.test });
  const results = await runTests();
  expect(results.map(({ problems }) => problems.map(({ message }) => message))).toEqual([
    [],
    [expect.stringContaining('b.csv: reading the file took longer than 0.1 s')],
    [expect.stringContaining('c.csv: would be quarantined')],
  ]);
  const stopping = new AbortController();
  const stopped = runTests(stopping.signal);
  stopping.abort();
  expect(await stopped).toHaveLength(3);
});

test('a golden test does not wait for a large file', async () => {
  const { readers, reader, instrument, write } = setUp(ENDLESS_KEYS, { graceMs: 20_000 });
  const large = reader.read(write('large.csv', ENDLESS.repeat(4000)), NOW).catch(() => 'abandoned');
  const tests = [{ file: write('a.csv', 'aaa\n').path, expect: [] }];
  const [result] = await runGoldenTests([{ ...instrument, tests }], { clock: systemClock, run: readers.test });
  expect(result?.problems[0]?.message).toContain('a.csv: would be quarantined');
  reader.close();
  expect(await large).toBe('abandoned');
});

test('a preview is made in a thread, and can be cancelled', async () => {
  const { readers } = setUp();
  const sample = { name: 'a.csv', content: Buffer.from(WEIGHING), modifiedMs: NOW };
  const task = { sample, instrument: undefined, nowMs: NOW };
  const cancelled = new AbortController();
  const preview = readers.preview(task, cancelled.signal);
  cancelled.abort();
  await expect(preview).rejects.toThrow('reading was stopped');
  expect(await readers.preview(task, new AbortController().signal)).toMatchObject({ ok: true, draft: { tags: ['a'] } });
});

test('a process that reads a workbook ends with the thread that has started it', async () => {
  const { reader, write } = setUp();
  const rows = Array.from({ length: 3000 }, (_, n) => Array.from({ length: 100 }, (_unused, at) => `S${n} (${at})`));
  const book = utils.book_new(utils.aoa_to_sheet(rows));
  const reading = reader.read(write('a.xlsx', xlsx(book, { type: 'buffer', bookType: 'xlsx' })), NOW);
  await until('it has started', () => childrenOf(process.pid).length > 0);
  reader.close();
  await expect(reading).rejects.toThrow('reading was stopped');
  await until('it has ended', () => childrenOf(process.pid).length === 0);
});

function balance() {
  const folder = tempFolder();
  writeFileSync(join(folder, 'labfeed.yaml'), 'instruments: { balance: { watch: . } }\n');
  return loadConfig(join(folder, 'labfeed.yaml')).instruments[0] ?? expect.fail('no instrument');
}
