import { expect, test } from 'vitest';
import { compareRuns } from '../../src/audit/command.js';
import { type AuditDeps, emptyResult } from '../../src/audit/report.js';
import type { CommentRecord } from '../../src/deliver/context.js';
import { storedDifferently } from '../../src/deliver/revise.js';
import { NotebookError } from '../../src/errors.js';
import { type VerifyDeps, verifyRun } from '../../src/evidence.js';
import type { FiledRun, Filing } from '../../src/journal/reader.js';
import { markComment } from '../../src/markers.js';

const REFERENCE = '0123456789abcdef';
const RUN: FiledRun = {
  id: 7,
  instrument: 'balance',
  sha256: 'ab'.repeat(32),
  reference: REFERENCE,
  path: '/data/a.csv',
  server: 'https://eln.example.org',
  experiment: 12,
};
const BODY = `<p>1.5 &lt; 2</p><p>labfeed balance a.csv sha256:${RUN.sha256}</p>`;
const FILING: Filing = {
  draft: { title: 'a', date: '2026-01-02', body: BODY, tags: [] },
  omits: [],
  stored: {},
  comments: [
    { n: 1, text: 'one', comment: 71 },
    { n: 2, text: 'two', comment: 72 },
  ],
  attachments: [],
  versions: [],
};
const PAGE = { title: 'a', date: '2026-01-02', body: BODY };
const [ONE, TWO] = FILING.comments.map(
  ({ n, text, comment }): CommentRecord => ({
    id: comment ?? 0,
    comment: markComment(text, REFERENCE, n),
  }),
) as [CommentRecord, CommentRecord];

const VERIFIED = { findings: [], isVerified: true, isComplete: true, missing: [] };

type Changes = Partial<VerifyDeps['notebook'] & VerifyDeps['journal'] & Pick<VerifyDeps, 'dialect'>>;

/** Verifies the run in a notebook that has it as it was filed, except for these changes. */
const verify = ({ filingOf = async () => FILING, dialect = 'v2', ...requests }: Changes = {}, run = RUN) =>
  verifyRun(run, {
    server: String(RUN.server),
    dialect,
    journal: { filingOf },
    notebook: {
      readExperiment: async () => PAGE,
      listComments: async () => [ONE, TWO],
      readComment: async () => undefined,
      newestId: async () => undefined,
      listUploads: async () => [],
      checkPresence: async () => 'v2' as const,
      ...requests,
    },
  });

const kinds = ({ findings }: { findings: readonly { kind: string }[] }) => findings.map(({ kind }) => kind);

test('a run is verified if its experiment and comments contain what was sent, whatever the markup', async () => {
  expect(await verify()).toEqual(VERIFIED);
  const readExperiment = async () => ({
    ...PAGE,
    body: BODY.replaceAll('<p>', '<div> ').replaceAll('</p>', '</div>'),
  });
  const listComments = async () => [
    { id: 71, text: `<p>one<br>\n<br>\nlabfeed ${REFERENCE}.1\n</p>` },
    { ...TWO, comment: String(TWO['comment']).replaceAll('\n', '\r\n') },
  ];
  expect(await verify({ readExperiment, listComments })).toEqual(VERIFIED);
});

test('comments included in the experiment are not requested separately, unless one is missing', async () => {
  let lists = 0;
  const listComments = async () => {
    lists += 1;
    return [ONE, TWO];
  };
  expect(await verify({ listComments, readExperiment: async () => ({ ...PAGE, comments: [ONE, TWO] }) })).toEqual(
    VERIFIED,
  );
  expect(lists).toBe(0);
  expect(await verify({ listComments, readExperiment: async () => ({ ...PAGE, comments: [ONE] }) })).toEqual(VERIFIED);
  expect(lists).toBe(1);
});

test('a comment is missing only if it is neither listed nor found by its id', async () => {
  const listComments = async () => [ONE];
  const cutShort = await verify({ listComments, readComment: async () => TWO });
  expect(cutShort).toEqual(VERIFIED);
  const gone = await verify({ listComments });
  expect(gone).toMatchObject({ isVerified: false, missing: [{ n: 2, comment: 72 }] });
  expect(kinds(gone)).toEqual(['comment missing']);
});

test('a comment with a different id is not missing, and a duplicate comment is reported', async () => {
  const moved = { ...TWO, id: 99 };
  expect(await verify({ listComments: async () => [ONE, moved] })).toEqual(VERIFIED);
  const twice = await verify({ listComments: async () => [ONE, TWO, moved] });
  expect(twice).toMatchObject({ isVerified: true, missing: [] });
  expect(kinds(twice)).toEqual(['comment twice']);
});

test('a changed body or comment is reported, makes the run unverified and is not repaired', async () => {
  const mine = await verify({ readExperiment: async () => ({ ...PAGE, body: BODY.replace('1.5', '1.6') }) });
  expect(mine).toMatchObject({ isVerified: false, missing: [] });
  expect(kinds(mine)).toEqual(['edited']);
  for (const comment of ['mine', markComment('mine', REFERENCE, 2)]) {
    const edited = await verify({ listComments: async () => [ONE, { id: 72, comment }] });
    expect(edited).toMatchObject({ isVerified: false, missing: [] });
    expect(kinds(edited)).toEqual(['edited']);
  }
});

test('what the server changed when it stored the draft is no edit; the file is safe only if no text is lost', async () => {
  const as = async (sent: string, shown: string, now = shown) => {
    const draft = { title: 'a\u2028b', date: '2026-01-02', body: sent + BODY, tags: [] };
    const record = { title: 'a b…', date: '2026-01-02', body: shown + BODY };
    const filingOf = async () => ({ ...FILING, draft, stored: storedDifferently(record, draft) ?? {} });
    return verify({ filingOf, readExperiment: async () => ({ ...record, body: now + BODY }) });
  };
  expect(await as('<p>5 &micro;g, 5 < 6</p>', '<p>5 µg, 5 &lt; 6</p>')).toEqual(VERIFIED);
  expect(await as('<table><tr><td>1<td>2</table>', '<table><tr><td>1</td><td>2</td></tr></table>')).toEqual(VERIFIED);
  const cut = await as('<p>1</p><p>2</p>', '<p>1</p>');
  expect(kinds(cut)).toEqual(['altered']);
  expect(cut.isVerified).toBe(false);
  expect(kinds(await as('<p>1</p><p>2</p>', '<p>1</p>', '<p>3</p>'))).toEqual(['edited']);
});

test('a number moved to another cell is a change of the body', async () => {
  const table = (...cells: string[]) =>
    `<table><tr>${cells.map((cell) => `<td>${cell}</td>`).join('')}</tr></table>${BODY}`;
  const filingOf = async () => ({
    ...FILING,
    draft: { title: 'a', date: '2026-01-02', body: table('1', '23'), tags: [] },
  });
  const as = (body: string) => verify({ filingOf, readExperiment: async () => ({ ...PAGE, body }) });
  expect(await as(table('1', '23').replaceAll('><', '>\n<'))).toEqual(VERIFIED);
  expect(await as(table('12', '3'))).toMatchObject({ isVerified: false, findings: [{ kind: 'edited' }] });
});

test('a changed title or date is reported, and the run is still verified', async () => {
  const renamed = await verify({
    readExperiment: async () => ({ ...PAGE, title: 'mine', date: '2020-02-02' }),
  });
  expect(renamed).toMatchObject({ isVerified: true, missing: [] });
  expect(kinds(renamed)).toEqual(['edited', 'edited']);
});

test('an experiment that eLabFTW marks as deleted makes the run unverified', async () => {
  const readExperiment = async () => ({ ...PAGE, state: 3 });
  expect(await verify({ readExperiment })).toEqual(VERIFIED);
  const deleted = await verify({ readExperiment, dialect: 'elabftw' });
  expect(deleted).toMatchObject({ isVerified: false, missing: [] });
  expect(kinds(deleted)).toEqual(['deleted']);
});

test('a 404 counts only if the notebook itself answers', async () => {
  const lost = new NotebookError('server', 'no notebook there');
  const readExperiment = async () => 'missing' as const;
  await expect(verify({ readExperiment, checkPresence: () => Promise.reject(lost) })).rejects.toBe(lost);
  expect(kinds(await verify({ readExperiment }))).toEqual(['vanished']);
});

test('an experiment that is private or in another notebook is neither verified nor missing', async () => {
  const hidden = await verify({ readExperiment: async () => 'private' });
  expect([kinds(hidden), hidden.isVerified]).toEqual([['forbidden'], false]);
  const elsewhere = await verify({}, { ...RUN, server: 'https://old.example.org' });
  expect([kinds(elsewhere), elsewhere.isVerified]).toEqual([['elsewhere'], false]);
});

test('an experiment that shows an earlier version of its file is outdated', async () => {
  const body = BODY.replace(RUN.sha256, 'e'.repeat(64));
  const filingOf = async () => ({ ...FILING, versions: ['e'.repeat(64), RUN.sha256] });
  const found = await verify({ filingOf, readExperiment: async () => ({ ...PAGE, body }) });
  expect([kinds(found), found.isVerified, found.findings[0]?.text]).toEqual([
    ['outdated'],
    false,
    expect.stringContaining('eeee'),
  ]);
});

test('an experiment with the origin line of other content is not ours', async () => {
  const body = BODY.replace(RUN.sha256, 'cd'.repeat(32));
  const other = await verify({ readExperiment: async () => ({ ...PAGE, body }) });
  expect([kinds(other), other.isVerified]).toEqual([['not ours'], false]);
});

test('a run without a draft in the journal is verified by its origin line and marker lines, but not complete', async () => {
  const filingOf = async () => ({
    draft: undefined,
    omits: undefined,
    stored: {},
    attachments: [],
    versions: [],
    comments: FILING.comments.map((one) => ({ ...one, text: '' })),
  });
  const marked = await verify({ filingOf, readExperiment: async () => ({ ...PAGE, title: 'another' }) });
  expect([kinds(marked), marked.isVerified, marked.isComplete]).toEqual([['incomplete'], true, false]);
  const unmarked = await verify({ filingOf, listComments: async () => [ONE, { id: 72, comment: 'two' }] });
  expect([kinds(unmarked), unmarked.isVerified]).toEqual([['edited'], false]);
});

test('a run is complete only if its draft is known to have everything of the file', async () => {
  const withOmits = (omits: string[] | undefined) => verify({ filingOf: async () => ({ ...FILING, omits }) });
  expect(await withOmits([])).toEqual(VERIFIED);
  const partly = await withOmits(['not read: lines 4–5']);
  expect(partly).toMatchObject({ isVerified: true, isComplete: false, findings: [{ text: 'not read: lines 4–5' }] });
  const unknown = await withOmits(undefined);
  expect([kinds(unknown), unknown.isComplete]).toEqual([['incomplete'], false]);
});

/** `filed` and `unfiled`: what the journal lists when it is asked. */
const compare = async (filed: () => FiledRun[], unfiled: () => number[]) => {
  const result = emptyResult(String(RUN.server));
  const deps = {
    config: { notebook: { url: RUN.server, concurrency: 1, dialect: 'v2' } },
    instrument: undefined,
    signal: new AbortController().signal,
    progress: { show: () => {}, print: () => {}, end: () => {} },
    notebook: { listKeys: async () => [], readExperiment: async () => PAGE, listComments: async () => [ONE, TWO] },
    journal: {
      server: async () => ({ dialect: 'v2', halted: undefined, spares: [] }),
      countFiled: async () => 1,
      filingOf: async () => FILING,
      async *filed() {
        yield* filed();
      },
      async *unfiled() {
        for (const id of unfiled()) yield { ...RUN, id, state: 'sending', reason: undefined, attempts: 0 };
      },
    },
  };
  await compareRuns(deps as unknown as AuditDeps, result);
  return result;
};

test('a run that changes while the audit runs is never both on its way and verified', async () => {
  let isDone = false;
  const whileSent = await compare(
    () => (isDone ? [RUN] : []),
    () => {
      const open = isDone ? [] : [RUN.id];
      isDone = true;
      return open;
    },
  );
  expect([[...whileSent.verified], kinds(whileSent)]).toEqual([[], ['on its way']]);

  isDone = false;
  const filedMeanwhile = await compare(
    () => {
      isDone = true;
      return [RUN];
    },
    () => (isDone ? [] : [RUN.id]),
  );
  expect([[...filedMeanwhile.verified], kinds(filedMeanwhile)]).toEqual([[RUN.id], []]);

  const reopened = await compare(
    () => [RUN],
    () => [RUN.id],
  );
  expect([[...reopened.verified], kinds(reopened)]).toEqual([[], ['on its way']]);
});

const FILE = {
  n: 1,
  kind: 'raw' as const,
  name: 'a.csv',
  sha256: RUN.sha256,
  upload: 81,
  isRefused: false,
  reason: undefined,
};
const UPLOAD = { id: 81, hash: RUN.sha256, state: 1 };

const verifyAttached = (changes: Partial<typeof FILE>, uploads: readonly object[], omits = ['59,000 rows']) =>
  verify({
    dialect: 'elabftw',
    filingOf: async () => ({ ...FILING, omits, attachments: [{ ...FILE, ...changes }] as Filing['attachments'] }),
    listUploads: async () => uploads as never,
  });

test('a run whose raw file the notebook has is attached, whatever its readings, comments and body', async () => {
  expect(await verifyAttached({}, [UPLOAD])).toMatchObject({ findings: [], isAttached: true });
  const shown = await verify({
    dialect: 'elabftw',
    filingOf: async () => ({ ...FILING, omits: ['rows'], attachments: [FILE] }),
    readExperiment: async () => ({ ...PAGE, body: `${BODY}<p>mine</p>`, uploads: [UPLOAD] }),
    listUploads: async () => {
      throw new Error('the experiment shows its files');
    },
  });
  expect([kinds(shown), shown.isVerified, shown.isAttached]).toEqual([['edited'], false, true]);
});

test.each([
  ['deleted', [{ ...UPLOAD, state: 3 }]],
  ['replaced by other bytes', [{ ...UPLOAD, hash: 'cd'.repeat(32) }]],
  ['gone', []],
])('a raw file that is %s is reported, can be repaired, and proves nothing', async (_, uploads) => {
  const verified = await verifyAttached({}, uploads);
  expect(kinds(verified)).toEqual(['incomplete', 'file missing']);
  expect(verified).toMatchObject({ isComplete: false, uploads: [{ n: 1, upload: 81 }] });
  expect(verified.isAttached).toBeUndefined();
});

test('a raw file that was refused, or is not sent yet, proves nothing', async () => {
  const refused = await verifyAttached({ upload: undefined, isRefused: true, reason: 'too large' } as never, []);
  expect([kinds(refused), refused.isAttached]).toEqual([['incomplete', 'not attached'], undefined]);
  expect(refused.uploads).toEqual([{ n: 1, upload: null }]);
  const unwritten = { upload: undefined, isRefused: true, reason: 'no room for the archive', sha256: '' } as never;
  expect((await verifyAttached(unwritten, [])).uploads).toBeUndefined();
  const waiting = await verifyAttached({ upload: undefined } as never, []);
  expect([kinds(waiting), waiting.uploads]).toEqual([['incomplete', 'on its way'], undefined]);
});

test('after a lost journal, a file is recognised by the fingerprint of its run', async () => {
  const filingOf = async () => ({ ...FILING, draft: undefined, omits: undefined });
  const found = await verify({
    dialect: 'elabftw',
    filingOf,
    readExperiment: async () => ({ ...PAGE, uploads: [UPLOAD] }),
  });
  expect(found.isAttached).toBe(true);
});
