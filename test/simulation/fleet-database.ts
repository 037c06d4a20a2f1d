import type { Change } from '../../src/fleet/changes.js';
import type { Postgres } from '../../src/fleet/database.js';
import { FLEET_STEPS, type Tables } from '../../src/fleet/tables.js';
import type { FleetState } from '../../src/journal/forwards.js';
import { MIGRATIONS } from '../../src/journal/migrations.js';
import { createContents, isLock, type Result, type Statement, type Transaction } from './fleet-contents.js';
import { createMembers } from './fleet-members.js';
import { type SimulatedProcess, START } from './timeline.js';
import type { World } from './world.js';

/** The way from one process to the database. */
export interface Link {
  isCut: boolean;
}

/**
 * The database of a fleet in memory: what each statement of src/fleet does, one at a time, each with its commit. A statement
 * that it does not know is an error, so that a changed one is changed here, too. Calls are delayed, and their answers
 * lost; a call whose client has given up may still be carried out.
 */
export interface SimulatedDatabase {
  open(process: SimulatedProcess, link: Link): Postgres;
  /** Calls under way fail, and others for this time. Commits stay. `aheadMs`: its clock changes by this much, as after a failover. */
  restart(downMs: number, aheadMs: number): void;
  /** Somebody sets its clock. */
  setClock(byMs: number): void;
  /** How many operations of members were not applied yet. */
  waiting(): number;
  /** Until the lease ends by its clock. */
  leaseLeftMs(): number;
  /** Whether the leader has begun to send. */
  isSending(): boolean;
  /** A statement that it was asked to carry out, and does not know. */
  unknown(): string | undefined;
  /** How often the lease was taken. */
  epoch(): number;
  /** How far its clock is ahead. */
  aheadMs(): number;
  /** No more faults. */
  calm(): void;
}

/** An operation of a member, and the contents that it needs. */
interface Sent {
  readonly operation: unknown;
  readonly contents: readonly string[];
}

type Cell = string | number | null;
type Row = Record<string, Cell>;

interface State {
  epoch: number;
  seq: number;
  mark: string;
  leader: number | null;
  until: number;
  sender: number | null;
  notebook: string | null;
  session_key: number | null;
}

type Values = readonly unknown[];

const NOTHING: Result = { rows: [] };
const one = (row: object): Result => ({ rows: [row] });
const changed = (count: number): Result => ({ rows: [], count });

class DatabaseError extends Error {
  readonly code: string;
  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

/** `known`: the numbers of statements by their texts, which are the same in every history. */
export function createDatabase(
  fleet: string,
  tables: Tables,
  known: Map<string, number>,
  { timeline, random, trace, withFiles }: Pick<World, 'timeline' | 'random' | 'trace' | 'withFiles'>,
  /** How many of the notifications about changes arrive, until nothing more goes wrong. */
  notified: number,
): SimulatedDatabase {
  const state: State = {
    ...{ epoch: 0, seq: 0, mark: '', leader: null, until: Number.NEGATIVE_INFINITY },
    ...{ sender: null, notebook: null, session_key: null },
  };
  const operations = new Map<number, Map<number, Sent>>();
  const contents = createContents(timeline, () => starts);
  const changes = new Map<number, { changes: readonly Change[]; mark: string; previous: string }>();
  const rows = new Map([...tables.keys()].map((name) => [name, new Map<string, Row>()]));
  const shipped = { runs: new Map<string, number>(), origins: new Map<string, number>() };
  const listeners = new Set<(payload: string) => void>();
  const { members, statements: reports } = createMembers({
    now: () => now(),
    leader: () => (state.until > now() ? state.leader : null),
    waiting: (member) => operations.get(member)?.size ?? 0,
    failures: (member) => [...table('failures').values()].filter((one) => one['member'] === member).length,
  });
  let aheadMs = 0;
  let isUp = true;
  let starts = 0;
  let isCalm = false;
  let unknown: string | undefined;
  let senderEpoch = 0;
  const now = (): number => START + timeline.elapsedMs() + aheadMs;
  const table = (name: string): Map<string, Row> => rows.get(name) ?? new Map();
  const keyOf = (name: string, cells: Readonly<Row>): string =>
    (tables.get(name)?.key ?? []).map((column) => cells[column]).join('\n');

  function notify(payload: string): Result {
    for (const listener of listeners) listener(payload);
    return NOTHING;
  }

  function apply(change: Change, seq: number): void {
    const at = table(change.t);
    const key = keyOf(change.t, change.o === 'i' ? change.v : change.k);
    if (change.o === 'd') at.delete(key);
    else if (change.o === 'u' && !at.has(key)) return;
    else if (change.o === 'i' && at.has(key)) throw new DatabaseError('23505', `${change.t} has ${key} already`);
    else at.set(key, { ...at.get(key), ...change.v });
    if (change.t === 'runs' || change.t === 'origins') shipped[change.t].set(key, seq);
  }

  function checkUnique(): void {
    for (const columns of [['reference'], ['server', 'experiment'], ['instrument', 'sha256', 'copy', 'refiling']]) {
      const seen = new Set<string>();
      for (const run of table('runs').values()) {
        const cells = columns.map((column) => run[column]);
        if (cells.includes(null)) continue;
        if (seen.has(cells.join('\n'))) throw new DatabaseError('23505', `two runs have ${cells.join(', ')}`);
        seen.add(cells.join('\n'));
      }
    }
  }

  /** As the function in src/fleet/tables.ts. */
  function ship(epoch: number, seq: number, previous: string, mark: string, text: string): Result {
    if (state.epoch !== epoch) throw new DatabaseError('LF001', `epoch ${epoch} is over`);
    if (seq === state.seq && mark === state.mark) return NOTHING;
    if (seq !== state.seq + 1 || previous !== state.mark)
      throw new DatabaseError('LF002', `shipment ${seq} does not follow ${state.seq}`);
    const sent = JSON.parse(text) as Change[];
    for (const change of sent) apply(change, seq);
    if (sent.some(({ t }) => t === 'runs')) checkUnique();
    Object.assign(state, { seq, mark });
    changes.set(seq, { changes: sent, mark, previous });
    return notify('changes');
  }

  function take(member: number, leaseMs: number): Result {
    if (!(state.until < now() || state.leader === member)) return NOTHING;
    const { sender, notebook, session_key } = state;
    Object.assign(state, { epoch: state.epoch + 1, leader: member, until: now() + leaseMs });
    trace?.(`member ${member} takes the lease of epoch ${state.epoch}`);
    return one({ epoch: state.epoch, seq: state.seq, sender, notebook, session_key, now: now() });
  }

  const during = (epoch: unknown, act: () => void): Result => {
    if (state.epoch !== epoch) return changed(0);
    act();
    return changed(1);
  };

  function release(epoch: unknown, member: unknown): void {
    state.until = Number.NEGATIVE_INFINITY;
    if (member === undefined) return;
    state.leader = null;
    if (state.sender !== member) return;
    Object.assign(state, { sender: null, session_key: null });
    trace?.(`member ${member} gives epoch ${epoch} back`);
  }

  function insertOperations(
    member: number,
    numbers: readonly number[],
    texts: readonly string[],
    needed: readonly string[],
  ): Result {
    const own = operations.get(member) ?? new Map<number, Sent>();
    operations.set(member, own);
    for (const [n, number] of numbers.entries())
      if (!own.has(number))
        own.set(number, { operation: JSON.parse(texts[n] ?? ''), contents: JSON.parse(needed[n] ?? '[]') });
    return NOTHING;
  }

  const inOrder = (member: number): number[] => [...(operations.get(member)?.keys() ?? [])].sort((a, b) => a - b);

  function listOperations(ofEach: number): Result {
    const sent = members.flatMap(({ id, name }) =>
      inOrder(id)
        .slice(0, ofEach)
        .map((number) => ({ member: id, name, number, operation: operations.get(id)?.get(number)?.operation })),
    );
    return { rows: sent.sort((a, b) => a.number - b.number || a.member - b.member) };
  }

  /** `place`: how the paths of its files begin in the fleet. */
  function statesOf(member: number, from: number, place: string): Result {
    const found = [...table('origins').values()].filter((origin) => {
      const at = shipped.origins.get(keyOf('origins', origin)) ?? 0;
      return origin['member'] === member && (at > from || (shipped.runs.get(String(origin['filed'])) ?? 0) > from);
    });
    const states = found.flatMap(({ run, filed }) => {
      const { sha256, step, parked, failure, reason, server, experiment, mapping, path } =
        table('runs').get(String(filed)) ?? {};
      if (path === undefined) return [];
      const row = { sha256, step, parked, failure, reason, server, experiment, mapping };
      const asked = String(table('remaps').get(String(filed))?.['path'] ?? '');
      const remap = asked.startsWith(place) ? asked.slice(place.length) : null;
      return { ...row, own: run, isErased: path === '', remap } as FleetState;
    });
    return { rows: states.sort((a, b) => a.own - b.own) };
  }

  /** The number of the last operation of a member. */
  function lastOf(member: number): number | null {
    const received = table('received').get(String(member))?.['number'];
    const numbers = [...inOrder(member), ...(typeof received === 'number' ? [received] : [])];
    return numbers.length === 0 ? null : Math.max(...numbers);
  }

  const STATEMENTS: readonly Statement[] = [
    ['WITH before AS (SELECT * FROM labfeed.fleet', ([member, ms]) => take(member as number, ms as number)],
    [
      'UPDATE labfeed.fleet SET until = clock_timestamp()',
      ([epoch, ms]) =>
        during(epoch, () => {
          state.until = now() + (ms as number);
        }),
    ],
    [
      'UPDATE labfeed.fleet SET sender = $2',
      ([epoch, sender, notebook, session_key]) =>
        during(epoch, () => {
          Object.assign(state, { sender, notebook, session_key });
          senderEpoch = state.epoch;
        }),
    ],
    ["UPDATE labfeed.fleet SET until = '-infinity'", ([epoch, member]) => during(epoch, () => release(epoch, member))],
    ["SELECT pg_notify('labfeed', 'lease')", () => notify('lease')],
    ["SELECT pg_notify('labfeed', 'operations')", () => notify('operations')],
    [
      'SELECT seq, changes, mark, previous FROM labfeed.changes WHERE seq > $1 ORDER BY seq LIMIT $2',
      ([from, limit]) => {
        const later = [...changes].filter(([seq]) => seq > (from as number)).slice(0, limit as number);
        return { rows: later.map(([seq, sent]) => ({ seq, ...sent })) };
      },
    ],
    ['SELECT seq FROM labfeed.fleet', () => one({ seq: state.seq })],
    ['SELECT seq, mark FROM labfeed.fleet', () => one({ seq: state.seq, mark: state.mark })],
    ['SELECT 1 FROM labfeed.changes WHERE seq = $1', ([seq]) => (changes.has(seq as number) ? one({}) : NOTHING)],
    [
      'SELECT labfeed.ship($1, $2, $3, $4, $5)',
      ([epoch, seq, ...sent]) => ship(epoch as number, seq as number, ...(sent as [string, string, string])),
    ],
    [
      'SELECT 1 FROM labfeed.members WHERE instance = $1',
      ([instance, last]) => {
        const known = members.find((member) => member.instance === instance);
        const has = known && lastOf(known.id);
        return typeof has === 'number' && (last === 0 || (last as number) < has) ? one({}) : NOTHING;
      },
    ],
    [
      'SELECT id FROM labfeed.members WHERE id = $1 AND instance = $2',
      ([id, instance]) => ({ rows: members.filter((member) => member.id === id && member.instance === instance) }),
    ],
    [
      'SELECT instance, seq, greatest(',
      ([id]) => {
        const instance = members.find((member) => member.id === id)?.instance ?? null;
        return one({ instance, seq: state.seq, last: lastOf(id as number) });
      },
    ],
    [
      'INSERT INTO labfeed.operations',
      ([member, numbers, texts, needed]) =>
        insertOperations(member as number, numbers as number[], texts as string[], needed as string[]),
    ],
    [
      'SELECT shipped, origins.run AS own',
      ([member, from, , , place]) => statesOf(member as number, from as number, place as string),
    ],
    [
      'SELECT answer FROM labfeed.answers',
      ([member, number]) => {
        const answer = table('answers').get(`${member}\n${number}`)?.['answer'];
        return typeof answer === 'string' ? one({ answer }) : NOTHING;
      },
    ],
    ...reports,
    [LISTS_OPERATIONS, () => listOperations(20)],
    [
      'DELETE FROM labfeed.operations WHERE member = $1 AND number <= $2',
      ([member, last]) => {
        const own = operations.get(member as number);
        for (const number of inOrder(member as number)) if (number <= (last as number)) own?.delete(number);
        return NOTHING;
      },
    ],
    [
      'DELETE FROM labfeed.changes',
      () => {
        changes.clear();
        return NOTHING;
      },
    ],
    ...contents.statements,
    [
      'SELECT DISTINCT unnest(contents)',
      ([wanted]) => {
        const needed = [...operations.values()].flatMap((own) => [...own.values()].flatMap((sent) => sent.contents));
        return { rows: needed.filter((sha256) => (wanted as string[]).includes(sha256)).map((sha256) => ({ sha256 })) };
      },
    ],
    ['SELECT pg_advisory_xact_lock', () => NOTHING],
    ['CREATE SCHEMA IF NOT EXISTS labfeed', () => NOTHING],
    ['SELECT version FROM labfeed.version', () => one({ version: FLEET_STEPS.length })],
    ['UPDATE labfeed.version', () => NOTHING],
    ['SELECT id, journal FROM labfeed.fleet', () => one({ id: fleet, journal: MIGRATIONS.length })],
    ['SELECT epoch, seq, mark, journal FROM labfeed.fleet', () => one({ ...state, journal: MIGRATIONS.length })],
  ];
  function execute(text: string, values: Values): Result {
    const index =
      known.get(text) ?? STATEMENTS.findIndex(([begin]) => text.replace(/\s+/g, ' ').trim().startsWith(begin));
    known.set(text, index);
    const act = STATEMENTS[index]?.[1];
    unknown ??= act ? undefined : text;
    if (!act) throw new TypeError(`the simulated database does not know this statement: ${text}`);
    return act(values);
  }

  /** What it reads of tables is of one moment. What it writes is left for the commit. */
  function openTransaction(process: SimulatedProcess, begin: string) {
    const transaction: Transaction = { process, starts, at: timeline.elapsedMs(), isCommitting: false, isOver: false };
    const writes: (() => void)[] = [];
    const seen = begin.includes('REPEATABLE READ')
      ? new Map([...rows].map(([name, all]) => [name, [...all.values()]]))
      : undefined;
    const fleetThen = execute('SELECT epoch, seq, mark, journal FROM labfeed.fleet', []);
    let reading: Result = NOTHING;
    return {
      transaction,
      writes,
      async query(statement: string | { readonly text: string }, values: Values = []): Promise<Result> {
        const text = typeof statement === 'string' ? statement : statement.text;
        if (text.startsWith('FETCH')) return reading;
        if (text === 'CLOSE loading') return NOTHING;
        if (text.startsWith('DECLARE loading CURSOR FOR SELECT')) {
          const name = text.slice(text.lastIndexOf('.') + 1);
          reading = { rows: (seen?.get(name) ?? []).map((row) => cellsOf(row, name)) };
          return NOTHING;
        }
        if (isLock(text, values)) await contents.lock(transaction);
        if (/^(INSERT|DELETE|SELECT pg_notify)/.test(text)) writes.push(() => execute(text, values));
        if (writes.length > 0) return NOTHING;
        if (text.startsWith('SELECT epoch, seq, mark, journal')) return fleetThen;
        const result = execute(text, values);
        return { ...result, rowCount: result.rows.length };
      },
    };
  }

  function cellsOf(row: Row, name: string): unknown[] {
    const { columns = [], blobs } = tables.get(name) ?? {};
    return columns.map((column) => {
      const cell = row[column] ?? null;
      return blobs?.has(column) && typeof cell === 'string' ? Buffer.from(cell.slice(2), 'hex') : cell;
    });
  }

  /** One call: on its way, carried out, and answered, unless something goes wrong in between. */
  function call<T>(process: SimulatedProcess, link: Link, act: () => T): Promise<T> {
    const isAway = (): boolean => !isUp || link.isCut;
    return new Promise((resolve, reject) => {
      const fail = (delayMs: number, code: string): void =>
        void process.at(delayMs, () => reject(new DatabaseError(code, 'the database is away')));
      if (isAway()) return fail(isUp && random.chance(0.5) ? CONNECT_MS : 1, 'ECONNREFUSED');
      const before = starts;
      const isSlow = !isCalm && random.chance(0.01);
      const travelMs = 1 + (isSlow ? random.below(2 * QUERY_MS) : random.below(4));
      if (travelMs > QUERY_MS) fail(QUERY_MS, 'ETIMEDOUT');
      timeline.at(travelMs, () => {
        if (starts !== before || !isUp) return fail(0, '57P01');
        // What was sent before the cut arrives, unless it was lost.
        if (link.isCut && random.chance(0.7)) return fail(QUERY_MS, 'ETIMEDOUT');
        const isLost = link.isCut || (!isCalm && random.chance(0.01));
        try {
          const result = act();
          if (isLost) return fail(random.chance(0.5) ? 1 : QUERY_MS, 'ECONNRESET');
          const respond = (): void => (starts === before ? resolve(result) : fail(0, '57P01'));
          return isCalm ? process.soon(respond) : void process.at(random.below(3), respond);
        } catch (error) {
          return void process.at(random.below(3), () => reject(error));
        }
      });
    });
  }

  return {
    open(process, link) {
      const query = (text: string, values: Values = []): Promise<Result> => {
        const answer = call(process, link, () => execute(text, values));
        if (!withFiles || !text.trimStart().startsWith(LISTS_OPERATIONS) || random.chance(0.5)) return answer;
        // Meanwhile, contents that the operations need may no longer be needed by any run.
        const ms = random.below(3000);
        return answer.then((result) => new Promise((resolve) => process.at(ms, () => resolve(result))));
      };
      const listening = new Set<(payload: string) => void>();
      const opened = {
        trouble: undefined,
        rows: async (text: string, values?: Values) => (await query(text, values)).rows,
        row: async (text: string, values?: Values) => (await query(text, values)).rows[0],
        run: async (text: string, values?: Values) => (await query(text, values)).count ?? 0,
        transaction: async <T>(work: (client: object) => Promise<T>, begin = '') => {
          const { transaction, writes, ...client } = await call(process, link, () => openTransaction(process, begin));
          const commit = (): void => {
            if (contents.isLost(transaction)) throw new DatabaseError('25P03', 'the transaction took too long');
            transaction.isOver = true;
            for (const write of writes) write();
          };
          try {
            const result = await work(client);
            transaction.isCommitting = writes.length > 0;
            if (transaction.isCommitting) await call(process, link, commit);
            return result;
          } finally {
            // Otherwise, what it has locked stays so until the commit arrives.
            if (!transaction.isCommitting) transaction.isOver = true;
          }
        },
        listen(wake: (payload: string) => void) {
          const listener = (payload: string): void => {
            // Nobody waits for what standbys do once nothing more goes wrong.
            const share = payload === 'changes' ? (isCalm ? 0.1 : notified) : 0.8;
            if (!link.isCut && random.chance(share)) process.at(1 + random.below(10), () => wake(payload));
          };
          listeners.add(listener);
          listening.add(listener);
          return { close: () => void listeners.delete(listener) };
        },
        hurry: () => undefined,
        close: async () => {
          for (const listener of listening) listeners.delete(listener);
        },
      };
      return opened as unknown as Postgres;
    },
    restart(downMs, byMs) {
      trace?.(`the database restarts, its clock changes by ${byMs} ms`);
      starts += 1;
      isUp = false;
      aheadMs += byMs;
      timeline.at(downMs, () => {
        isUp = true;
      });
    },
    setClock(byMs) {
      trace?.(`the clock of the database is set by ${byMs} ms`);
      aheadMs += byMs;
    },
    waiting: () => [...operations.values()].reduce((sum, own) => sum + own.size, 0),
    leaseLeftMs: () => state.until - now(),
    isSending: () => state.sender !== null && state.sender === state.leader && senderEpoch === state.epoch,
    epoch: () => state.epoch,
    aheadMs: () => aheadMs,
    unknown: () => unknown,
    calm() {
      isCalm = true;
    },
  };
}

const LISTS_OPERATIONS = 'SELECT members.id AS member, name, number, operation';
const CONNECT_MS = 5000;
const QUERY_MS = 20_000;
