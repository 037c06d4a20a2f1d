import { expect, test } from 'vitest';
import { Alarms, type Send } from '../../src/alarms/alarms.js';
import type { Facts } from '../../src/alarms/conditions.js';
import type { AlarmBook, Channel, Notice } from '../../src/model.js';
import { manualClock } from '../support/manual-clock.js';
import { silentLog } from '../support/silent-log.js';
import { facts, instrument } from './facts.js';

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;
const EMPTY: AlarmBook = { raised: [], unsent: [] };
const QUARANTINED = facts({
  instruments: [instrument({ quarantined: { runs: 1, path: 'a.tsv', reason: 'why' } })],
});
const GONE = facts({ instruments: [instrument({ live: { folder: { state: 'missing' } } })] });

/** What survives a daemon: the disk, the clock, and what was sent. */
function world() {
  const clock = manualClock();
  const sent: string[] = [];
  const notices: Notice[] = [];
  let disk = EMPTY;
  let now: Facts = facts();
  let fails = new Set<Channel>();
  let canSave = true;
  let saves = 0;
  const send =
    (channel: Channel): Send =>
    async (notice) => {
      if (fails.has(channel)) throw new Error('connection refused');
      sent.push(`${channel}: ${notice.state} ${notice.kind}`);
      notices.push(notice);
    };

  function start(channels: readonly Channel[] = ['webhook']): Alarms {
    const senders = new Map(channels.map((channel) => [channel, send(channel)]));
    return new Alarms({
      facts: async () => now,
      load: async () => disk,
      async save(book) {
        if (!canSave) throw new Error('disk full');
        saves += 1;
        disk = structuredClone(book);
      },
      channels: () => senders,
      clock,
      log: silentLog(),
    });
  }

  return {
    sent,
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
    /** Lets seconds pass, with one check per second. */
    async pass(alarms: Alarms, given: Facts, seconds = 1) {
      now = given;
      for (let n = 0; n < seconds; n += 1) {
        clock.advance(1000);
        await alarms.check();
        await new Promise((resolve) => setImmediate(resolve));
      }
    },
  };
}

test('an alarm is saved before it is sent, so a crash in between does not send it twice', async () => {
  const { clock } = world();
  const events: string[] = [];
  const send: Send = async ({ kind }) => void events.push(`sent ${kind}`);
  const alarms = new Alarms({
    facts: async () => QUARANTINED,
    load: async () => EMPTY,
    async save({ raised, unsent }) {
      await new Promise((resolve) => setImmediate(resolve));
      events.push(`saved ${raised.length} raised, ${unsent.length} unsent`);
    },
    channels: () => new Map([['webhook', send]]),
    clock,
    log: silentLog(),
  });
  await alarms.check();
  await alarms.stop();
  expect(events).toEqual(['saved 1 raised, 1 unsent', 'sent quarantine', 'saved 1 raised, 0 unsent']);
});

test('an alarm is sent once when it is raised and once when it is cleared', async () => {
  const { start, pass, sent, notices } = world();
  const alarms = start(['webhook', 'command']);
  await pass(alarms, QUARANTINED, 5);
  expect(sent).toEqual(['webhook: raised quarantine', 'command: raised quarantine']);
  expect(alarms.raised()).toMatchObject([{ kind: 'quarantine', instrument: 'nanodrop' }]);
  await pass(alarms, facts(), 5);
  expect(sent.slice(2)).toEqual(['webhook: over quarantine', 'command: over quarantine']);
  expect(notices.at(-1)?.text).toMatch(/^cleared after 5 seconds: nanodrop: 1 run is quarantined/);
  expect(alarms.raised()).toEqual([]);
});

test('a changed text alone sends nothing', async () => {
  const { start, pass, sent, saves } = world();
  const alarms = start();
  for (let runs = 1; runs <= 50; runs += 1)
    await pass(alarms, facts({ instruments: [instrument({ quarantined: { runs, path: 'a.tsv', reason: 'why' } })] }));
  expect(sent).toEqual(['webhook: raised quarantine']);
  expect(alarms.raised()[0]?.text).toContain('50 runs are quarantined');
  expect(saves()).toBeLessThan(5);
});

test('a folder that returns within its grace period raises no alarm', async () => {
  const { start, pass, sent } = world();
  const alarms = start();
  await pass(alarms, GONE, 59);
  await pass(alarms, facts(), 1);
  await pass(alarms, GONE, 59);
  expect(sent).toEqual([]);
  await pass(alarms, GONE, 10);
  expect(sent).toEqual(['webhook: raised folder']);
});

test('times are whole milliseconds although the monotonic clock is finer', async () => {
  const { start, pass, clock } = world();
  const alarms = start();
  clock.advance(0.25);
  await pass(alarms, GONE, 30);
  clock.advance(0.5);
  await pass(alarms, GONE, 40);
  expect(alarms.raised().map(({ since }) => Number.isInteger(since))).toEqual([true]);
});

test('a restart neither repeats nor forgets an alarm', async () => {
  const { start, pass, sent } = world();
  const first = start();
  await pass(first, QUARANTINED);
  await first.stop();
  const second = start();
  await second.open();
  await pass(second, QUARANTINED, 3);
  expect(sent).toEqual(['webhook: raised quarantine']);
  expect(second.raised()).toHaveLength(1);
  await second.stop();
  const third = start();
  await third.open();
  await pass(third, facts());
  expect(sent).toEqual(['webhook: raised quarantine', 'webhook: over quarantine']);
});

test('after a restart, an alarm stays raised until its condition is known to be absent', async () => {
  const { start, pass, sent } = world();
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
  expect(sent).toEqual(['webhook: raised auth', 'webhook: over auth']);
});

test('notices that could not be sent are sent later, in order, even after a restart', async () => {
  const { start, pass, sent, failing, disk } = world();
  const first = start(['webhook', 'command']);
  failing('webhook');
  await pass(first, QUARANTINED, 3);
  await pass(first, facts(), 3);
  expect(sent).toEqual(['command: raised quarantine', 'command: over quarantine']);
  expect(disk().unsent.map(({ state }) => state)).toEqual(['raised', 'over']);
  await first.stop();
  failing();
  const second = start(['webhook', 'command']);
  await second.open();
  await pass(second, facts(), 60);
  expect(sent.slice(2)).toEqual(['webhook: raised quarantine', 'webhook: over quarantine']);
  expect(disk()).toEqual(EMPTY);
});

test('retries back off, and a notice is dropped after a week', async () => {
  const { start, pass, failing, disk, clock } = world();
  const alarms = start();
  failing('webhook');
  await pass(alarms, QUARANTINED, 200);
  const attempts = () => disk().unsent[0]?.attempts ?? 0;
  expect(attempts()).toBeGreaterThan(5);
  expect(attempts()).toBeLessThan(10);
  clock.advance(8 * DAY);
  await pass(alarms, QUARANTINED);
  expect(disk().unsent).toEqual([]);
});

test('if an alarm comes and goes while nothing can be sent, only its last occurrence is sent', async () => {
  const { start, pass, failing, disk } = world();
  const alarms = start();
  failing('webhook');
  for (let n = 0; n < 20; n += 1) {
    await pass(alarms, QUARANTINED);
    await pass(alarms, facts());
  }
  expect(disk().unsent.map(({ state }) => state)).toEqual(['raised', 'over']);
});

test('a channel that was removed from the configuration is no longer used', async () => {
  const { start, pass, failing, disk, sent } = world();
  const first = start(['webhook', 'command']);
  failing('webhook');
  await pass(first, QUARANTINED);
  const second = start(['command']);
  await second.open();
  await pass(second, facts(), 60);
  expect(sent).toEqual(['command: raised quarantine', 'command: over quarantine']);
  expect(disk()).toEqual(EMPTY);
});

test('the alarm about a journal that cannot be written is sent once although it cannot be saved', async () => {
  const { start, pass, sent, breakDisk, disk } = world();
  const alarms = start();
  breakDisk(true);
  await pass(alarms, facts({ journal: 'database or disk is full' }), 5);
  expect(sent).toEqual(['webhook: raised journal']);
  expect(disk()).toEqual(EMPTY);
  breakDisk(false);
  await pass(alarms, facts(), 2);
  expect(sent).toEqual(['webhook: raised journal', 'webhook: over journal']);
});

test('the text is one line of limited length', async () => {
  const { start, pass } = world();
  const alarms = start();
  const reason = `line 3\n\u0000\u001b[31m${'x'.repeat(10_000)}`;
  await pass(alarms, facts({ instruments: [instrument({ quarantined: { runs: 1, path: 'a', reason } })] }));
  const [alarm] = alarms.raised();
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these characters must not get through
  expect(alarm?.text).not.toMatch(/[\u0000-\u001f]/);
  expect(alarm?.text.length).toBeLessThan(1600);
});
