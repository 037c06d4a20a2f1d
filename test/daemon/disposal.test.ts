import {
  chmodSync,
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
import { LabfeedError, NotebookError } from '../../src/errors.js';
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

test('a name that is taken at the target just before the move is not overwritten', async () => {
  const scene = await setUp();
  faults.meanwhile = (call, path) => {
    if (call === 'link' && path.includes('.labfeed-')) {
      faults.meanwhile = () => undefined;
      writeFileSync(join(scene.done, 'a.csv'), 'theirs');
    }
  };
  await scene.act();
  expect(scene.inDone()).toEqual(['a (2).csv', 'a.csv']);
  expect(readFileSync(join(scene.done, 'a.csv'), 'utf8')).toBe('theirs');
  expect(await scene.movedTo()).toEqual([join(scene.done, 'a (2).csv')]);
});

test('a file whose name is not UTF-8 is moved under its own bytes', async () => {
  const scene = await setUp({ files: { 'caf\u00e9.csv': 'filed' } });
  await scene.act();
  expect(readdirSync(scene.done, 'latin1')).toEqual(['caf\u00e9.csv']);
  expect([scene.inData(), await scene.movedTo()]).toEqual([[], [join(scene.done, 'caf\\xE9.csv')]]);
});

test('a file that was written to stays, with its new content', async () => {
  const scene = await setUp();
  writeFileSync(join(scene.data, 'a.csv'), 'filed, and more');
  await scene.act();
  expect(scene.read('data/a.csv')).toBe('filed, and more');
  expect([scene.inData(), await scene.outcomes()]).toEqual([['a.csv'], ['changed']]);
});

test('a file that is written to while it is hashed or copied is not deleted', async () => {
  for (const source of ['delete', { move: join(otherFileSystem() ?? '/', 'done') }] as const) {
    const scene = await setUp({ source });
    // Between hashing and the decision, through a handle that a program still has.
    let opened = 0;
    faults.meanwhile = (call, path) => {
      if (call === 'open' && path.includes('.labfeed-') && ++opened === 2) writeFileSync(path, 'more bytes');
      if (call === 'lstat' && opened === 1 && source === 'delete' && path.includes('.labfeed-')) {
        opened = 2;
        writeFileSync(path, 'more bytes');
      }
    };
    await scene.act();
    expect(scene.read('data/a.csv')).toBe('more bytes');
    faults.meanwhile = () => undefined;
    scene.wait();
    await scene.act();
    expect(await scene.outcomes()).toEqual(['changed']);
  }
});

test('if one of several files was written to, none is moved', async () => {
  const scene = await setUp({ files: { 'r/a.csv': 'one', 'r/b.csv': 'two' } });
  writeFileSync(join(scene.data, 'r/b.csv'), 'other');
  await scene.act();
  expect([scene.inData(), scene.inDone()]).toEqual([['r/a.csv', 'r/b.csv'], []]);
  expect(await scene.outcomes()).toEqual(['changed', 'changed']);
});

test('another file with the same content has to be quiet for a while before it is moved', async () => {
  const scene = await setUp();
  writeFileSync(join(scene.data, 'b'), 'filed');
  renameSync(join(scene.data, 'b'), join(scene.data, 'a.csv'));
  await scene.act();
  expect([scene.inData(), await scene.outcomes()]).toEqual([['a.csv'], [undefined]]);
  expect(await scene.act()).toEqual([]);
  scene.wait();
  await scene.act();
  expect([scene.inData(), await scene.outcomes()]).toEqual([[], ['moved']]);
});

test('a file that seems to be another one each time stays, and people get to know it', async () => {
  const scene = await setUp();
  for (let n = 1; n <= 6; n++) {
    utimesSync(join(scene.data, 'a.csv'), n, n);
    await scene.act();
    expect(await scene.outcomes()).toEqual([n < 6 ? undefined : expect.stringContaining('is another one each time')]);
    scene.wait();
  }
});

test('a run that is being written to again is left alone', async () => {
  const scene = await setUp();
  scene.state.waiting = true;
  await scene.act();
  expect([scene.inData(), await scene.outcomes()]).toEqual([['a.csv'], [undefined]]);
});

describe('a file that is not there', () => {
  test('is gone only if its folder is', async () => {
    const scene = await setUp();
    rmSync(join(scene.data, 'a.csv'));
    scene.state.folder = 'missing';
    await scene.act();
    expect(await scene.outcomes()).toEqual([undefined]);
    scene.state.folder = 'present';
    scene.wait();
    await scene.act();
    expect([await scene.outcomes(), scene.state.rescans]).toEqual([['gone'], 2]);
  });

  test('may be hidden on a share that is away: it is put back when that returns', async () => {
    const scene = await setUp({ source: 'delete' });
    const [file] = [join(scene.data, 'a.csv')];
    // The process is killed after the decision, before the deletion.
    faults.fail = (call, path) => (call === 'unlink' && path.includes('.labfeed-') ? 'EIO' : undefined);
    faults.meanwhile = (call) => {
      if (call === 'link') faults.stepsLeft = 0;
    };
    await scene.act().catch(() => undefined);
    expect(privateNames(scene.data)).toHaveLength(1);
    resetFaults();
    scene.state.folder = 'missing';
    renameSync(scene.data, `${scene.data}-unmounted`);
    mkdirSync(scene.data);
    scene.wait();
    await scene.act();
    expect(await scene.outcomes()).toEqual([undefined]);
    rmSync(scene.data, { recursive: true });
    renameSync(`${scene.data}-unmounted`, scene.data);
    scene.state.folder = 'present';
    scene.wait();
    await scene.act();
    expect([existsSync(file), await scene.outcomes()]).toEqual([false, ['deleted']]);
    expect(privateNames(scene.data)).toEqual([]);
  });
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
    ['ENAMETOOLONG', 'link', 'its name is too long there', 'acted'],
  ])(
    'with %s in %s, the file has its name, people know why, and the next attempt comes later each time',
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
        let waitedMs = 0;
        for (
          ;
          (await scene.journal.outbox.sources.claim(scene.clock.now(), 1, ['balance'])).length === 0;
          waitedMs += 1000
        )
          scene.clock.advance(1000);
        await scene.journal.outbox.sources.release(scene.id);
        waits.push(waitedMs);
      }
      expect(waits[0]).toBeGreaterThanOrEqual(5000);
      expect(waits[2]).toBeGreaterThan(waits[0] ?? 0);
      expect(await scene.journal.outbox.sources.trouble()).toMatchObject({ files: 1, path: join(scene.data, 'a.csv') });
      resetFaults();
      scene.wait();
      await scene.act();
      expect(await scene.outcomes()).toEqual(['moved']);
      expect(await scene.journal.outbox.sources.trouble()).toBeUndefined();
      const { history = [] } = (await scene.reader.job(scene.id)) ?? {};
      expect(history.filter(({ event }) => event === 'sourcePostponed')).toHaveLength(1);
    },
  );

  test('between two mounts of one file system, the file is copied', async () => {
    const scene = await setUp();
    faults.fail = (call, path) => (call === 'link' && !path.endsWith('.copy') ? 'EXDEV' : undefined);
    await scene.act();
    expect([scene.inData(), scene.inDone(), await scene.outcomes()]).toEqual([[], ['a.csv'], ['moved']]);
  });

  test('after some files of a run are moved, the others have their names, and follow later', async () => {
    const scene = await setUp({ files: { 'r/a.csv': 'one', 'r/b.csv': 'two' } });
    faults.fail = (call, path) =>
      call === 'link' && path.endsWith('-2') && scene.inDone().length === 1 ? 'EIO' : undefined;
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
    faults.fail = (call) => (call === 'link' ? 'EIO' : undefined);
    await scene.act();
    expect(privateNames(scene.data)).toHaveLength(1);
    expect(await scene.outcomes()).toEqual([expect.stringContaining('does not respond')]);
    resetFaults();
    scene.wait();
    await scene.restart();
    expect(scene.inData()).toEqual(['a.csv']);
  });

  test('the notebook has not everything, the file stays, with the reason', async () => {
    const scene = await setUp();
    scene.state.proof = new LabfeedError('not everything was read back');
    await scene.act();
    expect([scene.inData(), await scene.outcomes()]).toEqual([['a.csv'], ['not everything was read back']]);
  });

  test('because the notebook is down, the file stays, and there is no second alarm', async () => {
    const scene = await setUp();
    scene.state.proof = new NotebookError('server', '503');
    expect(await scene.act()).toEqual(['blocked']);
    expect([scene.inData(), await scene.outcomes()]).toEqual([['a.csv'], [undefined]]);
  });
});

describe('a copy from an interrupted move', () => {
  test.each([
    ['of some bytes', 'fil'],
    ['of all bytes', 'filed'],
    ['of other bytes', 'FILED'],
  ])('%s is removed or used', async (_, bytes) => {
    const other = otherFileSystem();
    if (other === undefined) return;
    const scene = await setUp({ target: join(other, 'done') });
    mkdirSync(scene.done);
    writeFileSync(join(scene.done, `.labfeed-${scene.journal.outbox.id}-${scene.id}-1.copy`), bytes);
    await scene.act();
    expect([scene.inDone(), await scene.outcomes()]).toEqual([['a.csv'], ['moved']]);
    expect(readFileSync(join(scene.done, 'a.csv'), 'utf8')).toBe('filed');
  });
});

test('private files of another journal are not touched', async () => {
  const scene = await setUp();
  writeFileSync(join(scene.data, `.labfeed-00000000-${scene.id}-1`), 'theirs');
  await scene.act();
  await scene.restart();
  expect(scene.inData()).toEqual([`.labfeed-00000000-${scene.id}-1`]);
  expect(await scene.outcomes()).toEqual(['moved']);
});

test('a stop while a file is hashed or copied undoes that, and nothing counts as failed', async () => {
  const other = otherFileSystem();
  for (const copied of other === undefined ? [false] : [false, true]) {
    const scene = await setUp(copied ? { target: join(other ?? '', 'done') } : {});
    const stop = new AbortController();
    faults.meanwhile = (call, path) => {
      if (call === 'open' && path.endsWith(copied ? '.copy' : '-1')) stop.abort();
    };
    await scene.act(stop.signal);
    expect([scene.inData(), scene.inDone()]).toEqual([['a.csv'], []]);
    expect(await scene.outcomes()).toEqual([undefined]);
    faults.meanwhile = () => undefined;
    await scene.act();
    expect(await scene.outcomes()).toEqual(['moved']);
  }
});

test('a stop after the decision does not interrupt a run of several files', async () => {
  const scene = await setUp({ files: { 'r/a.csv': 'one', 'r/b.csv': 'two' } });
  const stop = new AbortController();
  faults.meanwhile = (call) => {
    if (call === 'link') stop.abort();
  };
  await scene.act(stop.signal);
  expect([scene.inData(), await scene.outcomes()]).toEqual([[], ['moved', 'moved']]);
});

test('folders are synced after the last change, before the outcome is recorded', async () => {
  const scene = await setUp();
  const calls: string[] = [];
  faults.meanwhile = (call, path) => {
    if (path === scene.data || path === scene.done || path.endsWith('-1')) calls.push(`${call} ${path.slice(-4)}`);
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
  const linked = changes.findIndex((call) => call.startsWith('link'));
  const unlinked = changes.findIndex((call) => call.startsWith('unlink'));
  // The new name is on disk before the old one goes, and that before it is recorded.
  expect(changes.slice(linked, unlinked)).toContain('open done');
  expect(changes.slice(unlinked)).toEqual(expect.arrayContaining(['open data']));
  expect(changes.at(-1)).toBe('record');
});

test('the empty folders of a run are removed, and others are not', async () => {
  const scene = await setUp({ files: { 'r/a.csv': 'one', 'r/b.csv': 'two' } });
  scene.state.runKind = { folder: '*' };
  writeFileSync(join(scene.data, 'other'), '');
  await scene.act();
  expect(readdirSync(scene.data)).toEqual(['other']);
});
