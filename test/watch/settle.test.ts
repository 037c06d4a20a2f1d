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

describe('quiet', () => {
  test('a still file is taken after the quiet time, at the price of one sleep', async () => {
    const path = dropped();
    const clock = sleepingClock();
    expect(await settle(found(path), quiet, { clock, signal: never })).toEqual(found(path));
    expect(clock.sleeps).toEqual([5000]);
  });

  test('a file found at start-up waits as well, however old it says it is', async () => {
    const path = dropped();
    utimesSync(path, 0, 0);
    const clock = sleepingClock();
    await settle(found(path), quiet, { clock, signal: never });
    expect(clock.monotonic()).toBe(5000);
  });

  test('a file that grows is not taken until it has stopped', async () => {
    const path = dropped();
    const clock = sleepingClock((elapsed) => {
      if (elapsed <= 20_000) appendFileSync(path, 'more\n');
    });
    const settled = await settle(found(path), quiet, { clock, signal: never });
    expect(settled).toEqual(found(path));
    expect(settled?.size).toBe(4 + 4 * 5);
    expect(clock.monotonic()).toBe(25_000);
  });

  test('a file rewritten with the same size is not taken until that has stopped', async () => {
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

  test('another file of the same size and time under the same name starts the wait anew', async () => {
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

  test('an empty file settles as any other', async () => {
    const path = dropped('empty.csv', '');
    const settled = await settle(found(path), quiet, { clock: sleepingClock(), signal: never });
    expect(settled?.size).toBe(0);
  });

  test('a file that vanishes, or turns into a folder, is given up', async () => {
    const path = dropped();
    const gone = sleepingClock(() => rmSync(path, { recursive: true, force: true }));
    const file = found(path);
    expect(await settle(file, quiet, { clock: gone, signal: never })).toBeUndefined();
    mkdirSync(path);
    expect(await settle(file, quiet, { clock: sleepingClock(), signal: never })).toBeUndefined();
  });

  test('where nothing is asked for, quiet is', async () => {
    const clock = sleepingClock();
    await settle(found(dropped()), {}, { clock, signal: never });
    expect(clock.monotonic()).toBe(5000);
  });

  test('waiting ends with the signal', async () => {
    const stopping = new AbortController();
    const clock = sleepingClock(() => stopping.abort(new Error('enough')));
    await expect(settle(found(dropped()), quiet, { clock, signal: stopping.signal })).rejects.toThrow(
      'enough',
    );
  });

  test('a share that does not answer is waited for, and the quiet time starts anew', async () => {
    const path = dropped();
    let refusals = 2;
    // A name that is too long stands for any error that is not "gone": the look is made at another place.
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

  test('looks go through the lane', async () => {
    let looks = 0;
    await settle(found(dropped()), quiet, {
      clock: sleepingClock(),
      signal: never,
      lane: (work) => {
        looks += 1;
        return work();
      },
    });
    expect(looks).toBe(1);
  });
});

describe('done-file', () => {
  test.each([
    ['{name}.done', 'run 1.csv.done'],
    ['{stem}.ok', 'run 1.ok'],
    ['done/{stem}.ok', 'done/run 1.ok'],
  ])('%s: the file is taken once %s is there', async (doneFile, name) => {
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

  test('a done-file that is already there is enough', async () => {
    const path = dropped();
    writeFileSync(`${path}.done`, '');
    const clock = sleepingClock();
    expect(await settle(found(path), { doneFile: '{name}.done' }, { clock, signal: never })).toEqual(
      found(path),
    );
    expect(clock.sleeps).toEqual([]);
  });

  test('with both, the file must be quiet and its done-file there', async () => {
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

  test('the longer it waits, the less often it looks', async () => {
    const path = dropped();
    const clock = sleepingClock((elapsed) => {
      if (elapsed > 600_000) writeFileSync(`${path}.done`, '');
    });
    await settle(found(path), { doneFile: '{name}.done' }, { clock, signal: never });
    expect(Math.max(...clock.sleeps)).toBe(10_000);
    expect(clock.sleeps.length).toBeLessThan(100);
  });

  test('a file that vanishes while its done-file is awaited is given up', async () => {
    const path = dropped();
    const clock = sleepingClock((elapsed) => {
      if (elapsed > 5000) rmSync(path, { force: true });
    });
    expect(await settle(found(path), { doneFile: '{name}.done' }, { clock, signal: never })).toBeUndefined();
  });

  test('names that hold what a replacement would take for an instruction, or are not UTF-8', async () => {
    const odd = dropped("$& $1 $' {stem}.csv");
    writeFileSync(`${odd}.done`, '');
    expect(
      await settle(found(odd), { doneFile: '{name}.done' }, { clock: sleepingClock(), signal: never }),
    ).toEqual(found(odd));
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
