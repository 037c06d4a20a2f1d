import { DatabaseSync, type StatementSyncInstance } from '@photostructure/sqlite';
import { migrate } from '../../src/journal/database.js';

/**
 * An in-memory journal database that is reused for each history. Opening it, creating its tables and compiling the
 * statements of every process costs ten times as much as a history itself.
 */
export class ReusableDatabase extends DatabaseSync {
  readonly #statements = new Map<string, StatementSyncInstance>();
  readonly #emptying: readonly StatementSyncInstance[];

  constructor() {
    super(':memory:');
    migrate(this, ':memory:');
    const rows = this.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all();
    const tables = (rows as { name: string }[]).map(({ name }) => name);
    // Tables that refer to others were created after them, and are emptied first.
    this.#emptying = tables.reverse().map((name) => this.prepare(`DELETE FROM ${name}`));
  }

  override prepare(sql: string): StatementSyncInstance {
    const known = this.#statements.get(sql);
    if (known) return known;
    const statement = super.prepare(sql);
    this.#statements.set(sql, statement);
    return statement;
  }

  /** Resets it to empty tables. */
  empty(): void {
    for (const statement of this.#emptying) statement.run();
  }
}
