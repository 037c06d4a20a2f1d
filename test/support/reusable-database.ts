import { DatabaseSync, type StatementSyncInstance } from '@photostructure/sqlite';
import { migrate } from '../../src/journal/database.js';

type Recorded = () => unknown;

const NO_CHANGES = { changes: 0 };

const IS_SELECT = /^SELECT\b/;
const IS_TRANSACTION = /^(BEGIN|COMMIT|SAVEPOINT|RELEASE|ROLLBACK)\b/;
const CHANGED_TABLE = /^(?:INSERT(?: OR \w+)? INTO|UPDATE|DELETE FROM)\s+(\w+)/;

/**
 * An in-memory journal database that is reused for each history. Opening it, creating its tables and compiling the
 * statements of every process costs ten times as much as a history itself.
 *
 * It records what each transaction did, so that the last ones can be undone as by a power failure. It also remembers
 * what a query returned until one of its tables changes: nobody else writes to it, and most queries are repeated.
 */
export class ReusableDatabase extends DatabaseSync {
  readonly #statements = new Map<string, StatementSyncInstance>();
  readonly #emptying: ReadonlyMap<string, StatementSyncInstance>;
  /** The tables that may have rows. */
  readonly #filled = new Set<string>();
  #tables: readonly string[] = [];
  /** How often each table was changed. */
  readonly #changes = new Map<string, number>();
  #transactions: Recorded[][] = [];
  #open: Recorded[] | undefined;
  #durable = 0;

  constructor() {
    super(':memory:');
    migrate(this, ':memory:');
    const rows = this.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all();
    // Tables that refer to others were created after them, and are emptied first.
    this.#tables = (rows as { name: string }[]).map(({ name }) => name).reverse();
    this.#emptying = new Map(this.#tables.map((name) => [name, super.prepare(`DELETE FROM ${name}`)]));
  }

  override prepare(sql: string): StatementSyncInstance {
    const known = this.#statements.get(sql);
    if (known) return known;
    const statement = this.#wrap(super.prepare(sql), sql.trimStart());
    this.#statements.set(sql, statement);
    return statement;
  }

  override exec(sql: string): void {
    super.exec(sql);
    this.#changed();
  }

  /** Resets it to empty tables. */
  empty(): void {
    this.#emptyTables();
    this.#changed();
    this.#filled.clear();
    this.#transactions = [];
    this.#durable = 0;
  }

  /** How many transactions were written. */
  written(): number {
    return this.#transactions.length;
  }

  /** The first transactions, this many, are on disk. */
  synced(transactions: number): void {
    this.#durable = Math.max(this.#durable, transactions);
  }

  /** A power failure: everything after the last completed sync may be lost, and `kept` of it at least is not. */
  lose(kept: (unsynced: number) => number): void {
    const written = this.#transactions;
    const survivors = written.slice(0, this.#durable + kept(written.length - this.#durable));
    super.exec('BEGIN');
    this.#emptyTables();
    for (const repeat of survivors.flat()) repeat();
    super.exec('COMMIT');
    this.#changed();
    this.#transactions = survivors;
    this.#durable = survivors.length;
  }

  #wrap(compiled: StatementSyncInstance, sql: string): StatementSyncInstance {
    if (IS_SELECT.test(sql)) return this.#remembered(compiled, sql);
    if (sql.startsWith('PRAGMA')) return compiled;
    const changed = this.#changedBy(sql);
    // Reporting the number of changes costs more than the start or end of a transaction.
    const begin = (): object => compiled.get() ?? NO_CHANGES;
    const run: () => object = IS_TRANSACTION.test(sql) ? begin : compiled.run;
    const record = <R>(method: (...args: never[]) => R) => {
      return (...args: unknown[]): R => {
        const repeat = (): R => Reflect.apply(method, compiled, args);
        this.#changed(changed);
        const result = repeat();
        this.#note(sql, repeat);
        return result;
      };
    };
    const recorded = { run: record(run), get: record(compiled.get), all: record(compiled.all) };
    return recorded as unknown as StatementSyncInstance;
  }

  /** Runs a query only if one of its tables has changed since it was last run with the same values. */
  #remembered(query: StatementSyncInstance, sql: string): StatementSyncInstance {
    const tables = this.#tables.filter((name) => new RegExp(`\\b${name}\\b`).test(sql));
    if (tables.length === 0) return query;
    const remember = <R>(method: (...args: never[]) => R) => {
      const results = new Map<string, R>();
      let changes = -1;
      return (...args: unknown[]): R => {
        let now = 0;
        for (const name of tables) now += this.#changes.get(name) ?? 0;
        if (now !== changes) results.clear();
        changes = now;
        const key = args.join('\n');
        if (!results.has(key)) results.set(key, Reflect.apply(method, query, args));
        return results.get(key) as R;
      };
    };
    return { get: remember(query.get), all: remember(query.all) } as unknown as StatementSyncInstance;
  }

  /** Triggers count the runs in other tables, and a run is removed together with all that refers to it. */
  #changedBy(sql: string): readonly string[] {
    if (IS_TRANSACTION.test(sql)) return sql.startsWith('ROLLBACK') ? this.#tables : [];
    const table = CHANGED_TABLE.exec(sql)?.[1];
    if (table === undefined || (table === 'runs' && /^DELETE|\bREPLACE\b/.test(sql))) return this.#tables;
    return table === 'runs' ? ['runs', 'tallies', 'hours'] : [table];
  }

  #changed(tables = this.#tables): void {
    for (const name of tables) {
      this.#changes.set(name, (this.#changes.get(name) ?? 0) + 1);
      this.#filled.add(name);
    }
  }

  /** Replaces it by a copy from when it had this many transactions. */
  rewind(transactions: number): void {
    this.#durable = 0;
    this.#transactions.length = Math.min(transactions, this.#transactions.length);
    this.lose((unsynced) => unsynced);
  }

  #emptyTables(): void {
    for (const [name, statement] of this.#emptying) if (this.#filled.has(name)) statement.run();
  }

  #note(sql: string, repeat: Recorded): void {
    if (sql.startsWith('BEGIN')) this.#open = [];
    else if (sql === 'COMMIT') {
      if (this.#open) this.#transactions.push(this.#open);
      this.#open = undefined;
    } else if (sql === 'ROLLBACK') this.#open = undefined;
    else if (this.#open) this.#open.push(repeat);
    else this.#transactions.push([repeat]);
  }
}
