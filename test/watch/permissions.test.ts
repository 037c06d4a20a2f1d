import { chmodSync, mkdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { explainPermission, type Reader } from '../../src/watch/guard.js';
import { tempFolder } from '../support/temp-folder.js';

function fileWith(mode: number): { readonly path: string; readonly uid: number; readonly gid: number } {
  const path = join(tempFolder(), "it's.csv");
  writeFileSync(path, 'x');
  chmodSync(path, mode);
  const { uid, gid } = statSync(path);
  return { path, uid, gid };
}

const reader = (uid: number, groups: readonly number[] = []): Reader => ({ name: 'labfeed', uid, groups });

test('the owner is advised to change the mode for the owner', () => {
  const { path, uid, gid } = fileWith(0o044);
  expect(explainPermission(path, false, reader(uid, [gid]))).toEqual({
    reason: expect.stringMatching(/^the user labfeed may not read it \(owner \S+, group \S+, mode 0044\)$/),
    hint: expect.stringMatching(/^run: chmod u\+r '.*it'\\''s\.csv'$/),
  });
});

test('a member of the group is advised to change the mode for the group', () => {
  const { path, uid, gid } = fileWith(0o604);
  expect(explainPermission(path, false, reader(uid + 1, [gid])).hint).toMatch(/^run: chmod g\+r /);
});

test('others are advised to join the group only if the group may read', () => {
  const open = fileWith(0o640);
  expect(explainPermission(open.path, false, reader(open.uid + 1)).hint).toMatch(
    /^add labfeed to the group (\S+) \(usermod -aG \1 labfeed\) and restart labfeed, or run: chmod o\+r /,
  );
  const closed = fileWith(0o600);
  expect(explainPermission(closed.path, false, reader(closed.uid + 1)).hint).toMatch(/^run: chmod o\+r /);
});

test('a folder needs the permission to enter it, too', () => {
  const path = join(tempFolder(), 'closed');
  mkdirSync(path);
  chmodSync(path, 0o740);
  const { uid, gid } = statSync(path);
  expect(explainPermission(path, true, reader(uid + 1)).hint).toMatch(/^run: chmod o\+rx /);
  expect(explainPermission(path, true, reader(uid + 1, [gid])).hint).toMatch(/^run: chmod g\+rx /);
});

test('a file that cannot even be seen is explained by its folder', () => {
  expect(explainPermission('/no-such-folder/a.csv', false, reader(1))).toEqual({
    reason: 'the user labfeed may not enter its folder /no-such-folder',
    hint: 'let labfeed enter it, for example with: chmod o+x /no-such-folder',
  });
});
