import { askRemap } from '../support/ask-remap.js';
import { runOf, type World } from './world.js';

/** What other people did in the notebook, which must stay as they left it. */
export interface People {
  /** Entries of their own, by id. */
  readonly own: ReadonlyMap<number, string>;
  /** The entries of runs that they changed, by the runs' names. */
  readonly edited: ReadonlyMap<string, number>;
  /** Runs whose entry they deleted, by name. */
  readonly deleted: ReadonlySet<string>;
  /** Comments that they changed or deleted, by their ids. */
  readonly touched: ReadonlyMap<number, Touched>;
  /** Somebody makes an entry. */
  create(): void;
  /** Somebody edits or deletes an entry that labfeed knows to be its own. */
  changeOurs(): void;
  /** Somebody changes or deletes a comment that labfeed knows to be its own. */
  touchComment(): void;
  /** Somebody asks to have some of the runs redone that are done. */
  askRemaps(): void;
}

export interface Touched {
  /** The run, from 0, its comment, from 1, and how often the run was redone before. */
  readonly run: number;
  readonly n: number;
  readonly version: number;
  readonly experiment: number;
  /** What they wrote; undefined where they deleted it. */
  readonly text: string | undefined;
}

export const EDITED = { title: 'edited by hand', body: 'mine' };

export function createPeople(world: World): People {
  const { notebook, database, random, trace } = world;
  const own = new Map<number, string>();
  const edited = new Map<string, number>();
  const deleted = new Set<string>();
  const filed = database.prepare(
    'SELECT id, experiment FROM runs JOIN drafts ON run = id WHERE experiment IS NOT NULL',
  );
  return {
    own,
    edited,
    deleted,
    ...createRequests(world),
    create() {
      const title = random.chance(0.5) ? 'Untitled' : 'their work';
      const id = notebook.someoneCreates(title, 2);
      own.set(id, title);
      if (random.chance(0.3)) notebook.hidden.add(id);
      trace?.(`somebody creates ${id}, ${title}`);
    },
    changeOurs() {
      const rows = filed.all() as { experiment: number; id: number }[];
      const chosen = rows[random.below(rows.length)];
      const entry = chosen && notebook.experiments.get(chosen.experiment);
      if (!chosen || !entry) return;
      const { experiment, id } = chosen;
      const title = runOf(id - 1).draft.title;
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

function createRequests({ notebook, database, random, trace, redone, timeline }: World) {
  const touched = new Map<number, Touched>();
  const done = database.prepare("SELECT id FROM runs WHERE step = 'done' AND resting IS NULL ORDER BY id");
  const posted = database.prepare(
    `SELECT run, n, comment, experiment FROM comments JOIN runs ON runs.id = run
       WHERE comment IS NOT NULL ORDER BY run, n`,
  );
  return {
    touched,
    touchComment(): void {
      const rows = posted.all() as { run: number; n: number; comment: number; experiment: number }[];
      const chosen = rows[random.below(rows.length)];
      const comments = chosen && notebook.experiments.get(chosen.experiment)?.comments;
      if (!chosen || !comments?.has(chosen.comment) || touched.has(chosen.comment)) return;
      const { comment, experiment, n } = chosen;
      const run = chosen.run - 1;
      const text = random.chance(0.5) ? `${comments.get(comment)}, as I see it` : undefined;
      if (text === undefined) comments.delete(comment);
      else comments.set(comment, text);
      touched.set(comment, { run, n, version: redone?.get(run) ?? 0, experiment, text });
      trace?.(`somebody ${text === undefined ? 'deletes' : 'edits'} comment ${comment} of ${experiment}`);
    },
    askRemaps(): void {
      for (const { id } of done.all() as { id: number }[]) {
        if (!redone || random.chance(0.4)) continue;
        if (!askRemap(database, id, runOf(id - 1).run.file.path, timeline.elapsedMs())) continue;
        redone.set(id - 1, (redone.get(id - 1) ?? 0) + 1);
        trace?.(`somebody has run ${id} redone`);
      }
    },
  };
}
