import {
  appendFileSync,
  chmodSync,
  chownSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { NotebookError } from '../../src/errors.js';
import { DisposalError } from '../../src/watch/file-moves.js';
import { stampOf } from '../../src/watch/identify.js';
import { faults, resetFaults } from '../support/disk-faults.js';
import { setUp } from './disposal-scene.js';

const privateNames = (folder: string): string[] => readdirSync(folder).filter((name) => name.startsWith('.labfeed-'));

/** On another file system than the temporary folder; undefined, with a notice, if there is none. */
function otherFileSystem(): string | undefined {
  const folder = existsSync('/dev/shm') ? mkdtempSync('/dev/shm/labfeed-') : undefined;
  if (folder === undefined) {
    console.warn('there is no /dev/shm, so nothing is moved to another file system');
    return undefined;
  }
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return folder;
}

test('a filed file gets to its target, with its time and its subfolder, and nothing else is left', async () => {
  const scene = await setUp({ files: { 'monday/a.csv': 'filed' } });
  utimesSync(join(scene.data, 'monday/a.csv'), 1e9, 1e9);
  await scene.act();
  // Another time: it has to be quiet for a while.
  expect(scene.inData()).toEqual(['monday/a.csv']);
  scene.wait();
  await scene.act();
  expect([scene.inData(), scene.inDone()]).toEqual([[], ['monday/a.csv']]);
  expect(readFileSync(join(scene.done, 'monday/a.csv'), 'utf8')).toBe('filed');
  expect(statSync(join(scene.done, 'monday/a.csv')).mtimeMs).toBe(1e12);
  expect(await scene.movedTo()).toEqual([join(scene.done, 'monday/a.csv')]);
});

test('across file systems, the copy has the content, time and permissions of the file', async () => {
  const other = otherFileSystem();
  if (other === undefined) return;
  const scene = await setUp({ target: join(other, 'done') });
  chmodSync(join(scene.data, 'a.csv'), 0o640);
  const { mtimeMs } = statSync(join(scene.data, 'a.csv'));
  await scene.act();
  expect(await scene.outcomes()).toEqual(['moved']);
  const { mode, mtimeMs: copied } = statSync(join(other, 'done/a.csv'));
  expect([mode & 0o777, Math.abs(copied - mtimeMs) < 1]).toEqual([0o640, true]);
  expect([scene.inData(), scene.inDone()]).toEqual([[], ['a.csv']]);
});

test.each([
  ['of the same bytes', 'filed', ['a.csv'], 'a.csv'],
  ['of other bytes', 'other', ['a (2).csv', 'a.csv'], 'a (2).csv'],
])(
  'a file %s at the target stays, and the file is moved beside it if it is another one',
  async (_, there, files, to) => {
    const scene = await setUp();
    mkdirSync(scene.done);
    writeFileSync(join(scene.done, 'a.csv'), there);
    await scene.act();
    expect(scene.inDone()).toEqual(files);
    expect(readFileSync(join(scene.done, 'a.csv'), 'utf8')).toBe(there);
    expect(await scene.movedTo()).toEqual([join(scene.done, to)]);
    expect(scene.inData()).toEqual([]);
  },
);

test('a free name is found in few steps among hundreds of files of one name', async () => {
  const scene = await setUp();
  mkdirSync(scene.done);
  for (let n = 2; n <= 300; n++) writeFileSync(join(scene.done, `a (${n}).csv`), 'other');
  writeFileSync(join(scene.done, 'a.csv'), 'other');
  const seen = new Set<string>();
  faults.meanwhile = (_, path) => seen.add(path);
  await scene.act();
  expect(await scene.movedTo()).toEqual([join(scene.done, 'a (301).csv')]);
  expect([...seen].filter((path) => path.startsWith(join(scene.done, 'a'))).length).toBeLessThan(40);
});

test('a name that is taken at the target just before the move is not overwritten', async () => {
  const scene = await setUp();
  faults.meanwhile = (call, path) => {
    if (call === 'link' && path.endsWith('-1')) {
      faults.meanwhile = () => undefined;
      writeFileSync(join(scene.done, 'a.csv'), 'theirs');
    }
  };
  await scene.act();
  expect([scene.inData(), scene.inDone()]).toEqual([['a.csv'], ['a.csv']]);
  scene.wait();
  await scene.act();
  expect(scene.inDone()).toEqual(['a (2).csv', 'a.csv']);
  expect(readFileSync(join(scene.done, 'a.csv'), 'utf8')).toBe('theirs');
  expect(await scene.movedTo()).toEqual([join(scene.done, 'a (2).csv')]);
});

test('a file whose name is not UTF-8 is moved under its own bytes', async () => {
  const scene = await setUp({ files: { 'caf\u00e9.csv': 'filed' } });
  await scene.act();
  expect(scene.inDone()).toEqual(['caf\u00e9.csv']);
  expect([scene.inData(), await scene.movedTo()]).toEqual([[], [join(scene.done, 'caf\\xE9.csv')]]);
});

test('a file that was written to stays, with its new content', async () => {
  const scene = await setUp();
  writeFileSync(join(scene.data, 'a.csv'), 'filed, and more');
  await scene.act();
  scene.wait();
  await scene.act();
  expect(scene.read('data/a.csv')).toBe('filed, and more');
  expect([scene.inData(), await scene.outcomes()]).toEqual([['a.csv'], ['changed']]);
});

test('a file whose time was kept while its content changed stays', async () => {
  const scene = await setUp();
  const { atimeMs, mtimeMs } = statSync(join(scene.data, 'a.csv'));
  utimesSync(join(scene.data, 'a.csv'), atimeMs / 1000, Math.floor(mtimeMs / 1000));
  await scene.act();
  writeFileSync(join(scene.data, 'a.csv'), 'FILED');
  utimesSync(join(scene.data, 'a.csv'), atimeMs / 1000, Math.floor(mtimeMs / 1000));
  scene.wait();
  await scene.act();
  expect([scene.read('data/a.csv'), await scene.outcomes()]).toEqual(['FILED', ['changed']]);
});

describe('bytes that a program adds through a handle that it keeps open', () => {
  const append = (path: string): void => appendFileSync(path, ', and more');

  test.each([
    ['before a link beside the target is made', 'link', '/a.csv', false],
    ['before the file is renamed', 'rename', '/a.csv', false],
    ['before the file gets its name at the target', 'link', '-1', false],
    ['after that', 'unlink', '-1', false],
    ['before the copy is made', 'open', '-1', true],
    ['before the copy gets its name', 'link', '-1', true],
    ['after the copy has its name', 'unlink', '-1', true],
  ])(
    '%s do not leave: the file has its name again, and only filed bytes are at the target',
    async (_, at, name, isCopied) => {
      const scene = await setUp();
      let isWritten = false;
      if (isCopied) faults.fail = noLinksBetween;
      faults.meanwhile = (call, path) => {
        // What is left of an earlier copy is removed first.
        if (call !== at || !path.endsWith(name) || isWritten || (call === 'unlink' && !existsSync(path))) return;
        isWritten = true;
        append(existsSync(hiddenIn(scene.data)) ? hiddenIn(scene.data) : join(scene.data, 'a.csv'));
        if (isCopied) faults.fail = () => undefined;
      };
      await scene.act();
      expect(isWritten).toBe(true);
      expect([scene.inData(), scene.read('data/a.csv')]).toEqual([['a.csv'], 'filed, and more']);
      for (const one of scene.inDone()) expect(readFileSync(join(scene.done, one), 'utf8')).toBe('filed');
      expect(statSync(join(scene.data, 'a.csv')).nlink).toBe(1);
      expect([undefined, 'changed']).toContain((await scene.outcomes())[0]);
      resetFaults();
      for (let n = 0; n < 2; n++) {
        scene.wait();
        await scene.act();
      }
      expect([scene.read('data/a.csv'), await scene.outcomes()]).toEqual(['filed, and more', ['changed']]);
    },
  );

  test('after the copy was compared keep the copy from getting its name', async () => {
    const scene = await setUp();
    let copied = 0;
    faults.fail = noLinksBetween;
    faults.meanwhile = (call, path) => {
      // It is opened to be written, and then to be compared.
      if (call === 'open' && path.endsWith('-1') && ++copied === 2) append(join(scene.data, 'a.csv'));
    };
    await scene.act();
    expect([copied, scene.read('data/a.csv'), scene.inDone()]).toEqual([2, 'filed, and more', []]);
  });

  test('are not deleted', async () => {
    const scene = await setUp({ source: 'delete' });
    let opened = 0;
    faults.meanwhile = (call, path) => {
      // The state is looked at before and after hashing, and once more before the deletion.
      if (call === 'open' && path.endsWith('-a.csv') && ++opened === 4) append(path);
    };
    await scene.act();
    expect([opened >= 4, scene.read('data/a.csv')]).toEqual([true, 'filed, and more']);
  });
});

/** As between two file systems. */
const noLinksBetween = (call: string, path: string): string | undefined =>
  call === 'link' && path.endsWith('.csv') && !path.includes('.labfeed-') ? 'EXDEV' : undefined;

const hiddenIn = (folder: string): string => join(folder, privateNames(folder)[0] ?? 'none');

test('if one of several files was written to, none is moved, and only that one is called changed', async () => {
  const scene = await setUp({ files: { 'r/a.csv': 'one', 'r/b.csv': 'two' } });
  writeFileSync(join(scene.data, 'r/b.csv'), 'other');
  await scene.act();
  scene.wait();
  await scene.act();
  expect([scene.inData(), scene.inDone()]).toEqual([['r/a.csv', 'r/b.csv'], []]);
  expect(await scene.outcomes()).toEqual(['kept', 'changed']);
});

test('a file that was touched has to stay unchanged for a while before it is moved, without a reason for people', async () => {
  const scene = await setUp();
  for (let n = 1; n <= 6; n++) {
    utimesSync(join(scene.data, 'a.csv'), n, n);
    await scene.act();
    expect([scene.inData(), await scene.outcomes()]).toEqual([['a.csv'], [undefined]]);
    scene.wait(599_000);
    expect(await scene.act()).toEqual([]);
    scene.wait(1000);
  }
  await scene.act();
  expect([scene.inData(), await scene.outcomes()]).toEqual([[], ['moved']]);
});

test('a file with the same content, time and size is not called another one, whatever its inode and device', async () => {
  const scene = await setUp();
  const { atime, mtime } = statSync(join(scene.data, 'a.csv'));
  utimesSync(join(scene.data, 'a.csv'), atime, mtime);
  await scene.act();
  scene.wait();
  writeFileSync(join(scene.data, 'b'), 'filed');
  utimesSync(join(scene.data, 'b'), atime, mtime);
  renameSync(join(scene.data, 'b'), join(scene.data, 'a.csv'));
  await scene.act();
  expect([scene.inData(), await scene.outcomes()]).toEqual([[], ['moved']]);
});

describe('a file that is added to a run of several files', () => {
  test.each([
    ['in its folder', { folder: '*' }, { 'r/a.csv': 'one', 'r/b.csv': 'two' }, 'r/late.csv'],
    ['of its stem', { join: ['{stem}.csv', '{stem}.xml'] }, { 'a.csv': 'one', 'a.xml': 'two' }, 'a.csv'],
  ] as const)('%s keeps all of it where it is', async (_, runKind, files, late) => {
    const scene = await setUp({ files });
    scene.state.runKind = runKind as unknown as typeof scene.state.runKind;
    faults.meanwhile = (call, path) => {
      if (call !== 'open' || !path.endsWith('-a.csv')) return;
      faults.meanwhile = () => undefined;
      writeFileSync(join(scene.data, late), 'late');
    };
    await scene.act();
    expect(scene.inDone()).toEqual([]);
    expect(scene.inData().filter((name) => name.includes('.labfeed-'))).toEqual([]);
    expect(scene.inData()).toHaveLength(3);
    expect(scene.read(`data/${late}`)).toBe('late');
    expect(await scene.outcomes()).toEqual([undefined, undefined]);
  });
});

test('a run that is being written to again is left alone', async () => {
  const scene = await setUp();
  scene.state.waiting = true;
  await scene.act();
  expect([scene.inData(), await scene.outcomes()]).toEqual([['a.csv'], [undefined]]);
});

/** Dies once the file has its private name, and was opened there so many times. */
async function dieHidden(scene: Awaited<ReturnType<typeof setUp>>, opens = 1): Promise<string> {
  let opened = 0;
  faults.meanwhile = (call, path) => {
    if (call === 'open' && path.endsWith('-a.csv') && ++opened === opens) faults.stepsLeft = 0;
  };
  await scene.act().catch(() => undefined);
  resetFaults();
  const [name = ''] = privateNames(scene.data);
  expect(name).toMatch(/^\.labfeed-[0-9a-f]+-a\.csv$/);
  return name;
}

describe('a file that is not there', () => {
  test('is gone if its folder is on the same disk as before, even if a part of the path was removed', async () => {
    for (const [name, removed] of [
      ['a.csv', 'a.csv'],
      ['sub/a.csv', 'sub'],
    ] as const) {
      const scene = await setUp({ files: { [name]: 'filed' } });
      rmSync(join(scene.data, removed), { recursive: true });
      await scene.act();
      expect(await scene.outcomes()).toEqual(['gone']);
    }
  });

  test('is not called gone while its folder is missing or was not scanned yet, however long that takes', async () => {
    for (const hidden of [false, true]) {
      const scene = await setUp();
      if (hidden) await dieHidden(scene);
      for (const name of scene.inData()) rmSync(join(scene.data, name));
      scene.state.folder = 'unknown';
      await scene.act();
      expect(await scene.outcomes()).toEqual([undefined]);
      scene.state.folder = 'missing';
      for (let day = 0; day < 3; day++) {
        scene.wait(86_400_000);
        await scene.act();
        expect(await scene.outcomes()).toEqual([expect.stringContaining('its folder is missing')]);
      }
      scene.state.folder = 'present';
      scene.wait();
      await scene.act();
      expect(await scene.outcomes()).toEqual(['gone']);
    }
  });

  test('may be on a share that is not mounted: people know, it is looked for, and gone only after a day', async () => {
    const share = otherFileSystem();
    if (share === undefined) return;
    const scene = await setUp({ share });
    const mount = scene.unmount();
    await scene.act();
    expect(await scene.outcomes()).toEqual([expect.stringContaining('its folder is on another disk than before')]);
    expect(await scene.journal.outbox.sources.trouble(['balance'])).toMatchObject({ files: 1 });
    scene.wait();
    await scene.act();
    mount();
    scene.wait();
    await scene.act();
    expect([scene.inData(), await scene.outcomes()]).toEqual([[], ['moved']]);

    const removed = await setUp({ share });
    removed.unmount();
    for (let hour = 0; hour <= 25; hour++) {
      await removed.act();
      expect((await removed.outcomes())[0] === 'gone', `hour ${hour}`).toBe(hour >= 24);
      removed.wait(3_600_000);
    }
  });

  test.each(['delete', 'move'])(
    'may be hidden on a share that is not mounted after a crash: it gets its name when that returns (%s)',
    async (kind) => {
      const share = otherFileSystem();
      if (share === undefined) return;
      const scene = await setUp({ share, ...(kind === 'delete' && { source: 'delete' }) });
      await dieHidden(scene);
      const mount = scene.unmount();
      for (let n = 0; n < 3; n++) {
        await scene.restart();
        expect(await scene.outcomes()).toEqual([expect.stringContaining('its folder is on another disk')]);
        // Whatever instruments are configured.
        expect(await scene.journal.outbox.sources.trouble([])).toMatchObject({ files: 1 });
        scene.wait();
      }
      mount();
      await scene.restart();
      expect(scene.inData()).toEqual(['a.csv']);
      await scene.act();
      expect(await scene.outcomes()).toEqual([kind === 'delete' ? 'deleted' : 'moved']);
    },
  );

  test.each([
    ['gone', 1],
    // Compared, and about to be deleted.
    ['deleted', 4],
  ])('and was taken for %s gets its name as soon as a scan finds its private one', async (outcome, opens) => {
    const scene = await setUp({ source: 'delete' });
    const name = await dieHidden(scene, opens);
    // The mount point of a bind mount has the same device.
    renameSync(scene.data, `${scene.data}-unmounted`);
    mkdirSync(scene.data);
    await scene.restart();
    expect(await scene.outcomes()).toEqual([outcome]);
    rmSync(scene.data, { recursive: true });
    renameSync(`${scene.data}-unmounted`, scene.data);
    await scene.found(name);
    expect(await scene.outcomes()).toEqual([undefined]);
    await scene.restart();
    expect([scene.inData(), scene.read('data/a.csv')]).toEqual([['a.csv'], 'filed']);
    await scene.act();
    expect([scene.inData(), await scene.outcomes()]).toEqual([[], ['deleted']]);
  });

  test('because its folder was renamed while it was hidden gets its name there', async () => {
    const scene = await setUp({ files: { 'a.csv': 'filed' } });
    const name = await dieHidden(scene);
    mkdirSync(join(scene.data, 'later'));
    renameSync(join(scene.data, name), join(scene.data, 'later', name));
    await scene.restart();
    expect(await scene.outcomes()).toEqual(['gone']);
    await scene.found(`later/${name}`);
    expect(scene.inData()).toEqual(['later/a.csv']);
  });

  test('because it was moved just before a crash is looked for while its target is not mounted', async () => {
    const scene = await setUp();
    faults.meanwhile = (call, path) => {
      if (call === 'unlink' && path.endsWith('-a.csv')) faults.meanwhile = () => (faults.stepsLeft = 0);
    };
    await scene.act().catch(() => undefined);
    resetFaults();
    expect([scene.inData(), scene.inDone()]).toEqual([[], ['a.csv']]);
    // As if it had been on a share.
    await scene.journal.intake.see(scene.done, { point: scene.done, isEmpty: false });
    renameSync(scene.done, `${scene.done}-unmounted`);
    mkdirSync(scene.done);
    for (let day = 0; day < 3; day++) {
      await scene.restart();
      expect(await scene.outcomes()).toEqual([expect.stringContaining('it was being moved to')]);
      scene.wait(86_400_000);
    }
    rmSync(scene.done, { recursive: true });
    renameSync(`${scene.done}-unmounted`, scene.done);
    await scene.journal.intake.see(scene.done, { point: '/', isEmpty: false });
    scene.wait();
    await scene.restart();
    expect(await scene.outcomes()).toEqual(['moved']);
  });
});

test('a private name that a scan finds while the file is being moved is left alone', async () => {
  const scene = await setUp();
  let answer: Promise<boolean> | undefined;
  faults.meanwhile = (call, path) => {
    if (call !== 'open' || !path.endsWith('-a.csv') || answer) return;
    answer = scene.found(privateNames(scene.data)[0] ?? '');
  };
  await scene.act();
  expect([await answer, scene.inDone(), await scene.outcomes()]).toEqual([true, ['a.csv'], ['moved']]);
});

test('a file whose name was taken while it was hidden is not filed under its new name, even after a crash', async () => {
  for (const steps of [2, 3, 9]) {
    const scene = await setUp();
    const name = await dieHidden(scene);
    writeFileSync(join(scene.data, 'a.csv'), 'the next run');
    // It dies again, after the file has its second name.
    faults.stepsLeft = steps;
    await scene.restart().catch(() => undefined);
    resetFaults();
    expect(existsSync(join(scene.data, 'a (2).csv')), name).toBe(true);
    const location = join(scene.data, 'a (2).csv');
    const file = { path: location, location, ...stampOf(statSync(location, { bigint: true })) };
    expect(await scene.journal.intake.unknown('balance', [file])).toEqual([]);
    await scene.restart();
    expect(scene.inData()).toEqual(['a (2).csv', 'a.csv']);
    expect(scene.read('data/a.csv')).toBe('the next run');
  }
});

test('the files of an instrument that watches another folder now stay', async () => {
  const scene = await setUp();
  scene.state.watch = join(scene.folder, 'elsewhere');
  mkdirSync(scene.state.watch);
  await scene.act();
  expect([scene.inData(), await scene.outcomes()]).toEqual([['a.csv'], ['kept']]);
});

test('a file whose private name would be too long stays, and is tried again only after a day', async () => {
  const name = `${'x'.repeat(246)}.csv`;
  const scene = await setUp({ files: { [name]: 'filed' } });
  await scene.act();
  expect([scene.inData(), await scene.outcomes()]).toEqual([[name], [expect.stringContaining('its name is too long')]]);
  expect(scene.inDone()).toEqual([]);
  scene.wait(86_300_000);
  expect(await scene.act()).toEqual([]);
});

describe('a link', () => {
  test('stays, and so does the file that it leads to', async () => {
    const scene = await setUp();
    renameSync(join(scene.data, 'a.csv'), join(scene.folder, 'real.csv'));
    symlinkSync(join(scene.folder, 'real.csv'), join(scene.data, 'a.csv'));
    await scene.act();
    expect(await scene.outcomes()).toEqual([expect.stringContaining('is a link or no plain file')]);
    expect([scene.inData(), existsSync(join(scene.folder, 'real.csv'))]).toEqual([['a.csv'], true]);
  });

  test('that takes the place of the file at the last moment is put back', async () => {
    const scene = await setUp();
    writeFileSync(join(scene.folder, 'real.csv'), 'filed');
    faults.meanwhile = (call, path) => {
      if (call !== 'rename' || !path.endsWith('a.csv')) return;
      rmSync(path);
      symlinkSync(join(scene.folder, 'real.csv'), path);
    };
    await scene.act();
    expect(await scene.outcomes()).toEqual([expect.stringContaining('is a link or no plain file')]);
    expect([scene.inData(), scene.inDone()]).toEqual([['a.csv'], []]);
  });

  test('in place of its folder leads to no other file', async () => {
    const scene = await setUp({ files: { 'sub/a.csv': 'filed' } });
    renameSync(join(scene.data, 'sub'), join(scene.folder, 'elsewhere'));
    symlinkSync(join(scene.folder, 'elsewhere'), join(scene.data, 'sub'));
    await scene.act();
    expect(await scene.outcomes()).toEqual([expect.stringContaining('is behind a link')]);
    expect(readdirSync(join(scene.folder, 'elsewhere'))).toEqual(['a.csv']);
  });

  test('of another name to the same file keeps it where it is', async () => {
    const scene = await setUp();
    linkSync(join(scene.data, 'a.csv'), join(scene.folder, 'second'));
    await scene.act();
    expect(await scene.outcomes()).toEqual([expect.stringContaining('has 2 names (hard links)')]);
    expect(scene.inData()).toEqual(['a.csv']);
    // Nothing was read back for it, and nothing will be for a day.
    scene.wait(86_300_000);
    expect([await scene.act(), scene.state.proofs]).toEqual([[], 0]);
  });
});

describe('if something fails', () => {
  test.each([
    ['EACCES', 'rename', 'permission denied (EACCES)', 'blocked'],
    ['EROFS', 'rename', 'the file system is read-only', 'blocked'],
    ['EBUSY', 'rename', 'another program is using the file (EBUSY)', 'acted'],
    ['EIO', 'open', 'the disk or share does not respond (EIO)', 'blocked'],
    ['ENOSPC', 'link', 'there is no space left (ENOSPC)', 'blocked'],
    ['EROFS', 'mkdir', 'the file system is read-only', 'blocked'],
    ['EACCES', 'access', 'permission denied (EACCES)', 'blocked'],
    ['ENAMETOOLONG', 'link', 'its name is too long', 'acted'],
  ])(
    'with %s in %s, the file has its name, people know why, and it is not tried again at once',
    async (code, failing, reason, result) => {
      const scene = await setUp();
      const isOurs = (path: string): boolean => !['link', 'open'].includes(failing) || path.includes('.labfeed-');
      let isOver = false;
      faults.fail = (call, path) => {
        // Putting it back works.
        if (isOver || call !== failing || !isOurs(path)) return undefined;
        if (call === 'link') isOver = true;
        return code;
      };
      const waits: number[] = [];
      for (let n = 0; n < 3; n++) {
        isOver = false;
        expect(await scene.act()).toEqual([result]);
        expect([scene.inData(), scene.inDone()]).toEqual([['a.csv'], []]);
        expect(await scene.outcomes()).toEqual([expect.stringContaining(reason)]);
        expect(await scene.act()).toEqual([]);
        const stepMs = code === 'ENAMETOOLONG' ? 600_000 : 1000;
        let waitedMs = 0;
        for (
          ;
          (await scene.journal.outbox.sources.claim(scene.clock.now(), 1, ['balance'])).length === 0;
          waitedMs += stepMs
        )
          scene.clock.advance(stepMs);
        await scene.journal.outbox.sources.release(scene.id);
        waits.push(waitedMs);
      }
      expect(waits[0]).toBeGreaterThanOrEqual(5000);
      // A blocked instrument has a back-off of its own.
      if (result === 'acted' && code === 'EBUSY') expect(waits[2]).toBeGreaterThan(waits[0] ?? 0);
      else expect(waits[2]).toBe(result === 'blocked' ? 10_000 : 86_400_000);
      expect(await scene.journal.outbox.sources.trouble(['balance'])).toMatchObject({
        files: 1,
        path: join(scene.data, 'a.csv'),
      });
      resetFaults();
      scene.wait(86_400_000);
      await scene.act();
      expect(await scene.outcomes()).toEqual(['moved']);
      expect(await scene.journal.outbox.sources.trouble(['balance'])).toBeUndefined();
      const { history = [] } = (await scene.reader.job(scene.id)) ?? {};
      expect(history.filter(({ event }) => event === 'sourcePostponed')).toHaveLength(1);
    },
  );

  test('between two mounts of one file system, the file is copied', async () => {
    const scene = await setUp();
    faults.fail = noLinksBetween;
    await scene.act();
    expect([scene.inData(), scene.inDone(), await scene.outcomes()]).toEqual([[], ['a.csv'], ['moved']]);
  });

  test('because the target is full while the second of two files is copied, none is moved', async () => {
    const scene = await setUp({ files: { 'r/a.csv': 'one', 'r/b.csv': 'two' } });
    faults.fail = (call, path) => (call === 'open' && path.endsWith('-2') ? 'ENOSPC' : noLinksBetween(call, path));
    expect(await scene.act()).toEqual(['blocked']);
    expect([scene.inData(), scene.inDone()]).toEqual([['r/a.csv', 'r/b.csv'], []]);
    expect(await scene.outcomes()).toEqual(Array(2).fill(expect.stringContaining('there is no space left')));
  });

  test.each(['utimes', 'chown'])('because the target knows no %s, the file is moved', async (failing) => {
    const scene = await setUp({ files: { 'sub/a.csv': 'filed' } });
    faults.fail = (call, path) => (call === failing ? 'EPERM' : noLinksBetween(call, path));
    await scene.act();
    expect([scene.inDone(), await scene.outcomes()]).toEqual([['sub/a.csv'], ['moved']]);
  });

  test('because a copy has other bytes, the disk is to blame, unless the file was written to', async () => {
    for (const isWritten of [false, true]) {
      const scene = await setUp();
      let copied = 0;
      faults.fail = noLinksBetween;
      faults.meanwhile = (call, path) => {
        // The copy is opened once to be written, then to be compared.
        if (call !== 'open' || !path.endsWith('-1') || ++copied !== 2) return;
        writeFileSync(path, 'other');
        if (isWritten) writeFileSync(join(scene.data, 'a.csv'), 'more');
      };
      expect(await scene.act()).toEqual([isWritten ? 'acted' : 'blocked']);
      expect(await scene.outcomes()).toEqual([isWritten ? undefined : expect.stringContaining('has other bytes')]);
      expect([scene.inData(), scene.inDone()]).toEqual([['a.csv'], []]);
    }
  });

  test('after some files of a run are moved, the others have their names, and follow later', async () => {
    const scene = await setUp({ files: { 'r/a.csv': 'one', 'r/b.csv': 'two' } });
    faults.fail = (call, path) =>
      call === 'link' && path.endsWith('-2') && scene.inDone().includes('r/a.csv') ? 'EIO' : undefined;
    let failures = 0;
    const fail = faults.fail;
    faults.fail = (call, path) => (fail(call, path) && failures++ === 0 ? 'EIO' : undefined);
    await scene.act();
    expect([scene.inData(), scene.inDone()]).toEqual([['r/b.csv'], ['r/a.csv']]);
    scene.wait();
    // For the watcher, the run waits for the file that was moved.
    scene.state.waiting = true;
    await scene.act();
    expect([scene.inData(), scene.inDone()]).toEqual([[], ['r/a.csv', 'r/b.csv']]);
    expect(await scene.outcomes()).toEqual(['moved', 'moved']);
  });

  test('and the file cannot even get its name back, that is repeated before anything else', async () => {
    const scene = await setUp();
    faults.fail = (call, path) => (call === 'link' && path.includes('.labfeed-') ? 'EIO' : undefined);
    await scene.act();
    expect(privateNames(scene.data)).toHaveLength(1);
    expect(await scene.outcomes()).toEqual([expect.stringContaining('does not respond')]);
    resetFaults();
    scene.wait();
    await scene.restart();
    expect(scene.inData()).toEqual(['a.csv']);
  });

  test('the notebook has not everything, the file stays, with the reason, and is compared again after a day', async () => {
    const scene = await setUp();
    scene.state.proof = new DisposalError('lasting', 'not everything was read back');
    await scene.act();
    expect([scene.inData(), await scene.outcomes()]).toEqual([['a.csv'], ['not everything was read back']]);
    scene.wait(86_300_000);
    await scene.act();
    expect(scene.state.proofs).toBe(1);
    scene.wait(100_000);
    await scene.act();
    expect(scene.state.proofs).toBe(2);
  });

  test('because the notebook is down, the file stays, and there is no second alarm', async () => {
    const scene = await setUp();
    scene.state.proof = new NotebookError('server', '503');
    expect(await scene.act()).toEqual(['blocked']);
    expect([scene.inData(), await scene.outcomes()]).toEqual([['a.csv'], [undefined]]);
  });

  test('because the notebook is down, an earlier reason stays', async () => {
    const scene = await setUp();
    scene.state.proof = new DisposalError('lasting', 'not everything was read back');
    await scene.act();
    scene.state.proof = new NotebookError('server', '503');
    scene.wait(86_400_000);
    await scene.act();
    expect(await scene.outcomes()).toEqual(['not everything was read back']);
  });
});

describe('a copy from an interrupted move', () => {
  test.each([
    ['of some bytes', 'fil'],
    ['of all bytes', 'filed'],
    ['of other bytes', 'FILED'],
  ])('%s is not used, even if the target has the same device', async (_, bytes) => {
    const scene = await setUp();
    faults.fail = noLinksBetween;
    mkdirSync(scene.done);
    writeFileSync(join(scene.done, `.labfeed-copy-${scene.journal.outbox.id}-${scene.id}-1`), bytes);
    await scene.act();
    expect([scene.inDone(), await scene.outcomes()]).toEqual([['a.csv'], ['moved']]);
    expect(readFileSync(join(scene.done, 'a.csv'), 'utf8')).toBe('filed');
  });
});

test('private files of another journal are not touched', async () => {
  const scene = await setUp();
  writeFileSync(join(scene.data, '.labfeed-00000000-a.csv'), 'theirs');
  await scene.act();
  await scene.restart();
  expect(await scene.found('.labfeed-00000000-a.csv')).toBe(false);
  expect(scene.inData()).toEqual(['.labfeed-00000000-a.csv']);
  expect(await scene.outcomes()).toEqual(['moved']);
});

test('a stop while a file is hashed or copied undoes that, and nothing counts as failed', async () => {
  const other = otherFileSystem();
  for (const copied of other === undefined ? [false] : [false, true]) {
    const scene = await setUp(copied ? { target: join(other ?? '', 'done') } : {});
    const stop = new AbortController();
    faults.meanwhile = (call, path) => {
      if (call === 'open' && path.endsWith(copied ? '-1' : '-a.csv')) stop.abort();
    };
    await scene.act(stop.signal);
    expect([scene.inData(), scene.inDone()]).toEqual([['a.csv'], []]);
    expect(await scene.outcomes()).toEqual([undefined]);
    faults.meanwhile = () => undefined;
    await scene.act();
    expect(await scene.outcomes()).toEqual(['moved']);
  }
});

test('a stop after the first file is moved does not interrupt a run of several files', async () => {
  const scene = await setUp({ files: { 'r/a.csv': 'one', 'r/b.csv': 'two' } });
  const stop = new AbortController();
  faults.meanwhile = (call, path) => {
    if (call === 'link' && path.endsWith('-1')) stop.abort();
  };
  await scene.act(stop.signal);
  expect([scene.inData(), await scene.outcomes()]).toEqual([[], ['moved', 'moved']]);
});

test('folders are synced after the last change, before the outcome is recorded', async () => {
  const scene = await setUp();
  const calls: string[] = [];
  faults.meanwhile = (call, path) => {
    if (path === scene.data || path === scene.done || path.includes('.labfeed-'))
      calls.push(`${call} ${path.slice(-4)}`);
  };
  const { sources } = scene.journal.outbox;
  const record = sources.record.bind(sources);
  Object.assign(sources, {
    record(...args: Parameters<typeof record>) {
      calls.push('record');
      return record(...args);
    },
  });
  await scene.act();
  const changes = calls.filter((call) => /^(rename|link|unlink|record|open (data|done))/.test(call));
  const linked = changes.findLastIndex((call) => call.startsWith('link'));
  const unlinked = changes.findLastIndex((call) => call.startsWith('unlink'));
  // The new name is on disk before the old one goes, and that before it is recorded.
  expect(changes.slice(linked, unlinked)).toContain('open done');
  expect(changes.slice(unlinked)).toEqual(expect.arrayContaining(['open data']));
  expect(changes.at(-1)).toBe('record');
});

test('the folder of a run stays: the instrument may write to it again', async () => {
  const scene = await setUp({ files: { 'r/a.csv': 'one', 'r/b.csv': 'two' } });
  scene.state.runKind = { folder: '*' };
  await scene.act();
  expect([await scene.outcomes(), readdirSync(scene.data)]).toEqual([['moved', 'moved'], ['r']]);
});

test('a file keeps its own name while it is copied', async () => {
  const scene = await setUp({ files: { 'r/a.csv': 'one', 'r/b.csv': 'two' } });
  faults.fail = noLinksBetween;
  const seen: string[][] = [];
  faults.meanwhile = (call, path) => {
    if (call === 'open' && /-copy-.*-[12]$/.test(path)) seen.push(scene.inData());
  };
  await scene.act();
  expect(await scene.outcomes()).toEqual(['moved', 'moved']);
  expect(seen.length).toBeGreaterThanOrEqual(4);
  for (const names of seen) expect(names).toEqual(['r/a.csv', 'r/b.csv']);
});

test('a file in a folder that cannot be written to is not copied', async () => {
  const scene = await setUp();
  faults.fail = (call, path) => (call === 'access' && path === scene.data ? 'EROFS' : noLinksBetween(call, path));
  expect(await scene.act()).toEqual(['blocked']);
  expect([existsSync(scene.done), await scene.outcomes()]).toEqual([
    false,
    [expect.stringContaining('the file system is read-only')],
  ]);
});

test('another file that takes the name while the file is linked beside its target is not moved unseen', async () => {
  const scene = await setUp();
  const { atime, mtime } = statSync(join(scene.data, 'a.csv'));
  utimesSync(join(scene.data, 'a.csv'), atime, mtime);
  await scene.act();
  scene.wait();
  faults.meanwhile = (call, path) => {
    if (call !== 'rename' || !path.endsWith('/a.csv')) return;
    // The name beside the target leads to the file before, which somebody writes to.
    appendFileSync(path, ', and more');
    rmSync(path);
    writeFileSync(path, 'filed');
    utimesSync(path, atime, mtime);
  };
  await scene.act();
  expect([scene.inData(), scene.inDone(), await scene.outcomes()]).toEqual([['a.csv'], [], [undefined]]);
  resetFaults();
  scene.wait();
  await scene.act();
  expect([scene.inDone(), await scene.outcomes()]).toEqual([['a.csv'], ['moved']]);
  expect(readFileSync(join(scene.done, 'a.csv'), 'utf8')).toBe('filed');
});

describe('if another disk is at the target', () => {
  test.each([
    ['before the copy is made', 'open', '-1'],
    ['before the file is renamed', 'rename', '/a.csv'],
  ])('%s, the file stays, and nothing is left there', async (_, at, name) => {
    const other = otherFileSystem();
    if (other === undefined) return;
    const scene = await setUp();
    faults.fail = noLinksBetween;
    faults.meanwhile = (call, path) => {
      if (call !== at || !path.endsWith(name)) return;
      faults.meanwhile = () => undefined;
      renameSync(scene.done, `${scene.done}-before`);
      symlinkSync(other, scene.done);
    };
    expect(await scene.act()).toEqual(['blocked']);
    expect([scene.inData(), readdirSync(other)]).toEqual([['a.csv'], []]);
    expect(await scene.outcomes()).toEqual([expect.stringContaining('another disk is mounted there')]);
  });
});

describe('a copy that people who can read the file could not read', () => {
  test('is not made: the file stays, with the reason', async () => {
    const scene = await setUp({ files: { 'sub/a.csv': 'filed' } });
    faults.fail = (call, path) => (call === 'chmod' ? 'EPERM' : noLinksBetween(call, path));
    const before = process.umask(0o077);
    try {
      expect(await scene.act()).toEqual(['blocked']);
    } finally {
      process.umask(before);
    }
    expect([scene.inData(), scene.inDone()]).toEqual([['sub/a.csv'], []]);
    expect(await scene.outcomes()).toEqual([expect.stringMatching(/people who can read it now could not read it/)]);
  });

  test.skipIf(process.getuid?.() !== 0).each([
    [0o600, false],
    [0o640, true],
    [0o644, true],
  ])('because it cannot be given to its owner is made only if its mode allows it: %o', async (mode, isMoved) => {
    const scene = await setUp();
    const path = join(scene.data, 'a.csv');
    chmodSync(path, mode);
    chownSync(path, 4321, 0);
    faults.fail = (call, at) => (call === 'chown' ? 'EPERM' : noLinksBetween(call, at));
    await scene.act();
    expect(await scene.outcomes()).toEqual([isMoved ? 'moved' : expect.stringContaining('could not read it')]);
    expect(scene.inData()).toEqual(isMoved ? [] : ['a.csv']);
  });
});

test('a file that waits for a day without a reason gets one', async () => {
  const scene = await setUp();
  scene.state.waiting = true;
  for (let hour = 0; hour < 24; hour++) {
    await scene.act();
    expect(await scene.outcomes(), `hour ${hour}`).toEqual([undefined]);
    scene.wait(3_600_000);
  }
  await scene.act();
  expect(await scene.outcomes()).toEqual(['its path is being written to']);
  expect(await scene.journal.outbox.sources.trouble(['balance'])).toMatchObject({ files: 1 });
});

test('a file that has its private name for more than a minute is an alarm, whatever the reason', async () => {
  const scene = await setUp();
  await dieHidden(scene);
  expect(await scene.journal.outbox.sources.trouble([])).toBeUndefined();
  scene.wait(61_000);
  expect(await scene.journal.outbox.sources.trouble([])).toEqual({ files: 1, path: join(scene.data, 'a.csv') });
  await scene.restart();
  expect(await scene.journal.outbox.sources.trouble([])).toBeUndefined();
});

test('a file that cannot get its name again is tried less and less often, however often a scan finds it', async () => {
  const scene = await setUp();
  const name = await dieHidden(scene);
  let attempts = 0;
  faults.fail = (call, path) => {
    if (call !== 'link' || !path.includes('.labfeed-')) return undefined;
    attempts += 1;
    return 'EACCES';
  };
  for (let second = 0; second < 3600; second += 10) {
    expect(await scene.found(name)).toBe(true);
    await scene.restart();
    scene.wait(10_000);
  }
  expect(attempts).toBeGreaterThanOrEqual(8);
  expect(attempts).toBeLessThanOrEqual(20);
  resetFaults();
  scene.wait(600_000);
  await scene.restart();
  expect(scene.inData()).toEqual(['a.csv']);
});

/** Whether intake would read the file. */
async function isUnknown(scene: Awaited<ReturnType<typeof setUp>>, name: string): Promise<boolean> {
  const location = join(scene.data, name);
  const file = { path: location, location, ...stampOf(statSync(location, { bigint: true })) };
  return (await scene.journal.intake.unknown('balance', [file])).length > 0;
}

test.each([
  ['filed', false],
  ['not filed yet', true],
])('a file that the journal does not know gets another name, with %s bytes', async (content, isFiledLater) => {
  const scene = await setUp();
  const name = `.labfeed-${scene.journal.outbox.id}-b.csv`;
  writeFileSync(join(scene.data, name), content);
  writeFileSync(join(scene.data, 'b.csv'), 'the next run');
  expect(await scene.found(name)).toBe(true);
  expect(scene.inData()).toEqual(['a.csv', 'b (2).csv', 'b.csv']);
  expect(await isUnknown(scene, 'b (2).csv')).toBe(isFiledLater);
});

test('bytes that were written to a file before it was hidden are filed, even if it gets another name', async () => {
  const scene = await setUp();
  faults.meanwhile = (call, path) => {
    if (call === 'rename') writeFileSync(path, 'written since');
    if (call !== 'open' || !path.endsWith('-a.csv')) return;
    faults.meanwhile = () => undefined;
    writeFileSync(join(scene.data, 'a.csv'), 'the next run');
  };
  await scene.act();
  expect(scene.inData()).toEqual(['a (2).csv', 'a.csv']);
  expect(scene.read('data/a (2).csv')).toBe('written since');
  expect([await isUnknown(scene, 'a (2).csv'), await isUnknown(scene, 'a.csv')]).toEqual([true, true]);
});

test('a file that was added to a run before is found before anything is copied or renamed', async () => {
  const scene = await setUp({ files: { 'r/a.csv': 'one', 'r/b.csv': 'two' } });
  scene.state.runKind = { folder: '*' } as unknown as typeof scene.state.runKind;
  writeFileSync(join(scene.data, 'r/late.csv'), 'late');
  const changes: string[] = [];
  faults.meanwhile = (call) => void (['rename', 'link'].includes(call) && changes.push(call));
  await scene.act();
  expect([changes, scene.state.proofs]).toEqual([[], 0]);
  rmSync(join(scene.data, 'r/late.csv'));
  scene.wait();
  await scene.act();
  expect(await scene.outcomes()).toEqual(['moved', 'moved']);
});

test('files get their names again before anything is asked of a target that hangs', async () => {
  const scene = await setUp({ files: { 'r/a.csv': 'one', 'r/b.csv': 'two', 'r/c.csv': 'three' } });
  const asked: number[] = [];
  faults.fail = (call, path) => {
    if (!path.startsWith(scene.done) || !(asked.length > 0 || privateNames(join(scene.data, 'r')).length === 3))
      return undefined;
    if (call === 'unlink') asked.push(privateNames(join(scene.data, 'r')).length);
    else asked.push(-1);
    return 'ETIMEDOUT';
  };
  await scene.act();
  expect(scene.inData()).toEqual(['r/a.csv', 'r/b.csv', 'r/c.csv']);
  // Once the first one was not answered, nothing more is removed there.
  expect(asked.filter((hidden) => hidden >= 0)).toEqual([0]);
});

test('a file that is no longer at its target after a crash has left: the next one at its path is another run', async () => {
  const scene = await setUp();
  faults.meanwhile = (call, path) => {
    if (call === 'unlink' && path.endsWith('-a.csv')) faults.meanwhile = () => (faults.stepsLeft = 0);
  };
  await scene.act().catch(() => undefined);
  resetFaults();
  rmSync(join(scene.done, 'a.csv'));
  await scene.restart();
  expect(await scene.outcomes()).toEqual(['gone']);
  expect(await scene.journal.outbox.sources.hasLeft('balance', join(scene.data, 'a.csv'))).toBe(true);
});

test('what is at the path of a file that was about to be hidden is not called gone', async () => {
  const scene = await setUp();
  const name = await dieHidden(scene);
  rmSync(join(scene.data, name));
  writeFileSync(join(scene.data, 'a.csv'), 'other bytes');
  await scene.restart();
  expect([scene.inData(), await scene.outcomes()]).toEqual([['a.csv'], ['changed']]);
});

test('a target that has further names is not taken for the moved file', async () => {
  const scene = await setUp();
  mkdirSync(scene.done);
  writeFileSync(join(scene.folder, 'elsewhere'), 'filed');
  linkSync(join(scene.folder, 'elsewhere'), join(scene.done, 'a.csv'));
  await scene.act();
  expect([scene.inData(), scene.inDone()]).toEqual([[], ['a (2).csv', 'a.csv']]);
});

test('what is left of a move that was interrupted is removed, whatever the configuration says now', async () => {
  for (const source of ['keep', 'delete'] as const) {
    const scene = await setUp();
    // Linked beside its target, and not yet renamed.
    faults.meanwhile = (call, path) => {
      if (call === 'link' && path.endsWith('/a.csv')) faults.stepsLeft = 0;
    };
    await scene.act().catch(() => undefined);
    resetFaults();
    expect([scene.inData(), scene.inDone()]).toEqual([['a.csv'], [expect.stringContaining('.labfeed-copy-')]]);
    scene.state.source = source;
    await scene.act();
    expect([scene.inDone(), await scene.outcomes()]).toEqual([[], [source === 'keep' ? 'kept' : 'deleted']]);
  }
});
