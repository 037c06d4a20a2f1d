import { DatabaseSync, type StatementSyncInstance } from '@photostructure/sqlite';
import { migrate } from '../../src/journal/database.js';

/**
 * A journal's database in memory for one history after another. Opening it, making its tables and compiling the
 * statements of every process that starts cost ten times as much as a history itself.
 */
export class ReusableDatabase extends DatabaseSync {
  readonly #statements = new Map<string, StatementSyncInstance>();
  readonly #emptying: readonly StatementSyncInstance[];

  constructor() {
    super(':memory:');
    migrate(this, ':memory:');
    const rows = this.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all();
    const tables = (rows as { name: string }[]).map(({ name }) => name);
    // Those that refer to others were made after them, and are emptied before.
    this.#emptying = tables.reverse().map((name) => this.prepare(`DELETE FROM ${name}`));
  }

  override prepare(sql: string): StatementSyncInstance {
    const known = this.#statements.get(sql);
    if (known) return known;
    const statement = super.prepare(sql);
    this.#statements.set(sql, statement);
    return statement;
  }

  /** As after its tables were made. */
  empty(): void {
    for (const statement of this.#emptying) statement.run();
  }
}
