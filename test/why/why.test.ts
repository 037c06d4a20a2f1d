import { expect, test } from 'vitest';
import type { Evidence, InstrumentEvidence, KnownRun } from '../../src/why/gather.js';
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
  nextStep: 'nothing to do: the run is filed',
  failure: undefined,
  attachments: [],
  versions: 0,
  ...some,
});

const PRESENT = {
  state: 'present',
  size: 10,
  modifiedMs: NOW - 2000,
  sha256: 'aaa',
  unread: undefined,
} as const;

/** The database of a fleet. */
const REACHABLE = { trouble: undefined, isFleetUnknown: false };

const about = (some: Partial<Evidence> = {}) =>
  conclude({
    path: PATH,
    now: NOW,
    isUntouched: false,
    followed: undefined,
    file: PRESENT,
    instruments: [instrument()],
    known: [],
    runs: [],
    sources: new Map(),
    contentRun: some.runs?.find((one) => one.sha256 === 'aaa' && one.instrument === 'nanodrop')?.id,
    journal: true,
    isJournal: false,
    elsewhere: { machine: undefined, inside: PATH, seen: undefined, places: [], leader: undefined, ...REACHABLE },
    isKept: false,
    daemon: { running: true, gate: { kind: 'open', perSecond: 10 } },
    uploads: { url: 'https://eln.example.org', instruments: ['nanodrop'] },
    servers: [{ url: 'https://eln.example.org', dialect: 'elabftw', halted: undefined, spares: [] }],
    ...some,
  });

const all = ({ answer, findings }: ReturnType<typeof about>): string =>
  [answer, ...findings].map(({ text, hint }) => `${text} → ${hint}`).join('\n');

test('a filed file is shown with its experiment, its address and since when it is in the journal', () => {
  const answer = about({ runs: [run()] });
  expect(answer).toMatchObject({
    outcome: 'done',
    run: 3,
    experiment: 417,
    address: 'https://eln.example.org/experiments.php?mode=view&id=417',
  });
  expect(answer.answer.text).toMatch(/filed on .* as experiment 417: https:.*id=417/);
  expect(all(answer)).toMatch(/in the journal since .* as run 3 of nanodrop/);
  expect(all(answer)).toContain('it matches "**/*.tsv" of nanodrop, which watches /srv/nanodrop');
});

test('without eLabFTW, the address is that of the API', () => {
  const { address } = about({ runs: [run()], servers: [] });
  expect(address).toBe('https://eln.example.org/api/v2/experiments/417');
});

test('a file that is gone is recognised by its path', () => {
  const answer = about({ runs: [run()], file: { state: 'absent' } });
  expect(answer.outcome).toBe('done');
  expect(all(answer)).toContain('the file does not exist');
});

test('the old path of a renamed file leads to its run', () => {
  const renamed = run({ path: '/srv/nanodrop/renamed.tsv', sha256: 'bbb' });
  const { outcome, answer } = about({ file: { state: 'absent' }, runs: [renamed] });
  expect(outcome).toBe('done');
  expect(answer.text).toMatch(/^the file is gone; .* run 3, whose file is now \/srv\/nanodrop\/renamed\.tsv \(.*417/);
});

test('a file that never settles is shown with what to do about it', () => {
  const reason = 'it has kept changing for more than a day\n  → set `run: growing`';
  const waiting = { path: PATH, since: NOW - 100_000_000, reason };
  const { outcome, answer } = about({ instruments: [instrument({ waiting })] });
  expect([outcome, answer.text, answer.hint]).toEqual([
    'waiting',
    expect.stringMatching(/^not filed yet: it has kept changing for more than a day; first seen .* ago$/),
    'set `run: growing`',
  ]);
});

test('a folder whose name matches is not a waiting run', () => {
  const answer = about({ file: { state: 'folder' } });
  expect([answer.outcome, answer.answer.text]).toEqual(['unmatched', 'it is a folder, not a run']);
});

test('a copy at another path is a duplicate of the run with the same content', () => {
  const answer = about({ runs: [run({ path: '/srv/nanodrop/first.tsv' })] });
  expect(answer.outcome).toBe('duplicate');
  expect(answer.answer.text).toMatch(/run 3, from \/srv\/nanodrop\/first\.tsv, has the same content \(filed on /);
});

test('a file under the name that labfeed gives it while it moves it is recognised, with its own name and its run', () => {
  const path = '/srv/nanodrop/.labfeed-0a1b2c3d-first.tsv';
  const answer = about({ path, runs: [run({ path: '/srv/nanodrop/first.tsv' })] });
  expect(answer).toMatchObject({ run: 3 });
  expect(all(answer)).toMatch(/it is \/srv\/nanodrop\/first\.tsv, with the name that labfeed gives .*rename the file/);
  expect(all(about({ path, file: { state: 'absent' } }))).toContain('it is /srv/nanodrop/first.tsv');
  expect(all(about({ path: '/srv/nanodrop/.labfeed-first.tsv' }))).not.toContain('it is /srv');
});

test('if copies are runs of their own, a run of another path is not this one', () => {
  const instruments = [instrument({ duplicates: 'ingest' })];
  const answer = about({
    instruments,
    runs: [run({ path: '/srv/nanodrop/first.tsv' })],
    contentRun: undefined,
  });
  expect(answer.outcome).toBe('waiting');
  expect(all(answer)).toContain('run 3 of nanodrop (done) has the same content');
});

test('a run of another instrument with the same content is mentioned, but is not this run', () => {
  const answer = about({ runs: [run({ instrument: 'balance', path: '/srv/balance/x.tsv' })] });
  expect(answer.outcome).toBe('waiting');
  expect(all(answer)).toContain('run 3 of balance (done) has the same content, from /srv/balance/x.tsv');
});

test('an erased run is recognised by its content', () => {
  const answer = about({ runs: [run({ path: '' })] });
  expect(answer.outcome).toBe('done');
  expect(all(answer)).toContain('name and history were erased');
  const copies = [instrument({ duplicates: 'ingest' })];
  expect(about({ instruments: copies, runs: [run({ path: '' })] }).outcome).toBe('done');
});

test.each([
  ['quarantined', 'run-17.tsv:4:2: "1,234" can be read in two ways'],
  ['held', 'experiment 417 was changed by hand'],
] as const)('a %s run is shown with its reason and what to do', (state, reason) => {
  const answer = about({ runs: [run({ state, reason, nextStep: 'labfeed retry 3' })] });
  expect(answer).toMatchObject({ outcome: state, answer: { hint: 'labfeed retry 3' } });
  expect(answer.answer.text).toContain(reason);
});

const queued = run({ state: 'queued', experiment: undefined });

test.each([
  [
    { kind: 'down', since: NOW - 9000, probeAt: NOW, failure: 'auth', reason: '401' },
    /unavailable since .*401 → replace the key: labfeed keys set/,
  ],
  [{ kind: 'held', until: NOW + 5000, reason: '429' }, /no request is sent before .*429/],
  [{ kind: 'slow start', perSecond: 1.5 }, /limited to 1\.5 per second: after an outage/],
] as const)('a queued run is shown with what the limiter waits for: %o', (gate, says) => {
  const answer = about({ runs: [queued], daemon: { running: true, gate } });
  expect(answer.outcome).toBe('queued');
  expect(all(answer)).toMatch(says);
});

test('a queued run is shown with a stopped daemon, a halted server or its next attempt', () => {
  expect(all(about({ runs: [queued], daemon: { running: false, gate: undefined } }))).toContain(
    'labfeed is not running',
  );
  const servers = [{ url: 'x', dialect: undefined, halted: 'the journal is older than the notebook', spares: [] }];
  expect(all(about({ runs: [queued], servers }))).toContain('nothing is sent: the journal is older');
  expect(all(about({ runs: [{ ...queued, dueAt: NOW + 60_000 }] }))).toMatch(/the next attempt is at \d{4}-/);
});

test('an unmatched file is shown with the rule of the instrument that came closest', () => {
  const missed = (rule: InstrumentEvidence['rule']) => about({ instruments: [instrument({ rule })] });
  const cases = [
    [missed({ kind: 'ignore', pattern: '**/~*' }), /`ignore` "\*\*\/~\*" matches it/],
    [missed({ kind: 'doneFile', pattern: '{name}.done' }), /treats it as a done-file: .*"\{name\}\.done"/],
    [missed({ kind: 'files', otherCase: undefined }), /none of its globs matches: "\*\*\/\*\.tsv"/],
    [missed({ kind: 'files', otherCase: '**/*.tsv' }), /differs only in upper and lower case/],
  ] as const;
  for (const [answer, says] of cases) {
    expect(answer.outcome).toBe('unmatched');
    expect(all(answer)).toMatch(says);
  }
  const instruments = [
    instrument({ name: 'far', watch: '/mnt/far', rule: { kind: 'outside', distance: 4 } }),
    instrument({ rule: { kind: 'outside', distance: 1 } }),
  ];
  expect(all(about({ instruments }))).toContain('the nearest is /srv/nanodrop, of nanodrop');
});

test('a file that two instruments match belongs to the first, and the second is mentioned', () => {
  const answer = about({ instruments: [instrument(), instrument({ name: 'second' })] });
  expect(all(answer)).toMatch(/also matches "\*\*\/\*\.tsv" of second, but nanodrop comes first/);
});

test('a file that is not settled is shown with how long it has been unchanged', () => {
  const waiting = { path: PATH, since: NOW - 7000, reason: 'unchanged for 2 s of 5 s' };
  const answer = about({ instruments: [instrument({ waiting })] });
  expect(answer).toMatchObject({
    outcome: 'waiting',
    answer: { text: 'not filed yet: unchanged for 2 s of 5 s; first seen 7 seconds ago' },
  });
  expect(about().answer.text).toMatch(/unchanged for 5 seconds; it was modified 2 seconds ago/);
});

test('a missing done-file is named', () => {
  const doneFile = { name: `${PATH}.done`, isThere: false };
  const answer = about({ instruments: [instrument({ doneFile })] });
  expect(answer).toMatchObject({
    outcome: 'waiting',
    answer: { text: expect.stringContaining(`${PATH}.done is missing`) },
  });
  expect(about({ instruments: [instrument({ doneFile: { ...doneFile, isThere: true } })] }).answer.text).not.toContain(
    'missing',
  );
});

test('backlog files, skipped files and skipped changes have different answers', () => {
  const instruments = [instrument({ asked: 60, existing: 'since 2026-01-01', changed: 'ignore' })];
  const known = (verdict: 'asked' | 'skipped') => [{ instrument: 'nanodrop', path: PATH, verdict, run: undefined }];
  const backlog = about({ instruments, known: known('asked') });
  expect(backlog.outcome).toBe('asked');
  expect(all(backlog)).toMatch(/with 59 other files → decide: labfeed backfill nanodrop/);
  const skipped = about({ instruments, known: known('skipped') });
  expect(skipped.outcome).toBe('skipped');
  expect(skipped.answer.text).toContain('existing: since 2026-01-01');
  const changed = about({ instruments, known: known('skipped'), runs: [run({ sha256: 'bbb' })] });
  expect(changed.outcome).toBe('skipped');
  expect(changed.answer.text).toMatch(/changed after it became run 3.*changed: ignore/);
});

test('a file with new content is not taken for the run that it was before', () => {
  const answer = about({
    runs: [run({ sha256: 'bbb' })],
    known: [{ instrument: 'nanodrop', path: PATH, verdict: 'taken', run: 3 }],
  });
  expect(answer.outcome).toBe('waiting');
  expect(answer.answer.text).toContain('its content changed after run 3');
});

test('a stopped instrument, a missing folder and a linked folder are named', () => {
  expect(about({ instruments: [instrument({ mistakes: ['labfeed.yaml:3:1: unknown key'] })] })).toMatchObject({
    outcome: 'stopped',
    answer: { text: expect.stringContaining('labfeed.yaml:3:1') },
  });
  const folder = { state: 'missing', reason: 'it does not exist' } as const;
  const gone = about({ instruments: [instrument({ folder })], file: { state: 'absent' } });
  expect(gone.answer.text).toMatch(/folder \/srv\/nanodrop of nanodrop is missing/);
  expect(about({ instruments: [instrument({ link: '/srv/nanodrop/old' })] }).answer.text).toContain(
    '/srv/nanodrop/old is a symbolic link',
  );
});

test('without a daemon, the file is taken once labfeed is running', () => {
  const answer = about({ daemon: { running: false, gate: undefined } });
  expect(answer.answer.text).toContain('once it is running');
  expect(all(answer)).toContain('labfeed is not running');
});

test('one file of a run of several files is shown with that run, whatever its own content is', () => {
  const partOf = '/srv/nanodrop/run-17.D';
  const instruments = [instrument({ partOf })];
  const answer = about({ instruments, runs: [run({ path: partOf, sha256: 'of all' })] });
  expect(answer).toMatchObject({ outcome: 'done', run: 3 });
  expect(all(answer)).toContain(`it belongs to a run of several files: ${partOf}`);
  const copied = about({ instruments, runs: [run({ path: '/srv/nanodrop/first.D', sha256: 'of all' })] });
  expect(copied.outcome).toBe('duplicate');
  const folder = about({ path: partOf, instruments, file: { state: 'folder' } });
  expect(folder.outcome).toBe('waiting');
});

test('a folder that is not a run is called a folder', () => {
  const instruments = [instrument({ rule: { kind: 'files', otherCase: undefined } })];
  expect(about({ instruments, file: { state: 'folder' } }).answer.text).toBe('it is a folder, not a run');
});

test('a file that does not exist and is not in the journal is unknown, with or without a journal', () => {
  const nobody: Partial<Evidence> = { instruments: [], file: { state: 'absent' } };
  expect(about(nobody)).toMatchObject({ outcome: 'unknown' });
  expect(about({ ...nobody, journal: false }).answer.text).toContain('there is no journal yet');
});

test('a file that was rewritten with its size and time restored is not promised for the next scan', () => {
  const changed = { file: { ...PRESENT, sha256: 'bbb' }, runs: [run()], contentRun: undefined };
  expect(about(changed).answer.text).toContain('labfeed takes it once it has been unchanged');
  const { text, hint } = about({ ...changed, isUntouched: true }).answer;
  expect(text).toContain('its content changed after run 3; its size and modification time are as before');
  expect(hint).toContain('touch FILE');
});

test('a filed run says which of its raw files are attached, and why others are not', () => {
  const file = { n: 1, kind: 'raw', name: 'a.csv', sha256: 'aaa', upload: undefined, isRefused: false } as const;
  const waiting = { ...file, reason: undefined };
  const shown = (changes: Partial<KnownRun>) => all(about({ runs: [run({ attachments: [waiting], ...changes })] }));
  expect(shown({})).toContain('its raw file a.csv waits to be attached');
  expect(shown({ attachments: [{ ...waiting, upload: 8 }] })).toContain('its raw file a.csv is attached');
  const refused = { ...file, isRefused: true, reason: 'the raw file a.csv is not attached: too large' };
  expect(shown({ attachments: [refused] })).toContain('the raw file a.csv is not attached: too large');
  expect(shown({ server: 'https://old.example.org' })).toContain(
    'waits to be attached: the run was filed at https://old.example.org, which is not the configured notebook → set `notebook.url` back',
  );
});

test('a version of a file is explained as the update of its experiment', () => {
  const versions = { versions: 2 };
  expect(all(about({ runs: [run(versions)] }))).toContain('labfeed has seen 2 versions of it → labfeed show 3');
  expect(about({ runs: [run({ ...versions, state: 'sending' })] }).answer.text).toBe(
    'its new version is to update experiment 417',
  );
  const waiting = about({
    instruments: [instrument({ changed: 'revise' })],
    runs: [run({ sha256: 'before' })],
    contentRun: undefined,
  });
  expect(waiting.answer.text).toContain('its content changed after run 3, which it will update');
});

test('of two files with the same content, each is its own run if their versions are', () => {
  const other = run({ id: 2, path: '/srv/nanodrop/other.tsv' });
  expect(about({ runs: [run({ versions: 2 }), other], contentRun: 2 })).toMatchObject({ outcome: 'done', run: 3 });
});

test('a run that labfeed itself has set aside is no decision of a person', () => {
  const set = run({ state: 'ignored', experiment: undefined, reason: 'its path now holds the file of run 1' });
  expect(about({ runs: [set] }).answer.text).toBe('set aside: its path now holds the file of run 1');
  expect(about({ runs: [{ ...set, failure: 'file' }] }).answer.text).toContain('a person decided');
});

const place = (machine: string, isAway = false) => ({
  machine,
  isAway,
  instrument: 'nanodrop',
  watch: '/srv/nanodrop',
});
const nowhere = { machine: undefined, inside: PATH, seen: undefined, places: [], leader: null, ...REACHABLE };

test('a run of another machine of the fleet is explained with that machine, and without the folders of this one', () => {
  const path = `pc2:${PATH}`;
  const seen = { isAway: true, at: NOW - 7_200_000 };
  const elsewhere = {
    machine: 'pc2',
    inside: PATH,
    seen,
    places: [place('pc2', true)],
    leader: 'server',
    ...REACHABLE,
  };
  const file = { state: 'absent' } as const;
  const held = run({ path, state: 'held', experiment: 5, reason: 'somebody changed it' });
  const answer = about({ path, file, instruments: [], runs: [held], elsewhere });
  expect(answer).toMatchObject({ outcome: 'held', run: 3, experiment: 5 });
  expect(answer.answer.text).toBe('held until a person decides (experiment 5): somebody changed it');
  expect(all(answer)).toContain(
    `its file is, or was, ${PATH} on pc2, which is away and was last seen 2 hours ago; nanodrop watches /srv/nanodrop there → for what only that machine knows, on pc2: labfeed why ${PATH}`,
  );
  expect(all(answer)).not.toMatch(/no watched folder|does not exist|no instruments/);
  const queued = run({ path, state: 'queued', experiment: undefined });
  expect(all(about({ path, file, instruments: [], runs: [queued], elsewhere }))).toContain(
    'server delivers for the fleet',
  );
  expect(all(about({ runs: [run({ state: 'queued' })], elsewhere: nowhere }))).toContain(
    'no machine of the fleet delivers',
  );
});

test('a file that nobody knows may be known to the machines of the fleet that watch such a folder', () => {
  const file = { state: 'absent' } as const;
  const elsewhere = { ...nowhere, places: [place('pc2'), place('pc3', true)] };
  const answer = about({ file, elsewhere });
  expect(answer.outcome).toBe('unknown');
  expect(answer.answer.text).toBe(
    'no run of the fleet has it, and it is not on this machine; pc2 and pc3 (away) watch such a folder, and may know more',
  );
  expect(answer.answer.hint).toBe(`for what only that machine knows, on pc2 and pc3: labfeed why ${PATH}`);
  // One that is here is this machine's.
  expect(about({ elsewhere }).outcome).toBe('waiting');
  const path = `pc9:${PATH}`;
  const gone = about({ path, file, instruments: [], elsewhere: { ...nowhere, machine: 'pc9' } });
  expect(gone.answer.text).toBe('no run of the fleet has it, and it is not on this machine');
});

test('if the database of the fleet cannot be asked, nothing is said about the runs of others', () => {
  const file = { state: 'absent' } as const;
  const elsewhere = { ...nowhere, places: [place('pc2')], isFleetUnknown: true };
  expect(about({ file, elsewhere }).answer.text).toBe(
    'no run that this machine knows has it, and it is not on this machine; pc2 watches such a folder, and may know more',
  );
});

test('a file that was taken, and whose run has not reached the fleet, is kept on this machine', () => {
  const away = { ...nowhere, leader: undefined, trouble: 'connect ECONNREFUSED 192.0.2.1:5432' };
  expect(about({ isKept: true, elsewhere: away })).toMatchObject({
    outcome: 'waiting',
    answer: {
      text: 'taken, and kept on this machine until the database of the fleet is back: connect ECONNREFUSED 192.0.2.1:5432',
    },
  });
  expect(about({ isKept: true, elsewhere: nowhere }).answer.text).toBe(
    'taken, and on its way to the machine that delivers for the fleet',
  );
  expect(all(about({ isKept: true, daemon: { running: false, gate: undefined } }))).toContain('labfeed is not running');
});
