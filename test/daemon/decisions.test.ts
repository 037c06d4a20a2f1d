import { expect, test } from 'vitest';
import { createDecisions } from '../../src/daemon/works.js';
import type { Decision } from '../../src/journal/inbox.js';
import { silentLog } from '../support/silent-log.js';
import { simulatedClock } from '../support/simulated-clock.js';

/** A daemon's ear for requests, with a clock of its own and an inbox that the test fills. */
function setUp() {
  const clock = simulatedClock();
  const inbox: { at: number; decision: Decision }[] = [];
  const noticed: number[] = [];
  const did: unknown[] = [];
  let isBroken = false;
  const decisions = createDecisions({
    inbox: {
      async apply() {
        if (isBroken) throw new Error('disk full');
        const asked = inbox.splice(0);
        noticed.push(...asked.map(({ at }) => clock.monotonic() - at));
        return asked.map(({ decision }) => decision);
      },
    },
    clock,
    log: silentLog(),
    ring: () => did.push('ring'),
    rescan: (instrument, isForOld) => did.push({ instrument, isForOld }),
  });
  return {
    clock,
    decisions,
    noticed,
    did,
    ask: (decision: Decision) => inbox.push({ at: clock.monotonic(), decision }),
    broken(value: boolean) {
      isBroken = value;
    },
  };
}

const retried: Decision = { done: true, text: 'goes on', request: { kind: 'retry', run: 1 } };

test('whenever a person asks, the daemon notices within a second', async () => {
  const { clock, decisions, noticed, ask } = setUp();
  decisions.start();
  const times = [0, 1, 250, 499, 500, 501, 1234, 60_000];
  await clock.run(
    (async () => {
      for (const time of times) {
        await clock.sleep(time);
        ask(retried);
      }
      await clock.sleep(2000);
    })(),
  );
  await decisions.stop();
  expect(noticed).toHaveLength(times.length);
  expect(Math.max(...noticed)).toBeLessThan(1000);
});

test('what was decided sets deliveries going, and the folder looked through once, old files apart from new', async () => {
  const { clock, decisions, did, ask } = setUp();
  ask({ ...retried, rescan: 'balance' });
  ask({ ...retried, rescan: 'balance' });
  const request = { kind: 'backfill', instrument: 'logger', existing: 'ingest' } as const;
  ask({ done: true, text: 'taken', rescan: 'logger', request });
  decisions.start();
  await clock.run(clock.sleep(100));
  await decisions.stop();
  expect(did).toEqual([
    'ring',
    { instrument: 'balance', isForOld: false },
    { instrument: 'logger', isForOld: true },
  ]);
});

test('what was refused sets nothing going', async () => {
  const { clock, decisions, did, ask } = setUp();
  ask({ done: false, text: 'there is no run 7', request: { kind: 'retry', run: 7 } });
  decisions.start();
  await clock.run(clock.sleep(100));
  await decisions.stop();
  expect(did).toEqual([]);
});

test('a journal that cannot be written for a while keeps nobody waiting for good', async () => {
  const { clock, decisions, noticed, ask, broken } = setUp();
  broken(true);
  decisions.start();
  await clock.run(clock.sleep(60_000));
  broken(false);
  ask(retried);
  await clock.run(clock.sleep(10_000));
  await decisions.stop();
  expect(noticed).toHaveLength(1);
});
