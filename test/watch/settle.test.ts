import { appendFileSync, mkdirSync, renameSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { settle } from '../../src/watch/settle.js';
import { tempFolder } from '../support/temp-folder.js';
import { found, never, sleepingClock } from './support.js';

const quiet = { quiet: 5000 };

function dropped(name = 'run.csv', content = 'a;b\n'): string {
  const path = join(tempFolder(), name);
  writeFileSync(path, content);
  return path;
}

describe('the quiet period', () => {
  test('an unchanged file is taken after it, with a single sleep', async () => {
    const path = dropped();
    const clock = sleepingClock();
    expect(await settle(found(path), quiet, { clock, signal: never })).toEqual(found(path));
    expect(clock.sleeps).toEqual([5000]);
  });

  test('applies to files found at start-up too, whatever their modification time', async () => {
    const path = dropped();
    utimesSync(path, 0, 0);
    const clock = sleepingClock();
    await settle(found(path), quiet, { clock, signal: never });
    expect(clock.monotonic()).toBe(5000);
  });

  test('is at least 2 s for a file whose time may be in steps of 2 s, unless a done-file ends it', async () => {
    const path = dropped();
    utimesSync(path, 1_700_000_000, 1_700_000_000);
    const short = sleepingClock();
    await settle(found(path), { quiet: 100 }, { clock: short, signal: never });
    expect(short.monotonic()).toBe(2000);
    writeFileSync(`${path}.done`, '');
    const done = sleepingClock();
    await settle(found(path), { doneFile: '{name}.done' }, { clock: done, signal: never });
    expect(done.monotonic()).toBe(0);
    utimesSync(path, 1_700_000_000.5, 1_700_000_000.5);
    const fine = sleepingClock();
    await settle(found(path), { quiet: 100 }, { clock: fine, signal: never });
    expect(fine.monotonic()).toBe(100);
  });

  test('starts again while a file grows', async () => {
    const path = dropped();
    const clock = sleepingClock((elapsed) => {
      if (elapsed <= 20_000) appendFileSync(path, 'more\n');
    });
    const settled = await settle(found(path), quiet, { clock, signal: never });
    expect(settled).toEqual(found(path));
    expect(settled?.size).toBe(4 + 4 * 5);
    expect(clock.monotonic()).toBe(25_000);
  });

  test('starts again when a file is rewritten with the same size', async () => {
    const path = dropped('run.csv', 'aaaa');
    const clock = sleepingClock((elapsed) => {
      if (elapsed > 10_000) return;
      writeFileSync(path, 'bbbb');
      utimesSync(path, 1_800_000_000, 1_800_000_000 + elapsed / 1000);
    });
    const settled = await settle(found(path), quiet, { clock, signal: never });
    expect(settled).toEqual(found(path));
    expect(clock.monotonic()).toBe(15_000);
  });

  test('starts again when another file of the same size and time takes the name', async () => {
    const path = dropped('run.csv', 'aaaa');
    utimesSync(path, 1000, 1000);
    const clock = sleepingClock((elapsed) => {
      if (elapsed > 5000) return;
      writeFileSync(`${path}.new`, 'bbbb');
      utimesSync(`${path}.new`, 1000, 1000);
      renameSync(`${path}.new`, path);
    });
    expect(await settle(found(path), quiet, { clock, signal: never })).toEqual(found(path));
    expect(clock.monotonic()).toBe(10_000);
  });

  test('applies to empty files too', async () => {
    const path = dropped('empty.csv', '');
    const settled = await settle(found(path), quiet, { clock: sleepingClock(), signal: never });
    expect(settled?.size).toBe(0);
  });

  test('ends when the file disappears or becomes a folder', async () => {
    const path = dropped();
    const gone = sleepingClock(() => rmSync(path, { recursive: true, force: true }));
    const file = found(path);
    expect(await settle(file, quiet, { clock: gone, signal: never })).toBeUndefined();
    mkdirSync(path);
    expect(await settle(file, quiet, { clock: sleepingClock(), signal: never })).toBeUndefined();
  });

  test('is 5 s by default', async () => {
    const clock = sleepingClock();
    await settle(found(dropped()), {}, { clock, signal: never });
    expect(clock.monotonic()).toBe(5000);
  });

  test('ends when the signal is aborted', async () => {
    const stopping = new AbortController();
    const clock = sleepingClock(() => stopping.abort(new Error('enough')));
    await expect(settle(found(dropped()), quiet, { clock, signal: stopping.signal })).rejects.toThrow('enough');
  });

  test('starts again after a share has not responded', async () => {
    const path = dropped();
    let refusals = 2;
    // A name that is too long stands for any error other than "does not exist".
    const file = found(path);
    const away = {
      ...file,
      get location() {
        refusals -= 1;
        return refusals >= 0 ? `/${'x'.repeat(300)}` : path;
      },
    };
    const clock = sleepingClock();
    expect(await settle(away, quiet, { clock, signal: never })).toEqual(file);
    expect(clock.sleeps).toEqual([5000, 10_000, 10_000]);
  });
});

describe('a done-file', () => {
  test.each([
    ['{name}.done', 'run 1.csv.done'],
    ['{stem}.ok', 'run 1.ok'],
    ['done/{stem}.ok', 'done/run 1.ok'],
  ])('%s: the file is taken once %s exists', async (doneFile, name) => {
    const path = dropped('run 1.csv');
    mkdirSync(join(path, '../done'));
    const clock = sleepingClock((elapsed) => {
      if (elapsed === 3000) {
        appendFileSync(path, 'last line\n');
        writeFileSync(join(path, '..', name), '');
      }
    });
    expect(await settle(found(path), { doneFile }, { clock, signal: never })).toEqual(found(path));
    expect(clock.sleeps).toEqual([1000, 1000, 1000]);
  });

  test('that already exists is enough', async () => {
    const path = dropped();
    writeFileSync(`${path}.done`, '');
    const clock = sleepingClock();
    expect(await settle(found(path), { doneFile: '{name}.done' }, { clock, signal: never })).toEqual(found(path));
    expect(clock.sleeps).toEqual([]);
  });

  test('can be combined with a quiet period', async () => {
    const ready = { quiet: 5000, doneFile: '{name}.done' };
    const first = dropped();
    const doneLater = sleepingClock((elapsed) => {
      if (elapsed >= 20_000) writeFileSync(`${first}.done`, '');
    });
    expect(await settle(found(first), ready, { clock: doneLater, signal: never })).toBeDefined();
    expect(doneLater.monotonic()).toBeGreaterThanOrEqual(20_000);

    const second = dropped();
    writeFileSync(`${second}.done`, '');
    const stillWritten = sleepingClock((elapsed) => {
      if (elapsed <= 10_000) appendFileSync(second, 'x');
    });
    expect(await settle(found(second), ready, { clock: stillWritten, signal: never })).toEqual(found(second));
    expect(stillWritten.monotonic()).toBe(15_000);
  });

  test('is checked for less often the longer it is missing', async () => {
    const path = dropped();
    const clock = sleepingClock((elapsed) => {
      if (elapsed > 600_000) writeFileSync(`${path}.done`, '');
    });
    await settle(found(path), { doneFile: '{name}.done' }, { clock, signal: never });
    expect(Math.max(...clock.sleeps)).toBe(10_000);
    expect(clock.sleeps.length).toBeLessThan(100);
  });

  test('is no longer waited for when the file disappears', async () => {
    const path = dropped();
    const clock = sleepingClock((elapsed) => {
      if (elapsed > 5000) rmSync(path, { force: true });
    });
    expect(await settle(found(path), { doneFile: '{name}.done' }, { clock, signal: never })).toBeUndefined();
  });

  test('is found for names that contain replacement patterns or are not UTF-8', async () => {
    const odd = dropped("$& $1 $' {stem}.csv");
    writeFileSync(`${odd}.done`, '');
    expect(await settle(found(odd), { doneFile: '{name}.done' }, { clock: sleepingClock(), signal: never })).toEqual(
      found(odd),
    );
    const folder = tempFolder();
    const location = Buffer.concat([Buffer.from(`${folder}/`), Buffer.from('Mé.csv', 'latin1')]);
    writeFileSync(location, 'x');
    writeFileSync(Buffer.concat([location.subarray(0, -4), Buffer.from('.ök')]), '');
    const file = found(`${folder}/M\\xE9.csv`, location);
    const clock = sleepingClock();
    expect(await settle(file, { doneFile: '{stem}.ök' }, { clock, signal: never })).toEqual(file);
    expect(clock.sleeps).toEqual([]);
  });
});
