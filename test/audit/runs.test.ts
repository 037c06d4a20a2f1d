import { expect, test } from 'vitest';
import { examineFiled, type FiledRunDeps } from '../../src/audit/runs.js';
import { cellTexts } from '../../src/deliver/revise.js';
import { NotebookError } from '../../src/errors.js';
import type { FiledRun, Filing } from '../../src/journal/reader.js';
import { markComment } from '../../src/markers.js';
import { isFiled, type ReadableComment } from '../../src/recover/reconcile.js';

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
  draft: { title: 'a', date: '2026-01-02', body: BODY },
  comments: [
    { n: 1, text: 'one', comment: 71 },
    { n: 2, text: 'two', comment: 72 },
  ],
};
const PAGE = { title: 'a', date: '2026-01-02', body: BODY };
const [ONE, TWO] = FILING.comments.map(
  ({ n, text, comment }): ReadableComment => ({
    id: comment ?? 0,
    comment: markComment(text, REFERENCE, n),
  }),
) as [ReadableComment, ReadableComment];

const PROVED = { findings: [], isProved: true, missing: [] };

/** A notebook that holds the run as it was filed, but for what is said otherwise. */
const examine = (changes: Partial<FiledRunDeps> = {}, run: Partial<FiledRun> = {}) =>
  examineFiled(
    { ...RUN, ...run },
    {
      server: RUN.server ?? '',
      isDeleted: () => false,
      look: async () => PAGE,
      prove: async () => undefined,
      listComments: async () => [ONE, TWO],
      readComment: async () => undefined,
      filingOf: async () => FILING,
      isFiled,
      textOf: cellTexts,
      ...changes,
    },
  );

const kinds = ({ findings }: { findings: readonly { kind: string }[] }) => findings.map(({ kind }) => kind);

test('a run whose experiment and comments say what was sent is proved, however the server writes it', async () => {
  expect(await examine()).toEqual(PROVED);
  const look = async () => ({ ...PAGE, body: BODY.replaceAll('<p>', '<div> ').replaceAll('</p>', '</div>') });
  const listComments = async () => [
    { id: 71, text: `<p>one<br>\n<br>\nlabfeed ${REFERENCE}.1\n</p>` },
    { ...TWO, comment: String(TWO['comment']).replaceAll('\n', '\r\n') },
  ];
  expect(await examine({ look, listComments })).toEqual(PROVED);
});

test('comments that the experiment shows with it need no request of their own; missing ones do', async () => {
  let lists = 0;
  const listComments = async () => {
    lists += 1;
    return [ONE, TWO];
  };
  expect(await examine({ listComments, look: async () => ({ ...PAGE, comments: [ONE, TWO] }) })).toEqual(
    PROVED,
  );
  expect(lists).toBe(0);
  expect(await examine({ listComments, look: async () => ({ ...PAGE, comments: [ONE] }) })).toEqual(PROVED);
  expect(lists).toBe(1);
});

test('a comment is gone only if it is neither listed nor there when it is asked for by its id', async () => {
  const listComments = async () => [ONE];
  const cutShort = await examine({ listComments, readComment: async () => TWO });
  expect(cutShort).toEqual(PROVED);
  const gone = await examine({ listComments });
  expect(gone).toMatchObject({ isProved: false, missing: [{ n: 2, comment: 72 }] });
  expect(kinds(gone)).toEqual(['comment missing']);
});

test('a comment that is there under another id is not gone, and one that is there twice is told', async () => {
  const moved = { ...TWO, id: 99 };
  expect(await examine({ listComments: async () => [ONE, moved] })).toEqual(PROVED);
  const twice = await examine({ listComments: async () => [ONE, TWO, moved] });
  expect(twice).toMatchObject({ isProved: true, missing: [] });
  expect(kinds(twice)).toEqual(['comment twice']);
});

test('what somebody changed is told, proves nothing, and is nothing that a repair would post again', async () => {
  const mine = await examine({ look: async () => ({ ...PAGE, body: BODY.replace('1.5', '1.6') }) });
  expect(mine).toMatchObject({ isProved: false, missing: [] });
  expect(kinds(mine)).toEqual(['edited']);
  for (const comment of ['mine', markComment('mine', REFERENCE, 2)]) {
    const edited = await examine({ listComments: async () => [ONE, { id: 72, comment }] });
    expect(edited).toMatchObject({ isProved: false, missing: [] });
    expect(kinds(edited)).toEqual(['edited']);
  }
});

test('a number that somebody moved to another cell is a change of the body', async () => {
  const table = (...cells: string[]) =>
    `<table><tr>${cells.map((cell) => `<td>${cell}</td>`).join('')}</tr></table>${BODY}`;
  const filingOf = async () => ({
    ...FILING,
    draft: { title: 'a', date: '2026-01-02', body: table('1', '23') },
  });
  const as = (body: string) => examine({ filingOf, look: async () => ({ ...PAGE, body }) });
  expect(await as(table('1', '23').replaceAll('><', '>\n<'))).toEqual(PROVED);
  expect(await as(table('12', '3'))).toMatchObject({ isProved: false, findings: [{ kind: 'edited' }] });
});

test('a changed title or date is told; the content is proved all the same', async () => {
  const renamed = await examine({ look: async () => ({ ...PAGE, title: 'mine', date: '2020-02-02' }) });
  expect(renamed).toMatchObject({ isProved: true, missing: [] });
  expect(kinds(renamed)).toEqual(['edited', 'edited']);
});

test('an experiment that the notebook only marks as deleted proves nothing', async () => {
  const deleted = await examine({ isDeleted: () => true });
  expect(deleted).toMatchObject({ isProved: false, missing: [] });
  expect(kinds(deleted)).toEqual(['deleted']);
});

test('404 from something that is not the notebook does not make an experiment vanish', async () => {
  const lost = new NotebookError('server', 'no notebook there');
  const look = async () => 'missing' as const;
  await expect(examine({ look, prove: () => Promise.reject(lost) })).rejects.toBe(lost);
  expect(kinds(await examine({ look }))).toEqual(['vanished']);
});

test('what this key may not read, or lies at another notebook, is neither proved nor called gone', async () => {
  const hidden = await examine({ look: async () => 'private' });
  expect([kinds(hidden), hidden.isProved]).toEqual([['forbidden'], false]);
  const elsewhere = await examine({}, { server: 'https://old.example.org' });
  expect([kinds(elsewhere), elsewhere.isProved]).toEqual([['elsewhere'], false]);
});

test('an experiment that bears the line of other bytes is not ours', async () => {
  const body = BODY.replace(RUN.sha256, 'cd'.repeat(32));
  const other = await examine({ look: async () => ({ ...PAGE, body }) });
  expect([kinds(other), other.isProved]).toEqual([['not ours'], false]);
});

test('of a run whose draft the journal does not have, the line and the marks are the proof', async () => {
  const filingOf = async () => ({
    draft: undefined,
    comments: FILING.comments.map((one) => ({ ...one, text: '' })),
  });
  expect(await examine({ filingOf, look: async () => ({ ...PAGE, title: 'another' }) })).toEqual(PROVED);
  const unmarked = await examine({ filingOf, listComments: async () => [ONE, { id: 72, comment: 'two' }] });
  expect([kinds(unmarked), unmarked.isProved]).toEqual([['edited'], false]);
});
