import { randomUUID } from 'node:crypto';
import { DatabaseSync, type DatabaseSyncInstance, type StatementSyncInstance } from '@photostructure/sqlite';
import { FLEET_TABLES } from '../../src/fleet/tables.js';
import { Connection, migrate } from '../../src/journal/database.js';
import { columnsOf, IS_SELECT, SMALL_PAGES, TableChanges } from '../support/reusable-database.js';

type Session = ReturnType<DatabaseSyncInstance['createSession']>;
type Method = (...args: unknown[]) => unknown;

interface Part {
  readonly type: string;
  readonly name: string;
  readonly sql: string;
}

/** A table that has no rows is emptied often, for each load. */
const EMPTIES = /^DELETE FROM (?!sqlite_)(\w+)$/;
const NO_CHANGES = { changes: 0 };

const SETTINGS =
  'PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF; PRAGMA temp_store = MEMORY; PRAGMA foreign_keys = OFF';

/**
 * The file of a working copy, which is reused for each history. To switch triggers or foreign keys compiles every
 * statement again, which costs more than the statements. So two connections share its tables: one of a standby, and one
 * of a leader, with foreign keys and with the triggers as temporary ones.
 */
export class CopyDatabase extends DatabaseSync {
  readonly #leading: DatabaseSyncInstance;
  #isLeading = false;
  #session: Session | undefined;
  readonly #statements = new Map<string, StatementSyncInstance>();
  readonly #changes = new TableChanges();
  /** The tables that may have rows. */
  readonly #used = new Set<string>();
  readonly connection = new Connection(this);

  constructor() {
    // Connections of this process that use the same name share the tables.
    const uri = `file:/${randomUUID()}?vfs=memdb`;
    super(uri);
    const setup = new DatabaseSync(uri);
    setup.exec(SMALL_PAGES);
    migrate(setup, uri);
    setup.exec(FLEET_TABLES);
    const parts = setup.prepare("SELECT type, name, sql FROM sqlite_master WHERE sql <> ''").all() as unknown as Part[];
    // Indexes make large tables fast, and small ones slow.
    for (const { type, name, sql } of parts)
      if (type === 'trigger' || sql.startsWith('CREATE INDEX')) setup.exec(`DROP ${type} ${name}`);
    setup.close();
    for (const { type, name } of parts) if (type === 'table') this.#changes.add(name);
    super.exec(SETTINGS);
    this.#leading = new DatabaseSync(uri);
    this.#leading.exec(`${SETTINGS}; PRAGMA foreign_keys = ON`);
    for (const { type, sql } of parts)
      if (type === 'trigger') this.#leading.exec(sql.replace('CREATE TRIGGER', 'CREATE TEMP TRIGGER'));
  }

  /** From now on, it has triggers and foreign keys. */
  lead(): void {
    this.#isLeading = true;
  }

  leads(): boolean {
    return this.#isLeading;
  }

  override get isTransaction(): boolean {
    return this.#isLeading ? this.#leading.isTransaction : super.isTransaction;
  }

  override prepare(sql: string): StatementSyncInstance {
    const known = this.#statements.get(sql) ?? this.#wrap(sql.trimStart());
    this.#statements.set(sql, known);
    return known;
  }

  override exec(sql: string): void {
    // Each connection has its own.
    if (!sql.startsWith('PRAGMA')) this.prepare(sql).run();
  }

  override createSession(): Session {
    this.#session = this.#leading.createSession();
    return this.#session;
  }

  /** As by the end of its process. */
  override close(): void {
    try {
      this.#session?.close();
    } catch {
      // It was closed before.
    }
    this.#session = undefined;
    if (this.isTransaction) this.exec('ROLLBACK');
    this.#isLeading = false;
  }

  empty(): void {
    this.close();
    for (const name of this.#used) this.exec(`DELETE FROM ${name}`);
    this.exec('DELETE FROM sqlite_sequence');
    this.#used.clear();
  }

  end(): void {
    super.close();
    this.#leading.close();
  }

  /** One statement of each connection, compiled when it is first used. */
  #wrap(sql: string): StatementSyncInstance {
    const compile = (database: Pick<DatabaseSyncInstance, 'prepare'>): StatementSyncInstance => {
      const compiled = database.prepare(sql);
      compiled.setReturnArrays(isOn);
      return compiled;
    };
    let isOn = false;
    let leading: StatementSyncInstance | undefined;
    let following: StatementSyncInstance | undefined;
    const current = (): StatementSyncInstance => {
      if (this.#isLeading) {
        leading ??= compile(this.#leading);
        return leading;
      }
      following ??= compile({ prepare: (text: string) => super.prepare(text) } as never);
      return following;
    };
    const names = IS_SELECT.test(sql) ? [] : this.#changes.tablesOf(sql);
    const noteChange = this.#changes.noting(names);
    const [emptied = ''] = EMPTIES.exec(sql)?.slice(1) ?? [];
    const note = (): void => {
      noteChange();
      if (emptied === '') for (const name of names) this.#used.add(name);
    };
    // The numbers of changed rows are made even if nobody asks for them.
    const isTransaction = /^(BEGIN|COMMIT|ROLLBACK)/.test(sql);
    const run: Method = (...args) => {
      if (isTransaction) {
        current().get();
        return NO_CHANGES;
      }
      if (emptied !== '' && !this.#used.has(emptied)) return NO_CHANGES;
      note();
      return current().run(...(args as never[]));
    };
    const read =
      (method: 'get' | 'all'): Method =>
      (...args) => {
        note();
        return current()[method](...(args as never[]));
      };
    const both = {
      ...{ run, get: read('get'), all: read('all') },
      setReturnArrays(isWanted: boolean) {
        isOn = isWanted;
        leading?.setReturnArrays(isOn);
        following?.setReturnArrays(isOn);
      },
      columns: columnsOf({ columns: () => current().columns() }),
    } as unknown as StatementSyncInstance;
    return IS_SELECT.test(sql) ? this.#changes.remember(both, sql) : both;
  }
}
