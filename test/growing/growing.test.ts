import { createHash } from 'node:crypto';
import {
  copyFileSync,
  existsSync,
  linkSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { at, CSV, HEADER, lines, setUp, values } from '../support/following.js';

test('a file that shrinks by one byte is reported, and continues when it is whole again', async () => {
  const scene = setUp();
  scene.append(HEADER + lines(1, 3));
  await scene.look();
  const whole = readFileSync(scene.path);
  truncateSync(scene.path, whole.length - 1);
  await scene.look();
  await scene.look();
  expect(await scene.why()).toMatch(/the last 1 byte of what was filed is gone/);
  expect((await scene.history(1)).filter((text) => /became shorter/.test(text))).toHaveLength(1);
  scene.append(`\n${at(4)}`);
  await scene.look();
  expect(values(await scene.comments(1))).toEqual([1, 2, 3, 4]);
  expect(await scene.runs()).toEqual([1]);
});

test('a file that shrinks and goes on differently begins another run where it differs', async () => {
  const scene = setUp();
  scene.append(HEADER + lines(1, 3));
  await scene.look();
  truncateSync(scene.path, readFileSync(scene.path).length - 3);
  await scene.look();
  scene.append(`9.5\n${lines(4, 6)}`);
  await scene.look();
  expect(values(await scene.comments(1))).toEqual([1, 2, 3]);
  expect((await scene.comments(2)).join('')).toContain('39.5');
  expect(values(await scene.comments(2)).slice(1)).toEqual([4, 5, 6]);
});

test('a file that is rewritten in place begins another run', async () => {
  const scene = setUp();
  scene.append(HEADER + lines(1, 9));
  await scene.look();
  writeFileSync(scene.path, HEADER + lines(11, 30));
  await scene.look();
  expect(values(await scene.comments(1))).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9]);
  expect(values(await scene.comments(2))[0]).toBe(11);
  expect((await scene.history(1)).join('\n')).toMatch(/temp.csv was rewritten/);
});

test('an unfinished line of a rotated file is reported when the file is complete', async () => {
  const scene = setUp();
  scene.append(HEADER + lines(1, 2));
  await scene.look();
  scene.append(`${at(3)}2026-03-04 00:04,4`);
  renameSync(scene.path, `${scene.path}.1`);
  scene.append(HEADER + lines(11, 12));
  await scene.look();
  expect(values(await scene.comments(1))).toEqual([1, 2, 3]);
  for (let n = 0; n < 3; n++) {
    scene.clock.advance(120_000);
    await scene.finish();
  }
  expect((await scene.comments(1)).at(-1)).toMatch(/line 5 not filed: the file ended before.*\n {2}2026-03-04 00:04,4/);
  expect((await scene.history(1)).join('\n')).toMatch(/temp.csv.1 was read to its end/);
  expect(values(await scene.comments(2))).toEqual([11, 12]);
});

test('a file that was renamed before another takes its place is read to its end', async () => {
  const scene = setUp();
  scene.append(HEADER + lines(1, 2));
  await scene.look();
  scene.append(at(3));
  renameSync(scene.path, `${scene.path}.1`);
  await scene.finish();
  expect(values(await scene.comments(1))).toEqual([1, 2, 3]);
});

test('rotated files that match the globs themselves are not filed twice, however they are found', async () => {
  const scene = setUp();
  scene.append(HEADER + lines(1, 2));
  await scene.look();
  const rotated = scene.path.replace('.csv', '-1.csv');
  scene.append(at(3));
  renameSync(scene.path, rotated);
  scene.append(HEADER + lines(11, 12));
  await scene.look(rotated);
  await scene.look();
  await scene.look(rotated);
  expect(await scene.runs()).toEqual([1, 2]);
  expect(values(await scene.comments(1))).toEqual([1, 2, 3]);
  expect(values(await scene.comments(2))).toEqual([11, 12]);
});

test('a copy of a growing file is not filed', async () => {
  const scene = setUp();
  scene.append(HEADER + lines(1, 2));
  await scene.look();
  const copy = scene.path.replace('.csv', '-copy.csv');
  copyFileSync(scene.path, copy);
  expect(await scene.look(copy)).toBe('skipped');
  expect(await scene.runs()).toEqual([1]);
});

test('a log that was rotated without a trace ends its run, which says so', async () => {
  const scene = setUp();
  scene.append(HEADER + lines(1, 2));
  await scene.look();
  rmSync(scene.path);
  scene.append(HEADER + lines(11, 12));
  await scene.look();
  expect((await scene.history(1)).join('\n')).toMatch(/lines that it got after the last look, if any, are not filed/);
  expect(values(await scene.comments(2))).toEqual([11, 12]);
});

test('generations that begin alike are different runs', async () => {
  const scene = setUp({ mapping: `parse: { delimiter: ',', table: {} }` });
  for (let n = 1; n <= 3; n++) {
    scene.append('N,T (°C)\n1,1.5\n');
    await scene.look();
    scene.append(`2,${n}2.5\n`);
    await scene.look();
    renameSync(scene.path, `${scene.path}.${n}`);
  }
  expect(await scene.runs()).toEqual([1, 2, 3]);
  for (const run of [1, 2, 3]) expect(values(await scene.comments(run))).toEqual([1, 10 * run + 2]);
});

test('logs that are rotated on and on, under names that match the globs, are filed once', async () => {
  const scene = setUp();
  const [first, second] = [1, 2].map((n) => scene.path.replace('.csv', `-${n}.csv`)) as [string, string];
  scene.append(HEADER + lines(1, 2));
  await scene.look();
  renameSync(scene.path, first);
  scene.append(HEADER + lines(11, 12));
  for (const path of [first, scene.path]) await scene.look(path);
  scene.append(at(13));
  renameSync(first, second);
  renameSync(scene.path, first);
  scene.append(HEADER + lines(21, 22));
  for (const path of [first, scene.path, second, first, scene.path]) await scene.look(path);
  expect(await Promise.all((await scene.runs()).map(async (run) => values(await scene.comments(run))))).toEqual([
    [1, 2],
    [11, 12, 13],
    [21, 22],
  ]);
});

test.each([true, false])('a plot is drawn only if it is attached: %s', async (isPlotted) => {
  const scene = setUp({ isPlotted });
  scene.append(HEADER + lines(1, 9));
  await scene.look();
  expect(scene.drawn()).toBe(isPlotted ? 1 : 0);
  expect((await scene.attached(1)).map(({ kind }) => kind)).toEqual(isPlotted ? ['plot'] : []);
});

/** Numbered rotation: `.3` becomes `.4`, and so on. */
function rotate(path: string, how: 'rename' | 'copytruncate'): void {
  for (const n of [3, 2, 1]) if (existsSync(`${path}.${n}`)) renameSync(`${path}.${n}`, `${path}.${n + 1}`);
  if (how === 'rename') renameSync(path, `${path}.1`);
  else {
    copyFileSync(path, `${path}.1`);
    truncateSync(path, 0);
  }
}

test.each(
  (['rename', 'copytruncate'] as const).flatMap((how) =>
    [
      [0, 1, 2, 3, 4],
      [4, 3, 2, 1, 0],
      [2, 0, 4, 1, 3],
    ].map((order) => ({ how, order })),
  ),
)(
  'logs with numbers that all match the globs are filed once: $how, scanned in the order $order',
  async ({ how, order }) => {
    const scene = setUp();
    const places = ['', '.1', '.2', '.3', '.4'].map((end) => scene.path + end);
    for (const [n, place] of places.slice(0, 4).entries()) scene.append(HEADER + lines(10 * n + 1, 10 * n + 3), place);
    for (const place of places.slice(0, 4)) await scene.look(place);
    expect(await scene.runs()).toEqual([1, 2, 3, 4]);
    for (let round = 0; round < 2; round++) {
      scene.clock.advance(700_000);
      scene.append(at(4 + round));
      scene.clock.advance(1000);
      rmSync(`${scene.path}.4`, { force: true });
      rotate(scene.path, how);
      scene.append(HEADER + lines(50 + round, 50 + round));
      for (let times = 0; times < 2; times++) {
        for (const n of order) await scene.look(places[n]);
        scene.clock.advance(700_000);
        await scene.finish();
        await scene.finish();
      }
    }
    expect(await Promise.all((await scene.runs()).map(async (run) => values(await scene.comments(run))))).toEqual([
      [1, 2, 3, 4],
      [11, 12, 13],
      [21, 22, 23],
      [31, 32, 33],
      [50, 5],
      [51],
    ]);
  },
);

test.each(['rename', 'copytruncate'] as const)(
  'after two numbered rotations between two scans, the log in between is filed: %s',
  async (how) => {
    const scene = setUp();
    scene.append(HEADER + lines(1, 3));
    await scene.look();
    for (const n of [1, 2]) {
      scene.clock.advance(700_000);
      rotate(scene.path, how);
      scene.append(HEADER + lines(10 * n + 1, 10 * n + 3));
      await scene.look();
      scene.clock.advance(700_000);
      await scene.finish();
      await scene.finish();
    }
    scene.restart();
    for (const n of [3, 4]) {
      scene.clock.advance(700_000);
      rotate(scene.path, how);
      scene.append(HEADER + lines(10 * n + 1, 10 * n + 3));
    }
    scene.clock.advance(1000);
    await scene.look();
    await scene.finish();
    const filed = await Promise.all((await scene.runs()).map(async (run) => values(await scene.comments(run))));
    expect(filed.toSorted((a, b) => (a[0] ?? 0) - (b[0] ?? 0))).toEqual(
      [0, 1, 2, 3, 4].map((n) => [1, 2, 3].map((value) => 10 * n + value)),
    );
  },
);

test.each([
  ['UTF-8', (text: string) => Buffer.from(text)],
  ['UTF-16', (text: string) => Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from(text, 'utf16le')])],
])('a large file in %s that shrinks by one byte is not filed again', async (_, encode) => {
  const scene = setUp();
  scene.append(encode(HEADER + lines(1, 59).repeat(20)));
  await scene.look();
  truncateSync(scene.path, statSync(scene.path).size - 1);
  await scene.look();
  expect(await scene.why()).toMatch(/the last 1 byte of what was filed is gone/);
  expect(await scene.runs()).toEqual([1]);
});

test('after a power failure, only the lines that differ from those before are filed again', async () => {
  const scene = setUp();
  scene.append(HEADER + lines(1, 59).repeat(20) + lines(1, 50));
  await scene.look();
  const all = readFileSync(scene.path);
  all.fill(0, all.length - 50);
  writeFileSync(scene.path, all);
  scene.append(`\n${lines(51, 52)}`);
  await scene.look();
  expect(values(await scene.comments(2))).toEqual([51, 52]);
  const texts = (await scene.comments(2)).join('\n');
  // Without the last two of 1,231 lines, and a part of the one before.
  expect(texts).toContain('from temp.csv, lines 1,229–1,231');
  expect(texts).toMatch(/line 1,229 contains NUL characters/);
  expect((await scene.history(1)).join('\n')).toMatch(/temp.csv was rewritten/);
});

test('a log that was copied and truncated has only its header at the next look: no line of the copy is lost', async () => {
  const scene = setUp();
  scene.append(HEADER + lines(1, 3));
  await scene.look();
  scene.append(lines(4, 5));
  copyFileSync(scene.path, `${scene.path}.1`);
  truncateSync(scene.path, 0);
  scene.append(HEADER);
  await scene.look();
  expect((await scene.history(1)).join('\n')).toMatch(/temp.csv was truncated, and is now temp.csv.1/);
  scene.append(lines(11, 12));
  await scene.look();
  expect(values(await scene.comments(1))).toEqual([1, 2, 3, 4, 5]);
  expect(values(await scene.comments(2))).toEqual([11, 12]);
});

test('what follows a copied and truncated log is new, even if it begins with the same readings', async () => {
  const scene = setUp();
  scene.append(HEADER + lines(1, 5));
  await scene.look();
  copyFileSync(scene.path, `${scene.path}.1`);
  truncateSync(scene.path, 0);
  scene.append(HEADER + lines(1, 2) + at(9));
  await scene.look();
  expect(values(await scene.comments(2))).toEqual([1, 2, 9]);
});

test('a renamed log is followed as long as its writer has not begun another one', async () => {
  const scene = setUp();
  const wait = async (): Promise<void> => {
    for (let n = 0; n < 5; n++) {
      scene.clock.advance(600_000);
      await scene.finish();
    }
  };
  const rotated = `${scene.path}.1`;
  scene.append(HEADER + lines(1, 3));
  await scene.look();
  renameSync(scene.path, rotated);
  await wait();
  scene.append(lines(4, 5), rotated);
  await wait();
  expect(values(await scene.comments(1))).toEqual([1, 2, 3, 4, 5]);
  scene.append(HEADER + at(11));
  await scene.look();
  await wait();
  expect((await scene.history(1)).at(-1)).toBe('The file temp.csv.1 was read to its end');
});

test('a file that was skipped and replaced is filed from its beginning', async () => {
  const scene = setUp();
  scene.append(HEADER + lines(1, 3));
  await scene.skip();
  scene.append(lines(4, 5));
  await scene.look();
  expect(values(await scene.comments(1))).toEqual([4, 5]);
  const other = scene.path.replace('temp', 'other');
  scene.append(HEADER + lines(1, 3), other);
  await scene.skip(other);
  renameSync(other, `${other}.1`);
  scene.append(HEADER + lines(11, 19), other);
  await scene.look(other);
  expect(values(await scene.comments(2))).toEqual([11, 12, 13, 14, 15, 16, 17, 18, 19]);
  const third = scene.path.replace('temp', 'third');
  scene.append(HEADER + lines(1, 3), third);
  await scene.skip(third);
  truncateSync(third, 0);
  scene.append(HEADER + lines(21, 22), third);
  await scene.look(third);
  expect(values(await scene.comments(3))).toEqual([21, 22]);
});

test.each(['temp-2.csv', 'temp.csv.bak', 'temp.csv.77'])(
  'when a log is rotated, the file %s beside it is not taken for a part of it',
  async (name) => {
    const scene = setUp();
    scene.append(HEADER + lines(1, 3));
    await scene.look();
    renameSync(scene.path, `${scene.path}.1`);
    scene.clock.advance(1000);
    scene.append(HEADER + lines(40, 45), scene.path.replace('temp.csv', name));
    scene.append(HEADER + lines(11, 12));
    await scene.look();
    expect(values(await scene.comments(2))).toEqual([11, 12]);
    expect(await scene.runs()).toEqual([1, 2]);
  },
);

test.each([true, false])(
  'of two rotations between two looks, the log in between is filed (the first is kept: %s)',
  async (isKept) => {
    const scene = setUp();
    scene.append(HEADER + lines(1, 3));
    await scene.look();
    renameSync(scene.path, `${scene.path}.2`);
    if (!isKept) rmSync(`${scene.path}.2`);
    scene.clock.advance(1000);
    scene.append(HEADER + lines(11, 12));
    renameSync(scene.path, `${scene.path}.1`);
    scene.clock.advance(1000);
    // Neither read nor in the way.
    symlinkSync('/etc/passwd', `${scene.path}.0`);
    scene.append(HEADER + lines(21, 22));
    await scene.look();
    expect(values(await scene.comments(1))).toEqual([1, 2, 3]);
    expect(values(await scene.comments(2))).toEqual([11, 12]);
    expect(values(await scene.comments(3))).toEqual([21, 22]);
  },
);

/** The daemon dies when it is about to record, or has just recorded, where the next lines belong. */
test.each(['begin', 'replace', 'save', 'after replace'] as const)(
  'killed at %s after a file was changed in place, no line is filed twice',
  async (step) => {
    const scene = setUp({
      changes: ({ growing }) => ({
        growing: {
          ...growing,
          begin: (one) => (step === 'begin' && one.offset ? Promise.reject(DEAD) : growing.begin(one)),
          save: (one) => (step === 'save' && one.state === 'closed' ? Promise.reject(DEAD) : growing.save(one)),
          replace: async (one, next) => {
            if (step === 'replace') throw DEAD;
            const begun = await growing.replace(one, next);
            if (step === 'after replace') throw DEAD;
            return begun;
          },
        },
      }),
    });
    scene.append(HEADER + lines(1, 9));
    await scene.look();
    const all = readFileSync(scene.path, 'utf8');
    writeFileSync(scene.path, `${all.slice(0, all.indexOf(at(8)))}${lines(30, 33)}`);
    await scene.look().catch((error: unknown) => expect(error).toBe(DEAD));
    scene.restart();
    await scene.look();
    expect(values(await scene.comments(1))).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect(values(await scene.comments(2))).toEqual([30, 31, 32, 33]);
    expect(await scene.runs()).toEqual([1, 2]);
  },
);

test.each(['replace', 'after replace'] as const)(
  'killed at %s when other columns begin, no line is filed twice',
  async (step) => {
    const scene = setUp({
      changes: ({ growing }) => ({
        growing: {
          ...growing,
          replace: async (one, next) => {
            if (step === 'after replace') await growing.replace(one, next);
            throw DEAD;
          },
        },
      }),
    });
    scene.append(`${HEADER}${lines(1, 3)}Time,T (°C),Humidity (%)\n2026-03-04 00:04,4.5,50\n`);
    await expect(scene.look()).rejects.toBe(DEAD);
    scene.restart();
    await scene.look();
    expect(values(await scene.comments(1))).toEqual([1, 2, 3]);
    expect(values(await scene.comments(2))).toEqual([4]);
    expect(await scene.runs()).toEqual([1, 2]);
  },
);

const DEAD = new Error('killed');

test('killed before the lines were released, the daemon sends them although the file is gone', async () => {
  let isDead = false;
  const scene = setUp({
    changes: ({ growths }) => ({
      growths: { ...growths, flush: (...args) => (isDead ? Promise.reject(DEAD) : growths.flush(...args)) },
    }),
  });
  scene.append(HEADER + lines(1, 3));
  await scene.look();
  await scene.deliver();
  isDead = true;
  scene.append(lines(4, 5));
  await expect(scene.look()).rejects.toBe(DEAD);
  scene.restart();
  rmSync(scene.path);
  await scene.finish();
  expect(await scene.journal.outbox.claim(Number.MAX_SAFE_INTEGER, 10)).toEqual([1]);
});

test('a second name of a growing file is a copy', async () => {
  const scene = setUp({ mapping: `${CSV}, links: [hard]` });
  scene.append(HEADER + lines(1, 3));
  await scene.look();
  const link = scene.path.replace('temp', 'temp-link');
  linkSync(scene.path, link);
  expect(await scene.look(link)).toBe('skipped');
  scene.append(lines(4, 5));
  await scene.look();
  expect(values(await scene.comments(1))).toEqual([1, 2, 3, 4, 5]);
  expect((await scene.history(1)).join('\n')).not.toMatch(/renamed/);
});

test('a link to elsewhere is quarantined once, however the file grows', async () => {
  const scene = setUp();
  const elsewhere = scene.path.replace('/data/', '/');
  scene.append(HEADER + lines(1, 3), elsewhere);
  symlinkSync(elsewhere, scene.path);
  expect(await scene.look()).toBe('quarantined');
  scene.append(lines(4, 5), elsewhere);
  expect(await scene.look()).toBe('quarantined');
  expect(await scene.runs()).toEqual([1]);
  expect((await scene.reader.job(1))?.reason).toMatch(/link/);
});

const rawFiles = (all: { kind: string; name: string; sha256: string }[]) =>
  all.map(({ kind, name, sha256 }) => [kind, name, sha256]);

test.each(['file', 'day'] as const)(
  'a rotated log is attached once to the run with its last lines when it was read to its end (per: %s)',
  async (per) => {
    const scene = setUp({ per });
    scene.append(HEADER + lines(1, 3) + at(1, '2026-03-05'));
    await scene.look();
    await scene.deliver();
    const last = per === 'file' ? 1 : 2;
    renameSync(scene.path, `${scene.path}.1`);
    scene.append(HEADER + at(1, '2026-03-06'));
    await scene.look();
    expect(rawFiles(await scene.attached(last))).toEqual([]);
    for (let n = 0; n < 3; n++) {
      scene.clock.advance(120_000);
      await scene.finish();
    }
    const sha256 = hashOf(`${scene.path}.1`);
    expect(rawFiles(await scene.attached(last))).toEqual([['raw', 'temp.csv', sha256]]);
    // Sent when the run is done again, from a copy.
    rmSync(`${scene.path}.1`);
    await scene.deliver();
    const scope = { server: 'https://notebook', attached: ['logger'], dropped: [] };
    scene.database.exec(`UPDATE runs SET server = '${scope.server}', experiment = id`);
    expect(await scene.journal.outbox.uploads.claim(Number.MAX_SAFE_INTEGER, 10, scope)).toContain(last);
    expect(readdirSync(scene.path.replace('data/temp.csv', 'spool'))).toContain(sha256);
  },
);

test('a log that has not grown for a week is attached, and again if it has grown since', async () => {
  const scene = setUp();
  scene.append(HEADER + lines(1, 3));
  await scene.look();
  await scene.deliver();
  scene.clock.advance(6 * 86_400_000);
  await scene.finish();
  expect(rawFiles(await scene.attached(1))).toEqual([]);
  scene.clock.advance(86_400_000);
  await scene.finish();
  await scene.finish();
  expect(rawFiles(await scene.attached(1))).toEqual([['raw', 'temp.csv', hashOf(scene.path)]]);
  expect((await scene.history(1)).filter((text) => /counts as complete/.test(text))).toHaveLength(1);
  await scene.deliver();
  scene.append(at(4));
  await scene.look();
  expect((await scene.reader.job(1))?.growth?.endedAt).toBeUndefined();
  await scene.deliver();
  scene.clock.advance(7 * 86_400_000);
  await scene.finish();
  expect(rawFiles(await scene.attached(1))).toEqual([['raw', 'temp.csv', hashOf(scene.path)]]);
  expect((await scene.history(1)).filter((text) => /counts as complete/.test(text))).toHaveLength(2);
});

const hashOf = (path: string): string => createHash('sha256').update(readFileSync(path)).digest('hex');

const keptBytes = ({ database }: ReturnType<typeof setUp>): number =>
  Number(database.prepare('SELECT total(length(accumulation)) AS bytes FROM growths').get()?.['bytes']);

test('of a log that was read to its end, nothing is kept of the readings, and late lines are only added', async () => {
  const scene = setUp();
  scene.append(HEADER + lines(1, 9));
  await scene.look();
  await scene.deliver();
  const rotated = scene.path.replace('temp.csv', 'temp-20260304.csv');
  renameSync(scene.path, rotated);
  scene.append(HEADER + at(11));
  await scene.look();
  await scene.deliver();
  const before = keptBytes(scene);
  for (let n = 0; n < 3; n++) {
    scene.clock.advance(120_000);
    await scene.finish();
    await scene.deliver();
  }
  expect(keptBytes(scene)).toBeLessThan(before / 2);
  const { body } = (await scene.journal.outbox.load(1)).draft;
  scene.append(at(10), rotated);
  await scene.look(rotated);
  expect(values(await scene.comments(1))).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  await scene.deliver();
  expect((await scene.journal.outbox.load(1)).draft.body).toBe(body);
});

test('of days long past, nothing is kept of the readings, and a late line is only added', async () => {
  const scene = setUp({ per: 'day' });
  const day = (n: number): string => new Date(Date.UTC(2026, 0, n)).toISOString().slice(0, 10);
  scene.append(HEADER + lines(1, 5, day(1)));
  await scene.look();
  await scene.deliver();
  const first = keptBytes(scene);
  const { body } = (await scene.journal.outbox.load(1)).draft;
  for (let n = 2; n <= 60; n++) scene.append(lines(1, 5, day(n)));
  await scene.look();
  await scene.deliver();
  expect(keptBytes(scene)).toBeLessThan(40 * first);
  scene.append(at(6, day(1)) + at(6, day(60)));
  await scene.look();
  await scene.deliver();
  expect(values(await scene.comments(1))).toEqual([1, 2, 3, 4, 5, 6]);
  expect((await scene.journal.outbox.load(1)).draft.body).toBe(body);
  expect((await scene.journal.outbox.load(60)).draft.body).toContain('6.5');
});

test('a log that was compressed when it was rotated ends its run, which says that lines may be missing', async () => {
  const scene = setUp();
  scene.append(HEADER + lines(1, 3));
  await scene.look();
  scene.append(lines(4, 5));
  writeFileSync(`${scene.path}.1.gz`, gzipSync(readFileSync(scene.path)));
  rmSync(scene.path);
  scene.append(HEADER + lines(11, 12));
  await scene.look();
  expect(await scene.runs()).toEqual([1, 2]);
  expect(values(await scene.comments(2))).toEqual([11, 12]);
  expect((await scene.history(1)).join('\n')).toMatch(/lines that it got after the last look, if any, are not filed/);
});

test('lines that come while a run is ignored are filed once it is retried after all', async () => {
  const scene = setUp();
  const { outbox, requests } = scene.journal;
  scene.append(HEADER + lines(1, 3));
  await scene.look();
  await scene.deliver();
  scene.append(at(4));
  await scene.look();
  const [run = 0] = await outbox.claim(Number.MAX_SAFE_INTEGER, 1);
  await outbox.record(run, { kind: 'parked', as: 'held', failure: 'conflict', reason: 'somebody changed it' });
  await outbox.release(run);
  const gone = { path: scene.path, has: 'nothing' } as const;
  expect(await requests.decide({ kind: 'ignore', run }, gone)).toMatchObject({ answer: { done: true } });
  scene.append(lines(5, 6));
  await scene.look();
  scene.restart();
  scene.append(at(7));
  await scene.look();
  expect(await outbox.claim(Number.MAX_SAFE_INTEGER, 1)).toEqual([]);
  expect(await requests.decide({ kind: 'ignore', run, undo: true }, gone)).toMatchObject({
    answer: { done: false, text: expect.stringMatching(/cannot be put back; to file it: labfeed retry/) },
  });
  expect(await requests.decide({ kind: 'retry', run }, gone)).toMatchObject({ answer: { done: true } });
  expect(values(await scene.comments(run))).toEqual([1, 2, 3, 4, 5, 6, 7]);
  await scene.deliver();
  scene.append(at(8));
  await scene.look();
  expect(values(await scene.comments(run))).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  expect(await scene.runs()).toEqual([run]);
});
