import type { Key } from '../../src/config/secrets.js';
import type { Notebook } from '../../src/deliver/context.js';
import { NotebookError } from '../../src/errors.js';
import { LEASE_MS, MARGIN_MS } from '../../src/fleet/lease.js';
import { type FakeRequest, intercept } from '../support/fake-notebook.js';
import { readFirst } from './fleet-contents.js';
import type { Member, Site } from './fleet-site.js';
import { type Schedule, send, TIMEOUT_MS } from './network.js';
import type { SimulatedProcess } from './timeline.js';

/** The key of the configuration, which every member has. */
export const CONFIGURED = 'configured';

/** The notebook over the network of one member. The key is checked when a request arrives. */
export function connectNotebook(site: Site, member: Member, process: SimulatedProcess, key: Key, schedule: Schedule) {
  const { world, keys, givesKeys } = site;
  const { random, timeline, trace } = world;
  const refuse = (status: number): NotebookError => new NotebookError('auth', `refused: ${status}`, { status });
  const keyApi = {
    async listKeys() {
      const [configured = {}] = await world.notebook.listKeys();
      return [configured, ...[...keys].map(([id, { name }]) => ({ ...configured, id, name }))];
    },
    async createKey({ name }: { name?: string } = {}) {
      if (!givesKeys) throw refuse(403);
      const id = 2 + keys.size + random.below(1_000_000);
      keys.set(id, { name, text: `session ${id}` });
      return `session ${id}`;
    },
    async deleteKey(id: number) {
      if (!keys.delete(id)) throw new NotebookError('conflict', 'not found', { status: 404 });
    },
  };
  const isValid = (text: string): boolean => text === CONFIGURED || [...keys.values()].some((one) => one.text === text);
  const api = intercept<Notebook & typeof keyApi>({ ...world.notebook, ...keyApi }, (request) => {
    const check = request.args.find((arg): arg is () => void => typeof arg === 'function');
    const pauses = choosePauses(site, request);
    const pause = (ms: number, resume: (done: () => void) => void) => {
      trace?.(`${member.name} is paused for ${ms} ms before ${request.operation}`);
      process.pause(ms);
      return new Promise<void>((resolve) => resume(resolve));
    };
    const schedulePaused: Schedule = async (act, isWrite) => {
      if (pauses?.clockMs && !givesKeys) site.database.setClock(pauses.clockMs);
      if (pauses) await pause(pauses.beforeLookMs, (done) => process.at(pauses.beforeLookMs, done));
      return schedule(act, isWrite);
    };
    return schedulePaused(async () => {
      check?.();
      const used = key.current();
      if (pauses) {
        // Only a session key stops a request after any time.
        const ms = used === CONFIGURED ? Math.min(pauses.afterLookMs, MAX_STUCK_MS) : pauses.afterLookMs;
        site.pauses.overAt = Math.max(site.pauses.overAt, timeline.elapsedMs() + ms + 2 * TIMEOUT_MS);
        await pause(ms, (done) => timeline.at(ms, done));
      }
      if (!process.alive()) return new Promise<never>(() => undefined);
      const uploaded = request.operation === 'uploadFile' ? await readFirst(world, request) : request.carryOut;
      const carryOut = async () => {
        if (!isValid(used)) throw refuse(401);
        return uploaded();
      };
      trace?.(`${member.name}, ${used}:`);
      return send({ ...request, carryOut }, world, process, member.notebook.isCut).catch((error: unknown) => {
        if (error instanceof NotebookError && error.failure === 'auth') key.refresh();
        throw error;
      });
    }, request.isWrite);
  });
  return { ...api, close: async () => undefined };
}

/**
 * The leader is paused between its record of a request and its look at the lease, often until that is about to end, and
 * again between that look and the request: when it continues, a successor may have decided about the same run. Meanwhile,
 * the clock of the database may be set ahead: then the lease ends there while the leader still relies on it, so that a
 * successor without keys needs both of its waits.
 */
function choosePauses({ world, database, pauses }: Site, { operation, isWrite }: FakeRequest) {
  const { random, faults } = world;
  if (!isWrite || faults.ofRequests === 0 || pauses.left === 0) return undefined;
  // A file or a comment that is sent twice is seen at once; an experiment may be used by another run.
  const telling = world.withFiles ? ['uploadFile'] : ['postComment', 'createExperiment', 'createFilledExperiment'];
  const isTelling = telling.includes(operation);
  if (!random.chance(isTelling ? 0.7 : 0.05)) return undefined;
  pauses.left -= 1;
  const untilLast = Math.max(0, database.leaseLeftMs() - MARGIN_MS - 100 - random.below(2000));
  return {
    beforeLookMs: random.chance(0.7) ? untilLast : random.below(45_000),
    afterLookMs: random.below(60_000),
    clockMs: random.chance(0.5) ? LEASE_MS + random.below(LEASE_MS) : 0,
  };
}

/**
 * What docs/fleet.md promises without keys: a request that takes effect within the grace period after the last look at the
 * lease, which is at least 15 s, does no harm. Here, a late one takes up to two time-outs.
 */
const MAX_STUCK_MS = LEASE_MS - 2 * TIMEOUT_MS;
