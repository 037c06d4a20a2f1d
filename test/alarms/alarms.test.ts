import { expect, test } from 'vitest';
import { type Alarms, createAlarms } from '../../src/alarms/alarms.js';
import type { Tell } from '../../src/alarms/channels.js';
import type { Facts } from '../../src/alarms/conditions.js';
import type { AlarmBook, Channel, Notice } from '../../src/model.js';
import { manualClock } from '../support/manual-clock.js';
import { silentLog } from '../support/silent-log.js';
import { facts, instrument } from './facts.js';

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;
const EMPTY: AlarmBook = { raised: [], untold: [] };
const QUARANTINED = facts({
  instruments: [instrument({ quarantined: { runs: 1, path: 'a.tsv', reason: 'why' } })],
});
const GONE = facts({ instruments: [instrument({ live: { folder: { state: 'missing' } } })] });

/** A daemon's surroundings that outlive it: what is on disk, the clock, and who is told. */
function world() {
  const clock = manualClock();
  const told: string[] = [];
  const notices: Notice[] = [];
  let disk = EMPTY;
  let now: Facts = facts();
  let fails = new Set<Channel>();
  let canSave = true;
  let saves = 0;
  const tell =
    (channel: Channel): Tell =>
    async (notice) => {
      if (fails.has(channel)) throw new Error('nobody is there');
      told.push(`${channel}: ${notice.state} ${notice.kind}`);
      notices.push(notice);
    };

  function start(channels: readonly Channel[] = ['webhook']): Alarms {
    const ways = new Map(channels.map((channel) => [channel, tell(channel)]));
    return createAlarms({
      facts: async () => now,
      load: async () => disk,
      async save(book) {
        if (!canSave) throw new Error('disk full');
        saves += 1;
        disk = structuredClone(book);
      },
      channels: () => ways,
      clock,
      log: silentLog(),
    });
  }

  return {
    told,
    notices,
    clock,
    disk: () => disk,
    saves: () => saves,
    start,
    failing(...channels: Channel[]) {
      fails = new Set(channels);
    },
    breakDisk(broken: boolean) {
      canSave = !broken;
    },
    /** So many seconds pass, in each of which somebody looks. */
    async pass(alarms: Alarms, given: Facts, seconds = 1) {
      now = given;
      for (let n = 0; n < seconds; n += 1) {
        clock.advance(1000);
        await alarms.look();
        await new Promise((resolve) => setImmediate(resolve));
      }
    },
  };
}

test('an alarm is on disk before anybody is told: a crash in between calls nobody twice', async () => {
  const { clock } = world();
  const events: string[] = [];
  const tell: Tell = async ({ kind }) => void events.push(`told ${kind}`);
  const alarms = createAlarms({
    facts: async () => QUARANTINED,
    load: async () => EMPTY,
    async save({ raised, untold }) {
      await new Promise((resolve) => setImmediate(resolve));
      events.push(`saved ${raised.length} raised, ${untold.length} untold`);
    },
    channels: () => new Map([['webhook', tell]]),
    clock,
    log: silentLog(),
  });
  await alarms.look();
  await alarms.stop();
  expect(events).toEqual(['saved 1 raised, 1 untold', 'told quarantine', 'saved 1 raised, 0 untold']);
});

test('a trouble is told once while it lasts, and once when it is over', async () => {
  const { start, pass, told, notices } = world();
  const alarms = start(['webhook', 'command']);
  await pass(alarms, QUARANTINED, 5);
  expect(told).toEqual(['webhook: raised quarantine', 'command: raised quarantine']);
  expect(alarms.raised()).toMatchObject([{ kind: 'quarantine', instrument: 'nanodrop' }]);
  await pass(alarms, facts(), 5);
  expect(told.slice(2)).toEqual(['webhook: over quarantine', 'command: over quarantine']);
  expect(notices.at(-1)?.text).toMatch(/^over after 5 seconds: nanodrop: a run is quarantined/);
  expect(alarms.raised()).toEqual([]);
});

test('more of the same changes the words, and calls nobody', async () => {
  const { start, pass, told, saves } = world();
  const alarms = start();
  for (let runs = 1; runs <= 50; runs += 1)
    await pass(
      alarms,
      facts({ instruments: [instrument({ quarantined: { runs, path: 'a.tsv', reason: 'why' } })] }),
    );
  expect(told).toEqual(['webhook: raised quarantine']);
  expect(alarms.raised()[0]?.text).toContain('50 runs are quarantined');
  expect(saves()).toBeLessThan(5);
});

test('a folder that is back within its grace is not told; one that stays away is', async () => {
  const { start, pass, told } = world();
  const alarms = start();
  await pass(alarms, GONE, 59);
  await pass(alarms, facts(), 1);
  await pass(alarms, GONE, 59);
  expect(told).toEqual([]);
  await pass(alarms, GONE, 10);
  expect(told).toEqual(['webhook: raised folder']);
});

test('times are whole milliseconds, as the journal wants them, although the clock of waits is finer', async () => {
  const { start, pass, clock } = world();
  const alarms = start();
  clock.advance(0.25);
  await pass(alarms, GONE, 30);
  clock.advance(0.5);
  await pass(alarms, GONE, 40);
  expect(alarms.raised().map(({ since }) => Number.isInteger(since))).toEqual([true]);
});

test('a restart neither repeats an alarm nor forgets it', async () => {
  const { start, pass, told } = world();
  const first = start();
  await pass(first, QUARANTINED);
  await first.stop();
  const second = start();
  await second.open();
  await pass(second, QUARANTINED, 3);
  expect(told).toEqual(['webhook: raised quarantine']);
  expect(second.raised()).toHaveLength(1);
  await second.stop();
  const third = start();
  await third.open();
  await pass(third, facts());
  expect(told).toEqual(['webhook: raised quarantine', 'webhook: over quarantine']);
});

test('after a restart, an alarm stands until it is known that its trouble is over', async () => {
  const { start, pass, told } = world();
  const { notebook } = facts();
  const refused = facts({
    notebook: {
      ...notebook,
      gate: { kind: 'down', since: 0, probeAt: 0, failure: 'auth', reason: 'no' },
    },
  });
  const first = start();
  await pass(first, refused);
  const second = start();
  await second.open();
  await pass(second, facts({ notebook: { ...notebook, answered: false } }), 3);
  expect(second.raised()).toHaveLength(1);
  await pass(second, facts());
  expect(told).toEqual(['webhook: raised auth', 'webhook: over auth']);
});

test('who cannot be told is told later, in order, also after a restart', async () => {
  const { start, pass, told, failing, disk } = world();
  const first = start(['webhook', 'command']);
  failing('webhook');
  await pass(first, QUARANTINED, 3);
  await pass(first, facts(), 3);
  expect(told).toEqual(['command: raised quarantine', 'command: over quarantine']);
  expect(disk().untold.map(({ state }) => state)).toEqual(['raised', 'over']);
  await first.stop();
  failing();
  const second = start(['webhook', 'command']);
  await second.open();
  await pass(second, facts(), 60);
  expect(told.slice(2)).toEqual(['webhook: raised quarantine', 'webhook: over quarantine']);
  expect(disk()).toEqual(EMPTY);
});

test('waits grow, and after a week what could not be told is given up', async () => {
  const { start, pass, failing, disk, clock } = world();
  const alarms = start();
  failing('webhook');
  await pass(alarms, QUARANTINED, 200);
  const attempts = () => disk().untold[0]?.attempts ?? 0;
  expect(attempts()).toBeGreaterThan(5);
  expect(attempts()).toBeLessThan(10);
  clock.advance(8 * DAY);
  await pass(alarms, QUARANTINED);
  expect(disk().untold).toEqual([]);
});

test('a trouble that comes and goes while nobody can be told leaves only its last time to tell', async () => {
  const { start, pass, failing, disk } = world();
  const alarms = start();
  failing('webhook');
  for (let n = 0; n < 20; n += 1) {
    await pass(alarms, QUARANTINED);
    await pass(alarms, facts());
  }
  expect(disk().untold.map(({ state }) => state)).toEqual(['raised', 'over']);
});

test('whoever is no longer in the configuration is not told any more', async () => {
  const { start, pass, failing, disk, told } = world();
  const first = start(['webhook', 'command']);
  failing('webhook');
  await pass(first, QUARANTINED);
  const second = start(['command']);
  await second.open();
  await pass(second, facts(), 60);
  expect(told).toEqual(['command: raised quarantine', 'command: over quarantine']);
  expect(disk()).toEqual(EMPTY);
});

test('a journal that cannot be written is told all the same, and once', async () => {
  const { start, pass, told, breakDisk, disk } = world();
  const alarms = start();
  breakDisk(true);
  await pass(alarms, facts({ journal: 'database or disk is full' }), 5);
  expect(told).toEqual(['webhook: raised journal']);
  expect(disk()).toEqual(EMPTY);
  breakDisk(false);
  await pass(alarms, facts(), 2);
  expect(told).toEqual(['webhook: raised journal', 'webhook: over journal']);
});

test('text from files is one line of bounded length', async () => {
  const { start, pass } = world();
  const alarms = start();
  const reason = `line 3\n\u0000\u001b[31m${'x'.repeat(10_000)}`;
  await pass(alarms, facts({ instruments: [instrument({ quarantined: { runs: 1, path: 'a', reason } })] }));
  const [alarm] = alarms.raised();
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not pass
  expect(alarm?.text).not.toMatch(/[\u0000-\u001f]/);
  expect(alarm?.text.length).toBeLessThan(1600);
});
