import { DatabaseSync, type StatementSyncInstance } from '@photostructure/sqlite';
import { migrate } from '../../src/journal/database.js';

const NO_CHANGES = { changes: 0 };

/** A change copies whole pages, and rows of a history are few and short. */
export const SMALL_PAGES = 'PRAGMA page_size = 1024';

export const IS_SELECT = /^SELECT\b/;
const IS_TRANSACTION = /^(?:BEGIN|COMMIT|SAVEPOINT|RELEASE)\b/;
/** Triggers that count runs. */
const COUNTS = /^runs_(un|re)?counted$/;
const CHANGED_TABLE = /^(?:INSERT(?: OR \w+)? INTO|UPDATE(?: OR \w+)?|DELETE FROM)\s+(\w+)/;

/** How often a table was changed. */
interface Changes {
  count: number;
}

type Method = (...args: unknown[]) => unknown;

/**
 * Which tables of a database were changed, by statements that pass through it. What a query returned is remembered until
 * one of its tables changes: nobody else writes to a simulated database, and most queries are repeated.
 */
export class TableChanges {
  readonly #changes = new Map<string, Changes>();

  add(table: string): void {
    this.#changes.set(table, { count: 0 });
  }

  /** The names of the tables that a statement changes. Triggers of runs change others; a run is deleted with all that refers to it. */
  tablesOf(sql: string): readonly string[] {
    if (IS_TRANSACTION.test(sql)) return [];
    const table = CHANGED_TABLE.exec(sql)?.[1];
    if (table === undefined || (table === 'runs' && /^DELETE|\bREPLACE\b/.test(sql))) return [...this.#changes.keys()];
    return table === 'runs' ? ['runs', 'tallies', 'hours', 'attachments', 'sources'] : [table];
  }

  /** What notes a change of these tables. */
  noting(tables: readonly string[]): () => void {
    const changes = tables.flatMap((name) => this.#changes.get(name) ?? []);
    return () => {
      for (const one of changes) one.count += 1;
    };
  }

  noteAll(): void {
    for (const one of this.#changes.values()) one.count += 1;
  }

  /** Runs a query only if one of its tables has changed since it was last run with the same values. */
  remember(query: StatementSyncInstance, sql: string): StatementSyncInstance {
    const changes = [...this.#changes].filter(([name]) => new RegExp(`\\b${name}\\b`).test(sql)).map(([, one]) => one);
    if (changes.length === 0) return query;
    const { get, all } = query as unknown as Record<'get' | 'all', Method>;
    return {
      ...{ get: remembering(get.bind(query), changes), all: remembering(all.bind(query), changes) },
      setReturnArrays: (isOn: boolean) => query.setReturnArrays(isOn),
      columns: columnsOf(query),
    } as unknown as StatementSyncInstance;
  }
}

function remembering(read: Method, changes: readonly Changes[]): Method {
  const results = new Map<string, unknown>();
  let readAt = -1;
  return (...args) => {
    let now = 0;
    for (const one of changes) now += one.count;
    if (now !== readAt) results.clear();
    readAt = now;
    const key = args.length === 1 ? String(args[0]) : args.join('\n');
    const known = results.get(key);
    if (known !== undefined || results.has(key)) return known;
    const result = read(...args);
    results.set(key, result);
    return result;
  };
}

/** The tables never change, and every process asks again. */
export function columnsOf(statement: Pick<StatementSyncInstance, 'columns'>): StatementSyncInstance['columns'] {
  let columns: ReturnType<StatementSyncInstance['columns']> | undefined;
  return () => {
    columns ??= statement.columns();
    return columns;
  };
}

/**
 * An in-memory journal database that is reused for each history. Opening it, creating its tables and compiling the
 * statements of every process costs ten times as much as a history itself.
 *
 * A history is one transaction of SQLite, which is rolled back at its end. Each transaction of the journal is a savepoint
 * in it, so that the last ones can be undone as by a power failure.
 */
export class ReusableDatabase extends DatabaseSync {
  readonly #statements = new Map<string, StatementSyncInstance>();
  readonly #changes = new TableChanges();
  readonly #begin: StatementSyncInstance;
  readonly #undo: StatementSyncInstance;
  readonly #release: StatementSyncInstance;
  /** Whether a transaction of the journal is open. */
  #isOpen = false;
  #written = 0;
  #durable = 0;
  /** The first transactions, this many, can no longer be undone. */
  #released = 0;
  #isRewindable = false;
  /** Whether the journal can be written. */
  isWritable = true;

  constructor() {
    super(':memory:');
    super.exec(SMALL_PAGES);
    migrate(this, ':memory:');
    const tables = super.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all();
    for (const { name } of tables as { name: string }[]) this.#changes.add(name);
    this.#begin = super.prepare('SAVEPOINT change');
    this.#undo = super.prepare('ROLLBACK TO change');
    this.#release = super.prepare('RELEASE change');
    super.exec('BEGIN');
  }

  /** Removes what makes large journals fast, and small ones slow: indexes, and, unless `isCounted`, the numbers of runs by state and hour. */
  simplify(isCounted = false): void {
    const parts = super.prepare(
      "SELECT type, name FROM sqlite_schema WHERE type IN ('index', 'trigger') AND sql <> '' AND name <> 'attachments_ready'",
    );
    for (const { type, name } of parts.all() as { type: string; name: string }[])
      if (!(isCounted && COUNTS.test(name))) super.exec(`DROP ${type} ${name}`);
    super.exec('COMMIT; BEGIN');
  }

  override get isTransaction(): boolean {
    return this.#isOpen;
  }

  override prepare(sql: string): StatementSyncInstance {
    const known = this.#statements.get(sql);
    if (known) return known;
    const statement = this.#wrap(sql.trimStart());
    this.#statements.set(sql, statement);
    return statement;
  }

  override exec(sql: string): void {
    super.exec(sql);
    this.#changes.noteAll();
  }

  /** Resets it to empty tables. `isRewindable`: durable transactions can be undone, too, which costs time. */
  empty(isRewindable = false): void {
    super.exec('ROLLBACK');
    super.exec('BEGIN');
    this.#changes.noteAll();
    this.#isOpen = false;
    this.#written = 0;
    this.#durable = 0;
    this.#released = 0;
    this.#isRewindable = isRewindable;
  }

  /** How many transactions were written. */
  written(): number {
    return this.#written;
  }

  /** Whether a power failure would undo nothing. */
  isSynced(): boolean {
    return this.#durable === this.#written;
  }

  /** The first transactions, this many, are on disk. */
  synced(transactions: number): void {
    this.#durable = Math.max(this.#durable, transactions);
    if (this.#isRewindable || this.#durable < this.#written || this.#isOpen) return;
    for (; this.#released < this.#written; this.#released++) this.#release.get();
  }

  /** A power failure: everything after the last completed sync may be lost, and `kept` of it at least is not. */
  lose(kept: (unsynced: number) => number): void {
    this.#undoFrom(this.#durable + kept(this.#written - this.#durable));
  }

  /** Replaces it by a copy from when it had this many transactions. */
  rewind(transactions: number): void {
    this.#undoFrom(Math.min(transactions, this.#written));
  }

  #undoFrom(transactions: number): void {
    if (transactions < this.#released) throw new Error('that transaction can no longer be undone');
    for (; this.#written > transactions; this.#written--) this.#undoLast();
    this.#durable = transactions;
  }

  #undoLast(): void {
    this.#undo.get();
    this.#release.get();
    this.#changes.noteAll();
  }

  #wrap(sql: string): StatementSyncInstance {
    const run = this.#transaction(sql);
    if (run) return { run, setReturnArrays: () => undefined, columns: () => [] } as unknown as StatementSyncInstance;
    const compiled = super.prepare(sql);
    if (IS_SELECT.test(sql)) return this.#changes.remember(compiled, sql);
    return sql.startsWith('PRAGMA') ? compiled : this.#changing(compiled, sql);
  }

  /** What begins or ends a transaction of the journal; undefined for other statements. */
  #transaction(sql: string): (() => unknown) | undefined {
    switch (sql) {
      case 'BEGIN':
      case 'BEGIN IMMEDIATE':
        return () => {
          if (!this.isWritable) throw new Error('attempt to write a readonly database');
          this.#begin.get();
          this.#isOpen = true;
          return NO_CHANGES;
        };
      case 'COMMIT':
        return () => {
          this.#isOpen = false;
          this.#written += 1;
          return NO_CHANGES;
        };
      case 'ROLLBACK':
        return () => {
          this.#isOpen = false;
          this.#undoLast();
          return NO_CHANGES;
        };
      default:
        return undefined;
    }
  }

  /** A write, which is a transaction of its own unless one is open. */
  #changing(compiled: StatementSyncInstance, sql: string): StatementSyncInstance {
    const noteChange = this.#changes.noting(this.#changes.tablesOf(sql));
    const change =
      (method: Method): Method =>
      (...args) => {
        if (!this.#isOpen) this.#begin.get();
        noteChange();
        const result = Reflect.apply(method, compiled, args);
        if (!this.#isOpen) this.#written += 1;
        return result;
      };
    const { run, get, all } = compiled as unknown as Record<'run' | 'get' | 'all', Method>;
    return {
      ...{ run: change(run), get: change(get), all: change(all) },
      setReturnArrays: (isOn: boolean) => compiled.setReturnArrays(isOn),
      columns: columnsOf(compiled),
    } as unknown as StatementSyncInstance;
  }
}
