import { DatabaseSync, type StatementSyncInstance } from '@photostructure/sqlite';
import { migrate } from '../../src/journal/database.js';

type Recorded = () => unknown;

/**
 * An in-memory journal database that is reused for each history. Opening it, creating its tables and compiling the
 * statements of every process costs ten times as much as a history itself.
 *
 * It records what each transaction did, so that the last ones can be undone as by a power failure.
 */
export class ReusableDatabase extends DatabaseSync {
  readonly #statements = new Map<string, StatementSyncInstance>();
  readonly #emptying: readonly StatementSyncInstance[];
  #transactions: Recorded[][] = [];
  #open: Recorded[] | undefined;
  #durable = 0;

  constructor() {
    super(':memory:');
    migrate(this, ':memory:');
    const rows = this.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all();
    const tables = (rows as { name: string }[]).map(({ name }) => name);
    // Tables that refer to others were created after them, and are emptied first.
    this.#emptying = tables.reverse().map((name) => super.prepare(`DELETE FROM ${name}`));
  }

  override prepare(sql: string): StatementSyncInstance {
    const known = this.#statements.get(sql);
    if (known) return known;
    const compiled = super.prepare(sql);
    const statement = /^\s*(SELECT|PRAGMA)\b/.test(sql) ? compiled : this.#recorded(compiled, sql.trimStart());
    this.#statements.set(sql, statement);
    return statement;
  }

  /** Resets it to empty tables. */
  empty(): void {
    for (const statement of this.#emptying) statement.run();
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
    for (const statement of this.#emptying) statement.run();
    super.exec('BEGIN');
    for (const repeat of survivors.flat()) repeat();
    super.exec('COMMIT');
    this.#transactions = survivors;
    this.#durable = survivors.length;
  }

  #recorded(statement: StatementSyncInstance, sql: string): StatementSyncInstance {
    const call = <R>(method: (...args: never[]) => R, args: readonly unknown[]): R => {
      const repeat = (): R => Reflect.apply(method, statement, args);
      const result = repeat();
      this.#note(sql, repeat);
      return result;
    };
    return {
      run: (...args: unknown[]) => call(statement.run, args),
      get: (...args: unknown[]) => call(statement.get, args),
      all: (...args: unknown[]) => call(statement.all, args),
    } as unknown as StatementSyncInstance;
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
