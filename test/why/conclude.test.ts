import { expect, test } from 'vitest';
import type { Evidence, InstrumentEvidence, KnownRun } from '../../src/why/evidence.js';
import { conclude } from '../../src/why/why.js';

const PATH = '/srv/nanodrop/run-17.tsv';
const NOW = Date.parse('2026-10-05T12:00:00Z');

const instrument = (some: Partial<InstrumentEvidence> = {}): InstrumentEvidence => ({
  name: 'nanodrop',
  watch: '/srv/nanodrop',
  files: ['**/*.tsv'],
  rule: { kind: 'taken', pattern: '**/*.tsv' },
  partOf: undefined,
  folder: { state: 'present' },
  link: undefined,
  mistakes: [],
  quietMs: 5000,
  doneFile: undefined,
  changed: 'new',
  existing: undefined,
  duplicates: 'skip',
  asked: 0,
  waiting: undefined,
  ...some,
});

const run = (some: Partial<KnownRun> = {}): KnownRun => ({
  id: 3,
  instrument: 'nanodrop',
  state: 'done',
  path: PATH,
  sha256: 'aaa',
  server: 'https://eln.example.org',
  experiment: 417,
  reason: undefined,
  dueAt: 0,
  addedAt: NOW - 60_000,
  updatedAt: NOW - 50_000,
  nextStep: 'nothing: it is filed',
  ...some,
});

const PRESENT = {
  state: 'present',
  size: 10,
  modifiedMs: NOW - 2000,
  sha256: 'aaa',
  unread: undefined,
} as const;

const about = (some: Partial<Evidence> = {}) =>
  conclude({
    path: PATH,
    now: NOW,
    file: PRESENT,
    instruments: [instrument()],
    known: [],
    runs: [],
    journal: true,
    isJournal: false,
    daemon: { running: true, gate: { kind: 'open', perSecond: 10 } },
    servers: [{ url: 'https://eln.example.org', dialect: 'elabftw', halted: undefined }],
    ...some,
  });

const all = ({ answer, findings }: ReturnType<typeof about>): string =>
  [answer, ...findings].map(({ text, hint }) => `${text} → ${hint}`).join('\n');

test('a filed file is told with its experiment, its address and since when it is known', () => {
  const told = about({ runs: [run()] });
  expect(told).toMatchObject({
    outcome: 'done',
    run: 3,
    experiment: 417,
    address: 'https://eln.example.org/experiments.php?mode=view&id=417',
  });
  expect(told.answer.text).toMatch(/filed on .* as experiment 417: https:.*id=417/);
  expect(all(told)).toMatch(/known since .* as run 3 of nanodrop/);
  expect(all(told)).toContain('matches nanodrop: files "**/*.tsv" in the folder /srv/nanodrop');
});

test('by the contract, the address is the one that the API has', () => {
  const { address } = about({ runs: [run()], servers: [] });
  expect(address).toBe('https://eln.example.org/api/v2/experiments/417');
});

test('a file that is gone is known by its path', () => {
  const told = about({ runs: [run()], file: { state: 'absent' } });
  expect(told.outcome).toBe('done');
  expect(all(told)).toContain('not there (any more)');
});

test('a copy under another path is a duplicate of the run that its bytes are', () => {
  const told = about({ runs: [run({ path: '/srv/nanodrop/first.tsv' })] });
  expect(told.outcome).toBe('duplicate');
  expect(told.answer.text).toMatch(/same bytes are run 3 already .* from \/srv\/nanodrop\/first\.tsv/);
});

test('where copies are runs of their own, the run of another path says nothing about this one', () => {
  const instruments = [instrument({ duplicates: 'ingest' })];
  const told = about({ instruments, runs: [run({ path: '/srv/nanodrop/first.tsv' })] });
  expect(told.outcome).toBe('waiting');
  expect(all(told)).toContain('run 3 of nanodrop (done) has the same bytes');
});

test('equal bytes of another instrument are told, and are not this run', () => {
  const told = about({ runs: [run({ instrument: 'balance', path: '/srv/balance/x.tsv' })] });
  expect(told.outcome).toBe('waiting');
  expect(all(told)).toContain('run 3 of balance (done) has the same bytes, from /srv/balance/x.tsv');
});

test('an erased run is known by its bytes', () => {
  const told = about({ runs: [run({ path: '' })] });
  expect(told.outcome).toBe('done');
  expect(all(told)).toContain('name and history were erased');
});

test.each([
  ['quarantined', 'run-17.tsv:4:2: "1,234" can be read in two ways'],
  ['held', 'experiment 417 was changed by hand'],
] as const)('a %s run is told with its reason and what to do', (state, reason) => {
  const told = about({ runs: [run({ state, reason, nextStep: 'labfeed retry 3' })] });
  expect(told).toMatchObject({ outcome: state, answer: { hint: 'labfeed retry 3' } });
  expect(told.answer.text).toContain(reason);
});

const queued = run({ state: 'queued', experiment: undefined });

test.each([
  [
    { kind: 'down', since: NOW - 9000, probeAt: NOW, failure: 'auth', reason: '401' },
    /not been available.*401 → see labfeed keys/,
  ],
  [{ kind: 'held', until: NOW + 5000, reason: '429' }, /takes no more for now, until .*429/],
  [{ kind: 'slow start', perSecond: 1.5 }, /slowly, 1\.5 a second/],
] as const)('a queued run says what the gate waits for: %o', (gate, says) => {
  const told = about({ runs: [queued], daemon: { running: true, gate } });
  expect(told.outcome).toBe('queued');
  expect(all(told)).toMatch(says);
});

test('a queued run says that labfeed does not run, that the server is halted, or when it is tried again', () => {
  expect(all(about({ runs: [queued], daemon: { running: false, gate: undefined } }))).toContain(
    'labfeed is not running',
  );
  const servers = [{ url: 'x', dialect: undefined, halted: 'the journal is older than the notebook' }];
  expect(all(about({ runs: [queued], servers }))).toContain('nothing is sent: the journal is older');
  expect(all(about({ runs: [{ ...queued, dueAt: NOW + 60_000 }] }))).toMatch(/tried again at \d{4}-/);
});

test('what no instrument takes is told with the nearest miss and its pattern', () => {
  const missed = (rule: InstrumentEvidence['rule']) => about({ instruments: [instrument({ rule })] });
  const cases = [
    [missed({ kind: 'ignore', pattern: '**/~*' }), /ignore "\*\*\/~\*" fits it/],
    [missed({ kind: 'doneFile', pattern: '{name}.done' }), /takes it for a done-file: .*"\{name\}\.done"/],
    [missed({ kind: 'files', otherCase: undefined }), /none of its globs fits: "\*\*\/\*\.tsv"/],
    [missed({ kind: 'files', otherCase: '**/*.tsv' }), /would fit but for capitals/],
  ] as const;
  for (const [told, says] of cases) {
    expect(told.outcome).toBe('unmatched');
    expect(all(told)).toMatch(says);
  }
  const instruments = [
    instrument({ name: 'far', watch: '/mnt/far', rule: { kind: 'outside', distance: 4 } }),
    instrument({ rule: { kind: 'outside', distance: 1 } }),
  ];
  expect(all(about({ instruments }))).toContain('the nearest is /srv/nanodrop, of nanodrop');
});

test('a file that two instruments want goes to the first, and that is told', () => {
  const told = about({ instruments: [instrument(), instrument({ name: 'second' })] });
  expect(all(told)).toMatch(/would match second too \("\*\*\/\*\.tsv"\), but nanodrop stands before it/);
});

test('a file that is not still yet says for how long of how much', () => {
  const waiting = { path: PATH, since: NOW - 7000, reason: 'unchanged for 2 s of 5 s' };
  const told = about({ instruments: [instrument({ waiting })] });
  expect(told).toMatchObject({
    outcome: 'waiting',
    answer: { text: 'not ingested yet: unchanged for 2 s of 5 s, seen 7 seconds ago' },
  });
  expect(about().answer.text).toMatch(/hold still for 5 seconds; it was modified 2 seconds ago/);
});

test('a missing done-file is named', () => {
  const doneFile = { name: `${PATH}.done`, isThere: false };
  const told = about({ instruments: [instrument({ doneFile })] });
  expect(told).toMatchObject({
    outcome: 'waiting',
    answer: { text: expect.stringContaining(`${PATH}.done is missing`) },
  });
  expect(about({ instruments: [instrument({ doneFile: { ...doneFile, isThere: true } })] }).answer.text).not.toContain(
    'missing',
  );
});

test('old files that raised a question, and those that were passed over, are told apart', () => {
  const instruments = [instrument({ asked: 60, existing: 'since 2026-01-01', changed: 'ignore' })];
  const known = (verdict: 'asked' | 'skipped') => [{ instrument: 'nanodrop', verdict }];
  const asked = about({ instruments, known: known('asked') });
  expect(asked.outcome).toBe('asked');
  expect(all(asked)).toMatch(/as were 59 others → answer it: labfeed backfill nanodrop/);
  const skipped = about({ instruments, known: known('skipped') });
  expect(skipped.outcome).toBe('skipped');
  expect(skipped.answer.text).toContain('existing: since 2026-01-01');
  const changed = about({ instruments, known: known('skipped'), runs: [run({ sha256: 'bbb' })] });
  expect(changed.outcome).toBe('skipped');
  expect(changed.answer.text).toMatch(/changed after run 3 .*changed: ignore/);
});

test('a file that was written to again is not taken for the run that was made of it', () => {
  const told = about({
    runs: [run({ sha256: 'bbb' })],
    known: [{ instrument: 'nanodrop', verdict: 'taken', run: 3 }],
  });
  expect(told.outcome).toBe('waiting');
  expect(told.answer.text).toContain('its bytes were changed since run 3');
});

test('an instrument that is stopped, a folder that is missing and a linked folder are named', () => {
  expect(about({ instruments: [instrument({ mistakes: ['labfeed.yaml:3:1: unknown key'] })] })).toMatchObject({
    outcome: 'stopped',
    answer: { text: expect.stringContaining('labfeed.yaml:3:1') },
  });
  const folder = { state: 'missing', reason: 'it is not there' } as const;
  const gone = about({ instruments: [instrument({ folder })], file: { state: 'absent' } });
  expect(gone.answer.text).toMatch(/folder \/srv\/nanodrop of nanodrop is missing/);
  expect(about({ instruments: [instrument({ link: '/srv/nanodrop/old' })] }).answer.text).toContain(
    '/srv/nanodrop/old is a link',
  );
});

test('without a daemon it is said that it is taken once labfeed runs', () => {
  const told = about({ daemon: { running: false, gate: undefined } });
  expect(told.answer.text).toContain('once labfeed runs');
  expect(all(told)).toContain('labfeed is not running');
});

test('one of several files is told with the run that all of them are, whatever its own bytes are', () => {
  const partOf = '/srv/nanodrop/run-17.D';
  const instruments = [instrument({ partOf })];
  const told = about({ instruments, runs: [run({ path: partOf, sha256: 'of all' })] });
  expect(told).toMatchObject({ outcome: 'done', run: 3 });
  expect(all(told)).toContain(`it belongs to a run of several files: ${partOf}`);
  const copied = about({ instruments, runs: [run({ path: '/srv/nanodrop/first.D', sha256: 'of all' })] });
  expect(copied.outcome).toBe('duplicate');
  const folder = about({ path: partOf, instruments, file: { state: 'folder' } });
  expect(folder.outcome).toBe('waiting');
});

test('a folder that is no run is told so', () => {
  const instruments = [instrument({ rule: { kind: 'files', otherCase: undefined } })];
  expect(about({ instruments, file: { state: 'folder' } }).answer.text).toBe('it is a folder, and no run');
});

test('what nobody knows is unknown, with or without a journal', () => {
  const nobody = { instruments: [], file: { state: 'absent' } } as const;
  expect(about(nobody)).toMatchObject({ outcome: 'unknown' });
  expect(about({ ...nobody, journal: false }).answer.text).toContain('there is no journal yet');
});
