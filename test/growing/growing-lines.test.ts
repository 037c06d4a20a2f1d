import { renameSync, rmSync, statSync, utimesSync } from 'node:fs';
import { expect, test } from 'vitest';
import type { Journal } from '../../src/journal/journal.js';
import { at, CSV, HEADER, lines, SECRET, setUp, values } from '../support/following.js';

test('only complete lines are taken, and each once', async () => {
  const scene = setUp();
  scene.append(HEADER + lines(1, 3) + at(4).slice(0, 9));
  expect(await scene.look()).toBe('revised');
  expect(values(await scene.comments(1))).toEqual([1, 2, 3]);
  expect(await scene.look()).toBe('unchanged');
  scene.append(at(4).slice(9));
  expect(await scene.look()).toBe('revised');
  expect(values(await scene.comments(1))).toEqual([1, 2, 3, 4]);
  expect((await scene.comments(1))[1]).toContain('1 row, from temp.csv, line 5');
});

test('a line that is never finished is not filed half, and `why` has a hint', async () => {
  const scene = setUp();
  scene.append(`${HEADER}${at(1)}2026-03-04 00:02,2`);
  await scene.look();
  scene.clock.advance(30 * 86_400_000);
  await scene.look();
  expect(values(await scene.comments(1))).toEqual([1]);
  expect(await scene.reader.followedAt('logger', scene.path)).toMatchObject({ unfinished: 18 });
  scene.append('.5\n');
  await scene.look();
  expect(values(await scene.comments(1))).toEqual([1, 2]);
});

test('a line end or a character that is split between two looks is read as one', async () => {
  const scene = setUp({ mapping: `parse: { delimiter: ',', table: {} }` });
  const whole = Buffer.from('Note,T (°C)\r\nkühl,1.5\r\nwärmer,2.5\r\n');
  const first = whole.indexOf('\r\nw') + 1;
  const second = whole.indexOf('ä') + 1;
  scene.append(whole.subarray(0, first));
  await scene.look();
  expect(await scene.runs()).toEqual([]);
  scene.append(whole.subarray(first, second));
  await scene.look();
  scene.append(whole.subarray(second));
  await scene.look();
  const texts = (await scene.comments(1)).join('\n');
  expect(texts).toContain('kühl');
  expect(texts).toContain('wärmer');
  expect(values([texts])).toEqual([1, 2]);
});

test.each(['file', 'day'])('an old log without dates is filed with the day of its arrival (per %s)', async (per) => {
  const scene = setUp({ per: per as 'file' | 'day', mapping: `parse: { delimiter: ',', table: {} }` });
  scene.append('n,T\n1,21.5\n2,21.6\n');
  utimesSync(scene.path, 1_577_836_800, 1_577_836_800);
  expect(await scene.look()).toBe('revised');
  expect((await scene.reader.job(1))?.state).toBe('queued');
});

test('an empty file, and one that has only its header, wait for the first reading', async () => {
  const scene = setUp();
  scene.append('');
  await scene.look();
  scene.append(HEADER);
  await scene.look();
  expect(await scene.runs()).toEqual([]);
  expect(await scene.why()).toMatch(/no reading yet/);
  scene.append(at(1));
  await scene.look();
  expect(values(await scene.comments(1))).toEqual([1]);
});

test('a file that cannot be read at all is quarantined, and read again with a reading', async () => {
  const scene = setUp({ mapping: `parse: { delimiter: ',', table: { header: /^Time/ } }` });
  scene.append('x\n'.repeat(10));
  await scene.look();
  expect(await scene.runs()).toEqual([]);
  scene.clock.advance(3_700_000);
  await scene.look();
  expect((await scene.reader.job(1))?.state).toBe('quarantined');
  scene.append(HEADER + at(1));
  await scene.look();
  expect((await scene.reader.job(1))?.state).toBe('ignored');
  expect(values(await scene.comments(2))).toEqual([1]);
});

test('a line that cannot be read is reported, and those after it are filed', async () => {
  const scene = setUp();
  scene.append(HEADER + lines(1, 2));
  await scene.look();
  scene.append(`${at(3)}2026-03-04 00:04,4.5,too,many\n${at(5)}`);
  await scene.look();
  const texts = await scene.comments(1);
  expect(values(texts)).toEqual([1, 2, 3, 5]);
  expect(texts.at(-1)).toMatch(/line 5 could not be read: .*\n {2}2026-03-04 00:04,4.5,too,many/);
  expect((await scene.history(1)).join('\n')).toMatch(/Line 5 could not be read/);
  await scene.deliver();
  await scene.deliver();
  expect((await scene.journal.outbox.load(1)).draft.body).toContain('Not read: line 5.');
});

test('more bad lines than a batch may have are reported together', async () => {
  const scene = setUp();
  scene.append(HEADER + lines(1, 2));
  await scene.look();
  scene.append(at(3) + '2026-03-04 00:04,4.5,too,many\n'.repeat(50) + at(5));
  await scene.look();
  const texts = await scene.comments(1);
  expect(values(texts)).toEqual([1, 2, 3]);
  expect(texts.join('\n')).toMatch(/lines 25–55 not read/);
  scene.append(at(6));
  await scene.look();
  expect(values(await scene.comments(1))).toEqual([1, 2, 3, 6]);
});

test('a header that comes again is reported and skipped, whatever its facts', async () => {
  const scene = setUp({ mapping: `parse: { delimiter: ',', meta: { separator: ':' }, table: { header: /^Time/ } }` });
  scene.append(`Started: 08:00\n${HEADER}${at(1)}`);
  await scene.look();
  scene.append(`${at(2)}Started: 09:00\n${HEADER}${at(3)}`);
  await scene.look();
  const texts = await scene.comments(1);
  expect(values(texts)).toEqual([1, 2, 3]);
  expect(texts.at(-1)).toContain('the header comes again at line 5');
  expect(texts.at(-1)).toContain('Started: 09:00');
});

test('other columns in the middle of the file begin another run', async () => {
  const scene = setUp();
  scene.append(HEADER + lines(1, 2));
  await scene.look();
  scene.append(`${at(3)}Time,T (°C),Humidity (%)\n2026-03-04 00:04,4.5,50\n2026-03-04 00:05,5.5,51\n`);
  await scene.look();
  expect(values(await scene.comments(1))).toEqual([1, 2, 3]);
  expect(values(await scene.comments(2))).toEqual([4, 5]);
  expect((await scene.comments(2))[0]).toMatch(/Humidity/);
  expect((await scene.history(1)).join('\n')).toMatch(/from line 5 on, the columns are others/i);
  scene.append('2026-03-04 00:06,6.5,52\n');
  await scene.look();
  expect(values(await scene.comments(2))).toEqual([4, 5, 6]);
});

test.each([
  ['NUL characters', Buffer.from('2026-03-04 00:02,\0\u00002.5\n'), /line 3 contains NUL/],
  ['a byte order mark', Buffer.from('\ufeff2026-03-04 00:02,2.5\n'), /line 3 contains a byte order mark/],
])('%s in the middle are left out and reported', async (_, line, note) => {
  const scene = setUp();
  scene.append(HEADER + at(1));
  await scene.look();
  scene.append(line);
  await scene.look();
  const texts = await scene.comments(1);
  expect(values(texts)).toEqual([1, 2]);
  expect(texts.at(-1)).toMatch(note);
});

test('a line in another encoding is converted and reported, and the header stays as it is', async () => {
  const scene = setUp({ mapping: `parse: { delimiter: ',', table: {} }` });
  scene.append('Place,T (°C)\nlab,1.5\n');
  await scene.look();
  scene.append(Buffer.from('K\xfcche,2.5\n', 'latin1'));
  await scene.look();
  const texts = await scene.comments(1);
  expect(values(texts)).toEqual([1, 2]);
  expect(texts.join('\n')).toContain('Küche');
  expect(texts.at(-1)).toMatch(/line 3 is not in UTF-8/);
});

test('a file in UTF-16 is followed by its lines', async () => {
  const scene = setUp();
  const utf16 = (text: string): Buffer => Buffer.from(text, 'utf16le');
  scene.append(Buffer.concat([Buffer.from([0xff, 0xfe]), utf16(HEADER + lines(1, 2))]));
  await scene.look();
  const more = utf16(lines(3, 4));
  scene.append(more.subarray(0, more.length - 1));
  await scene.look();
  expect(values(await scene.comments(1))).toEqual([1, 2, 3]);
  scene.append(more.subarray(more.length - 1));
  await scene.look();
  expect(values(await scene.comments(1))).toEqual([1, 2, 3, 4]);
});

test('lines out of order across midnight are filed by their own day', async () => {
  const scene = setUp({ per: 'day' });
  scene.append(HEADER + at(1, '2026-03-08') + at(2, '2026-03-09') + at(3, '2026-03-08'));
  await scene.look();
  scene.append(at(4, '2026-03-10') + at(5, '2026-03-07') + at(6, '2026-03-08'));
  await scene.look();
  const days = await Promise.all(
    (await scene.runs()).map(async (run) => {
      const { draft } = await scene.journal.outbox.load(run);
      return [draft.date, values(await scene.comments(run))];
    }),
  );
  expect(days.sort()).toEqual([
    ['2026-03-07', [5]],
    ['2026-03-08', [1, 3, 6]],
    ['2026-03-09', [2]],
    ['2026-03-10', [4]],
  ]);
});

test('readings without a date belong to the day on which they are read, by the local clock', async () => {
  const scene = setUp({ per: 'day', mapping: `parse: { delimiter: ',', table: {} }` });
  const localDay = (ms: number): string =>
    new Date(ms - new Date(ms).getTimezoneOffset() * 60_000).toISOString().slice(0, 10);
  const first = localDay(scene.clock.now());
  scene.append('N,T (°C)\n1,1.5\n');
  await scene.look();
  scene.clock.advance(86_400_000);
  scene.append('2,2.5\n');
  await scene.look();
  const dates = await Promise.all(
    (await scene.runs()).map(async (run) => (await scene.journal.outbox.load(run)).draft.date),
  );
  expect(dates).toEqual([first, localDay(scene.clock.now())]);
});

test('a reading dated in the future by a wrong clock is not filed in the future', async () => {
  const scene = setUp({ per: 'day' });
  scene.append(HEADER + at(1, '2099-01-01'));
  await scene.look();
  expect((await scene.journal.outbox.load(1)).draft.date).toBe('2026-03-10');
});

test('the body follows all readings, and comments have the new ones', async () => {
  const scene = setUp();
  scene.append(HEADER + lines(1, 40));
  await scene.look();
  await scene.deliver();
  scene.append(lines(41, 59));
  await scene.look();
  const { draft, step, earlier } = await scene.journal.outbox.load(1);
  expect(step).toBe('created');
  expect(earlier).toHaveLength(1);
  expect(draft.body).toContain('59 rows; all are in the comments');
  expect(draft.body).toMatch(/<td>59<\/td><td>1.5<\/td>.*<td>59.5<\/td>/);
  expect(draft.date).toBe('2026-03-04');
  expect(await scene.comments(1)).toHaveLength(2);
});

test('lines that arrive while a run is being delivered are stored, and delivered when it is done', async () => {
  const scene = setUp();
  scene.append(HEADER + at(1));
  await scene.look();
  await scene.journal.outbox.claim(Number.MAX_SAFE_INTEGER, 1);
  for (let n = 2; n <= 4; n++) {
    scene.append(at(n));
    await scene.look();
  }
  const before = await scene.journal.outbox.load(1);
  expect(values(before.comments.map(({ text }) => text))).toEqual([1, 2, 3, 4]);
  await scene.journal.outbox.record(1, { kind: 'finished' });
  const { draft, step } = await scene.journal.outbox.load(1);
  expect(step).toBe('created');
  expect(draft.body).toContain('<td>4.5</td>');
});

test('a batch that was handed over before a crash is not handed over again, though the file has grown', async () => {
  const lost: Partial<Journal['growing']> = {};
  const scene = setUp({
    changes: (journal) => ({
      growing: { ...journal.growing, ...lost, save: async () => undefined, saveLater: () => undefined },
    }),
  });
  scene.append(HEADER + lines(1, 3));
  // Without a header in the journal, nothing is taken: it is durable before the first batch.
  await scene.look().catch(() => undefined);
  scene.restart();
  scene.append(at(4));
  await scene.look();
  await scene.look();
  expect(values(await scene.comments(1))).toEqual([1, 2, 3, 4]);
  expect(await scene.runs()).toEqual([1]);
});

test('a batch with more readings than comments may have is summarised', async () => {
  const scene = setUp({ mapping: `${CSV}, comments: { maxBytes: 1KB, maxComments: 2 }` });
  scene.append(HEADER + lines(1, 3));
  await scene.look();
  scene.append(lines(1, 59).repeat(10));
  await scene.look();
  const texts = await scene.comments(1);
  expect(texts).toHaveLength(2);
  expect(texts[1]).toMatch(/590 rows, 2 columns; all rows are in the raw file/);
  await scene.deliver();
  await scene.deliver();
  expect((await scene.journal.outbox.load(1)).draft.body).toContain('593 rows; all are in the file');
});

test('a secret in a line reaches neither the journal nor the notebook', async () => {
  const scene = setUp({ mapping: `parse: { delimiter: ',', table: {} }` });
  scene.append('Place,T (°C)\nlab,1.5\n');
  await scene.look();
  scene.append(`${SECRET},2.5\n`);
  await scene.look();
  scene.append('lab,3.5\n');
  await scene.look();
  const texts = await scene.comments(1);
  expect(values(texts)).toEqual([1, 3]);
  expect(texts.join('\n')).toMatch(/line 3 not filed: the file contains the API key/);
  expect(texts.join('\n')).not.toContain(SECRET);
});

test('without a mapping, a file is read as its first readings, and other columns are reported', async () => {
  const scene = setUp({ mapping: 'attach: never' });
  scene.append(HEADER + lines(1, 5));
  await scene.look();
  expect(values(await scene.comments(1))).toEqual([1, 2, 3, 4, 5]);
  scene.append(at(6));
  await scene.look();
  expect(values(await scene.comments(1))).toEqual([1, 2, 3, 4, 5, 6]);
});

test('a backlog is read in batches, and delivered in one update', async () => {
  const scene = setUp();
  const many = Array.from({ length: 200_000 }, (_, n) => `2026-03-04 00:${String(n % 60).padStart(2, '0')},${n}.5\n`);
  scene.append(HEADER + many.join(''));
  expect(statSync(scene.path).size).toBeGreaterThan(4 * 2 ** 20);
  await scene.look();
  const texts = await scene.comments(1);
  expect(texts).toHaveLength(2);
  expect(texts.join('\n')).toMatch(/Summary of temp.csv, lines 1–.*Summary of temp.csv, lines/s);
  await scene.deliver();
  const { draft } = await scene.journal.outbox.load(1);
  expect(draft.body).toContain('200,000 rows; all are in the file');
  expect(draft.body).toMatch(/<td>200,000<\/td><td>0.5<\/td><td>≈ [0-9.]+<\/td><td>199999.5<\/td>/);
}, 60_000);

test('a run that is refiled gets the later lines, and its predecessor none', async () => {
  const scene = setUp();
  scene.append(HEADER + lines(1, 2));
  await scene.look();
  await scene.deliver();
  const { answer } = await scene.journal.requests.decide({ kind: 'refile', run: 1 }, NOWHERE);
  expect(answer.done).toBe(true);
  scene.append(at(3));
  await scene.look();
  expect(values(await scene.comments(2))).toEqual([1, 2, 3]);
  expect(values(await scene.comments(1))).toEqual([1, 2]);
});

test('a growing run is neither remapped nor erased before its file has ended', async () => {
  const scene = setUp();
  scene.append(HEADER + lines(1, 2));
  await scene.look();
  await scene.journal.outbox.record(1, { kind: 'intended', server: 'x', floor: 0, at: 1 });
  await scene.journal.outbox.record(1, { kind: 'created', experiment: 7, found: false });
  await scene.deliver();
  const decide = async (kind: 'remap' | 'erase') =>
    (await scene.journal.requests.decide({ kind, run: 1 }, NOWHERE)).answer;
  expect(await decide('remap')).toMatchObject({
    done: false,
    text: expect.stringMatching(/keeps growing: the current mapping/),
  });
  expect(await decide('erase')).toMatchObject({
    done: false,
    text: expect.stringMatching(/rename or remove the file first/),
  });
  rmSync(scene.path);
  scene.append('Time,P (bar)\n2026-03-04 00:01,1.5\n');
  await scene.look();
  expect(await decide('erase')).toMatchObject({ done: true });
  await scene.journal.growing.erase(1);
  const left = scene.database.prepare('SELECT head, tail, header, path FROM growing WHERE id = 1').get();
  expect(left).toMatchObject({ header: null, path: expect.stringMatching(/^erased:/) });
  expect(scene.database.prepare('SELECT accumulation, next FROM growths WHERE run = 1').get()).toEqual({
    accumulation: '',
    next: null,
  });
});

test('after an older journal was restored, comments are looked for before they are posted', async () => {
  const scene = setUp();
  scene.append(HEADER + lines(1, 2));
  await scene.look();
  await scene.deliver();
  await scene.journal.recovery.begin('https://eln');
  scene.append(at(3));
  await scene.look();
  const [, second] = (await scene.journal.outbox.load(1)).comments;
  expect(second?.intentAt).toBe(0);
  await scene.journal.outbox.record(1, { kind: 'commented', n: 2, comment: 9, found: false }, { kind: 'finished' });
  scene.append(at(4));
  await scene.look();
  expect((await scene.journal.outbox.load(1)).comments[2]?.intentAt).toBeUndefined();
});

test('a run that another journal filed is held, and its lines are set aside only if a person says so', async () => {
  const scene = setUp();
  scene.append(HEADER + lines(1, 2));
  await scene.look();
  // As after a lost journal: the run is known from the notebook alone.
  scene.database.exec(`DELETE FROM growths; DELETE FROM generations; DELETE FROM growing; DELETE FROM drafts;
    UPDATE runs SET step = 'done', mapping = '', experiment = 7, server = 'x'`);
  scene.restart();
  scene.append(at(3));
  await scene.look();
  expect(await scene.reader.job(1)).toMatchObject({
    state: 'held',
    reason: expect.stringMatching(/labfeed refile 1.*labfeed ignore 1/),
  });
  expect(await scene.runs()).toEqual([1]);
  await scene.journal.requests.decide({ kind: 'ignore', run: 1 }, NOWHERE);
  await scene.look();
  expect(await scene.runs()).toEqual([1]);
  renameSync(scene.path, `${scene.path}.1`);
  scene.append(HEADER + lines(11, 12));
  await scene.look();
  expect(values(await scene.comments(2))).toEqual([11, 12]);
});

const NOWHERE = { path: '', has: 'nothing' } as const;

test('a blank line in the middle does not end the readings', async () => {
  const scene = setUp();
  scene.append(`${HEADER}${at(1)}\n`);
  await scene.look();
  scene.append(`${at(2)}\n,\n${at(3)}`);
  await scene.look();
  const texts = await scene.comments(1);
  expect(values(texts)).toEqual([1, 2, 3]);
  expect(texts.at(-1)).toContain('from temp.csv, lines 4–7');
});

test.each(['ERROR,sensor lost\n', 'door open,please,close\n', 'Restarted\n'])(
  'a message %j among the readings is no header: those after it keep their columns',
  async (message) => {
    const scene = setUp();
    scene.append(HEADER + lines(1, 3));
    await scene.look();
    scene.append(at(4) + message + lines(5, 6));
    await scene.look();
    expect(await scene.runs()).toEqual([1]);
    const texts = await scene.comments(1);
    expect(values(texts)).toEqual([1, 2, 3, 4, 5, 6]);
    expect(texts.join('\n')).toContain(message.trim().split(',').at(-1));
  },
);

test('a header with no column in common, and other cells below it, begins another run', async () => {
  const scene = setUp();
  scene.append(HEADER + lines(1, 3));
  await scene.look();
  scene.append('Zeit,Temperatur (°C),Feuchte (%)\n2026-03-04 00:04,4.5,50\n');
  await scene.look();
  expect(await scene.runs()).toEqual([1, 2]);
  expect((await scene.comments(2)).join('\n')).toMatch(/Feuchte/);
});

test('readings above a header that comes again are no part of it, though a line of the header has their hour', async () => {
  const scene = setUp({ mapping: `parse: { delimiter: ',', table: { header: /^Time/ } }` });
  scene.append(`2026-03-04 00:00 started\n${HEADER}${at(1)}`);
  await scene.look();
  scene.append(`${lines(2, 9)}${HEADER}${at(31)}`);
  await scene.look();
  expect(values(await scene.comments(1))).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 31]);
});

test('the experiment of a day has its date and, by default, its name, whatever the header says', async () => {
  const dates = `dates: { format: ['yyyy-MM-dd HH:mm', 'yyyy-MM-dd'] }`;
  const mapping = `parse: { delimiter: ',', meta: { separator: ':' }, ${dates}, table: { header: /^Calibrated/ } }`;
  const scene = setUp({ per: 'day', mapping });
  const line = (n: number, day: string): string => `2025-12-24,${at(n, day)}`;
  scene.append(`date: 2026-03-01\nCalibrated,${HEADER}${line(1, '2026-03-04')}${line(2, '2026-03-05')}`);
  await scene.look();
  const drafts = await Promise.all([1, 2].map(async (run) => (await scene.journal.outbox.load(run)).draft));
  expect(drafts.map(({ title, date }) => [title, date])).toEqual([
    ['temp 2026-03-04 (logger)', '2026-03-04'],
    ['temp 2026-03-05 (logger)', '2026-03-05'],
  ]);
});

test('lines in UTF-16 in the middle of a file are read, and reported', async () => {
  const scene = setUp();
  scene.append(HEADER + lines(1, 2));
  await scene.look();
  scene.append(Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from(lines(3, 4), 'utf16le'), Buffer.from('\0')]));
  scene.append(at(5));
  await scene.look();
  const texts = await scene.comments(1);
  expect(values(texts)).toEqual([1, 2, 3, 4, 5]);
  expect(texts.at(-1)).toMatch(/line 4 contains a byte order mark.*\nline 4 contains NUL/);
});

test('of the lines above a header that comes again, only as many as it has are part of it', async () => {
  const scene = setUp({ mapping: `parse: { delimiter: ',', meta: { separator: ':' }, table: { header: /^Time/ } }` });
  scene.append(`Door: closed\n${HEADER}${at(1)}`);
  await scene.look();
  scene.append(`Door: open\nDoor: closed\n${HEADER}${at(2)}`);
  await scene.look();
  const texts = await scene.comments(1);
  expect(values(texts)).toEqual([1, 2]);
  expect(texts.at(-1)).toContain('the header comes again at line 5');
});

test('a batch that is handed over twice is filed once', async () => {
  const scene = setUp({
    changes: ({ growths }) => ({
      growths: {
        ...growths,
        async append(batch) {
          await growths.append(batch);
          return growths.append(batch);
        },
      },
    }),
  });
  scene.append(HEADER + lines(1, 3));
  await scene.look();
  scene.append(lines(4, 5));
  await scene.look();
  expect(values(await scene.comments(1))).toEqual([1, 2, 3, 4, 5]);
  expect((await scene.reader.job(1))?.growth?.rows).toBe(5);
});

test('new lines are taken at most once per `every`, also after a restart and if the clock was ahead', async () => {
  const scene = setUp();
  const waited = async (): Promise<number> => {
    const before = scene.clock.monotonic();
    await scene.look();
    return scene.clock.monotonic() - before;
  };
  scene.append(HEADER + at(1));
  // The first time, after the quiet period.
  expect(await waited()).toBe(5000);
  scene.append(at(2));
  expect(await waited()).toBe(600_000);
  scene.clock.advance(400_000);
  scene.restart();
  scene.append(at(3));
  expect(await waited()).toBe(200_000);
  scene.clock.advance(700_000);
  scene.append(at(4));
  expect(await waited()).toBe(0);
  scene.database.exec('UPDATE growing SET looked_at = looked_at + 86400000');
  scene.append(at(5));
  expect(await waited()).toBe(600_000);
  expect(values(await scene.comments(1))).toEqual([1, 2, 3, 4, 5]);
});
