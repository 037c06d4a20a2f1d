import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createGate } from '../../src/deliver/gate.js';
import { StoppedError } from '../../src/deliver/interruptions.js';
import { NotebookError } from '../../src/errors.js';
import { manualClock } from '../support/manual-clock.js';
import { silentLog } from '../support/silent-log.js';

function setUp(perSecond: number) {
  const clock = manualClock();
  const gate = createGate({ perSecond, clock, log: silentLog(), random: () => 1 });
  const sentAt: number[] = [];
  const send = (): Promise<void> =>
    gate.admit(async () => {
      sentAt.push(clock.monotonic());
    });
  return { clock, gate, sentAt, send };
}

test('the ceiling is never passed in any second, and is used', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 60 }),
      fc.integer({ min: 1, max: 200 }),
      async (perSecond, requests) => {
        const { sentAt, send } = setUp(perSecond);
        await Promise.all(Array.from({ length: requests }, send));
        for (const [index, at] of sentAt.entries()) {
          expect((sentAt[index + perSecond] ?? Number.POSITIVE_INFINITY) - at).toBeGreaterThan(1000);
        }
        const neededMs = (requests / perSecond) * 1000;
        expect(sentAt.at(-1)).toBeLessThanOrEqual(neededMs / 0.9);
      },
    ),
    { numRuns: 30 },
  );
});

test('a ceiling below one a second spaces the requests out', async () => {
  const { sentAt, send } = setUp(6 / 60);
  await Promise.all([send(), send(), send()]);
  expect(sentAt[1]).toBeGreaterThanOrEqual(10_000);
  expect(sentAt[2]).toBeGreaterThanOrEqual(20_000);
});

test('Retry-After of one request holds all others, and one probe goes first', async () => {
  const { clock, gate, sentAt, send } = setUp(1000);
  const busy = new NotebookError('rate', 'slow down', { status: 429, lost: false, retryAfterMs: 30_000 });
  await expect(gate.admit(() => Promise.reject(busy))).rejects.toBe(busy);
  let answerProbe: () => void = () => undefined;
  const probe = gate.admit(
    () =>
      new Promise<void>((resolve) => {
        sentAt.push(clock.monotonic());
        answerProbe = resolve;
      }),
  );
  const others = [send(), send(), send()];
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(sentAt).toHaveLength(1);
  expect(sentAt[0]).toBeGreaterThanOrEqual(30_000);
  answerProbe();
  await Promise.all([probe, ...others]);
  expect(sentAt).toHaveLength(4);
});

test('waits grow while the notebook stays away, and start small again after it was back', async () => {
  const { clock, gate } = setUp(1000);
  const away = new NotebookError('server', 'connection refused', { lost: false });
  const waits: number[] = [];
  for (let attempt = 0; attempt < 12; attempt++) {
    const before = clock.monotonic();
    await gate.admit(() => Promise.reject(away)).catch(() => undefined);
    waits.push(clock.monotonic() - before);
  }
  expect(waits.slice(0, 4)).toEqual([0, 1000, 2000, 4000]);
  expect(Math.max(...waits)).toBe(5 * 60_000);
  await gate.admit(async () => undefined);
  await gate.admit(() => Promise.reject(away)).catch(() => undefined);
  const before = clock.monotonic();
  await gate.admit(async () => undefined);
  expect(clock.monotonic() - before).toBe(1000);
});

test('a refusal that concerns one run stops nobody else', async () => {
  const { clock, gate, send } = setUp(1000);
  const refused = new NotebookError('request', 'bad date', { status: 422, lost: false });
  await gate.admit(() => Promise.reject(refused)).catch(() => undefined);
  await send();
  expect(clock.monotonic()).toBe(0);
});

test('who waits at the gate is turned away when it closes for good, without having sent anything', async () => {
  const { gate, sentAt, send } = setUp(1);
  await send();
  const waiting = send();
  gate.stop();
  await expect(waiting).rejects.toBeInstanceOf(StoppedError);
  await expect(send()).rejects.toBeInstanceOf(StoppedError);
  expect(sentAt).toHaveLength(1);
});
