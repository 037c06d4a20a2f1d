import type { Notebook } from '../../src/deliver/context.js';
import { NotebookError } from '../../src/errors.js';
import { FAULTS, type FakeRequest, type Fault, intercept, isCreation } from '../support/fake-notebook.js';
import type { SimulatedProcess } from './timeline.js';
import type { Refusal, World } from './world.js';

export const TIMEOUT_MS = 1000;

/** A late request is carried out within this time. The grace period is twice the time-out. */
const MAX_LATE_MS = 2 * TIMEOUT_MS - 50;

/** Late and slow requests are more likely, since they hurt most after a crash. */
const LIKELY: readonly (Fault | 'slow')[] = [
  'unreachable',
  'dropped',
  'lost',
  'late',
  'late',
  'slow',
  'slow',
  'slow',
  'slow',
  'busy',
  'unauthorized',
  'badGateway',
  'failed',
];

export type Schedule = <T>(request: () => Promise<T>, isWrite?: boolean) => Promise<T>;

/** The notebook over a network that delays, loses and refuses requests as the seed decides. */
export function overNetwork(
  world: World,
  schedule: Schedule,
  process: SimulatedProcess,
): Notebook & { close(): Promise<void> } {
  world.network.writes = 0;
  const { userid } = world.pc;
  const account = userid === 1 ? world.notebook : world.notebook.as(userid);
  const notebook = intercept<Notebook>(account, (request) => {
    const check = request.args.find((arg): arg is () => void => typeof arg === 'function');
    return schedule(async () => {
      check?.();
      // A dead process sends nothing.
      return process.alive() ? send(request, world, process) : new Promise<never>(() => undefined);
    }, request.isWrite);
  });
  return { ...notebook, close: async () => undefined };
}

/** `isCut`: no request gets to the server. */
export function send(request: FakeRequest, world: World, process: SimulatedProcess, isCut = false) {
  const { operation, args, isWrite, carryOut } = request;
  const { random, faults, network, trace, timeline } = world;
  const refusal = refusalOf(request, world);
  const chosen = random.chance(faults.ofRequests) ? LIKELY[random.below(LIKELY.length)] : undefined;
  const fault = isCut ? (['unreachable', 'dropped'] as const)[random.below(2)] : chosen;
  const outcome = refusal?.error.message ?? fault ?? 'answered';
  trace?.(`${world.pc.runs}: ${operation} ${args.map((arg) => JSON.stringify(arg)).join(' ')}: ${outcome}`);
  const travelMs = 1 + random.below(40);
  if (isWrite) network.writes += 1;
  return new Promise<unknown>((resolve, reject) => {
    const respond = (delayMs: number, outcome: Promise<unknown> | NotebookError) =>
      process.at(delayMs, () => {
        if (isWrite) network.writes -= 1;
        if (outcome instanceof NotebookError) reject(outcome);
        else resolve(outcome);
      });
    // The server carries out what has reached it even if the process is dead.
    const arrive = (delayMs: number, then: (result: Promise<unknown>) => void = () => undefined) =>
      timeline.at(delayMs, () => {
        if (isCreation(operation)) skipIds(world);
        const result = carryOut();
        result.catch(() => undefined);
        then(result);
      });
    if (refusal) {
      if (refusal.isDone) arrive(travelMs);
      return respond(refusal.isSilent ? TIMEOUT_MS : travelMs, refusal.error);
    }
    if (fault === undefined) return arrive(travelMs, (result) => respond(1 + random.below(40), result));
    if (fault === 'slow') {
      const slowMs = random.below(MAX_LATE_MS);
      const isInTime = slowMs < TIMEOUT_MS;
      arrive(slowMs, (result) => isInTime && respond(0, result));
      return isInTime ? undefined : respond(TIMEOUT_MS, FAULTS.lost.error(isWrite));
    }
    const error = fault === 'busy' && random.chance(0.5) ? busyFor(random.below(5000)) : FAULTS[fault].error(isWrite);
    const isSilent = fault === 'dropped' || fault === 'lost';
    if (fault === 'late') arrive(random.below(MAX_LATE_MS));
    if (FAULTS[fault].carriedOut !== 'now') return respond(isSilent ? TIMEOUT_MS : travelMs, error);
    return arrive(travelMs, () => respond(isSilent ? TIMEOUT_MS : travelMs, error));
  });
}

function refusalOf(request: FakeRequest, { conditions }: World): Refusal | undefined {
  for (const condition of conditions) {
    const refusal = condition.answer(request);
    if (refusal) return refusal;
  }
  return undefined;
}

const MAX_GAP = 40;

/** A rolled-back creation, or a database sequence after a crash. */
export function skipIds({ events, notebook, trace }: World): void {
  const random = events.get('gaps');
  if (!random?.chance(0.3)) return;
  const count = 1 + random.below(MAX_GAP);
  trace?.(`the server skips ${count} ids`);
  notebook.skipIds(count);
}

const busyFor = (retryAfterMs: number): NotebookError =>
  new NotebookError('rate', 'slow down', { status: 429, retryAfterMs });
