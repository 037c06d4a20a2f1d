import type { World } from './world.js';

/** What other people did in the notebook, which must stay as they left it. */
export interface People {
  /** Entries of their own, by id. */
  readonly own: ReadonlyMap<number, string>;
  /** Runs whose entry they changed, by title. */
  readonly edited: ReadonlyMap<string, number>;
  /** Runs whose entry they deleted, by title. */
  readonly deleted: ReadonlySet<string>;
  /** Somebody makes an entry. */
  create(): void;
  /** Somebody edits or deletes an entry that labfeed knows to be its own. */
  changeOurs(): void;
}

export const EDITED = { title: 'edited by hand', body: 'mine' };

export function createPeople({ notebook, database, random, trace }: World): People {
  const own = new Map<number, string>();
  const edited = new Map<string, number>();
  const deleted = new Set<string>();
  const filed = database.prepare(
    'SELECT experiment, title FROM runs JOIN drafts ON run = id WHERE experiment IS NOT NULL',
  );
  return {
    own,
    edited,
    deleted,
    create() {
      const title = random.chance(0.5) ? 'Untitled' : 'their work';
      const id = notebook.someoneCreates(title, 2);
      own.set(id, title);
      if (random.chance(0.3)) notebook.hidden.add(id);
      trace?.(`somebody creates ${id}, ${title}`);
    },
    changeOurs() {
      const rows = filed.all() as { experiment: number; title: string }[];
      const chosen = rows[random.below(rows.length)];
      const entry = chosen && notebook.experiments.get(chosen.experiment);
      if (!chosen || !entry) return;
      const { experiment, title } = chosen;
      if (random.chance(0.5)) {
        Object.assign(entry, EDITED);
        edited.set(title, experiment);
        trace?.(`somebody edits ${experiment}, ${title}`);
      } else {
        notebook.experiments.delete(experiment);
        edited.delete(title);
        deleted.add(title);
        trace?.(`somebody deletes ${experiment}, ${title}`);
      }
    },
  };
}
