import { askRemap } from '../support/ask-remap.js';
import { skipIds } from './network.js';
import { runOf, type World } from './world.js';

/** Simulated users of the notebook. What they did must stay as they left it. */
export interface Users {
  /** Their own experiments, by id. */
  readonly created: ReadonlyMap<number, { readonly title: string; readonly userid: number }>;
  /** Experiments of ours that they edited, by the name of the run. */
  readonly edited: ReadonlyMap<string, number>;
  /** Runs whose experiment they deleted, by name. */
  readonly deleted: ReadonlySet<string>;
  /** Comments of ours that they edited or deleted, by id. */
  readonly changedComments: ReadonlyMap<number, ChangedComment>;
  createExperiment(): number;
  /** The server was restored: what they did since is gone. They continue to work. */
  restored(): void;
  /** Edits or deletes an experiment that labfeed knows to be its own. */
  changeExperiment(): void;
  /** Edits or deletes a comment that labfeed knows to be its own. */
  changeComment(): void;
  /** Requests `retry --remap` for some of the done runs. */
  requestRemaps(): void;
}

interface ChangedComment {
  /** Runs count from 0, comments from 1; `version` is how often the run was remapped before. */
  readonly run: number;
  readonly n: number;
  readonly version: number;
  readonly experiment: number;
  /** Undefined if they deleted it. */
  readonly text: string | undefined;
}

export const EDITED = { title: 'edited by hand', body: 'mine' };

/** `other`: the journal of a second PC. */
export function createUsers(world: World, other?: Pick<World, 'database'>): Users {
  const { notebook, database, random, events, trace } = world;
  const created = new Map<number, { title: string; userid: number }>();
  const edited = new Map<string, number>();
  const deleted = new Set<string>();
  const filed = database.prepare(
    'SELECT id, experiment FROM runs JOIN drafts ON run = id WHERE experiment IS NOT NULL',
  );
  const create = (userid: number): number => {
    const title = random.chance(0.5) ? 'Untitled' : 'their work';
    const id = notebook.addExperiment(title, userid);
    created.set(id, { title, userid });
    trace?.(`user ${userid} creates ${id}, ${title}`);
    return id;
  };
  return {
    created,
    edited,
    deleted,
    ...createCommentUsers(world),
    createExperiment() {
      skipIds(world);
      const isOurAccount = events.get('shared')?.chance(0.5) === true;
      const id = create(isOurAccount ? 1 : 2);
      if (random.chance(0.3) && !isOurAccount) notebook.privateIds.add(id);
      return id;
    },
    restored() {
      for (const id of [...created.keys(), ...notebook.privateIds]) {
        if (notebook.experiments.has(id)) continue;
        created.delete(id);
        notebook.privateIds.delete(id);
      }
      // As long as the ids of ours are unused, a person may have deleted them. If a person with our account uses them, he
      // may as well have rewritten our experiments: nobody can tell.
      const highest = Math.max(highestIn(database), other ? highestIn(other.database) : 0);
      for (let more = random.below(7), id = 0; more > 0 || id < highest; more--) id = create(2);
    },
    changeExperiment() {
      const rows = filed.all() as { experiment: number; id: number }[];
      const chosen = rows[random.below(rows.length)];
      const entry = chosen && notebook.experiments.get(chosen.experiment);
      if (!chosen || !entry) return;
      const { experiment, id } = chosen;
      const title = runOf(id - 1).draft.title;
      if (random.chance(0.5)) {
        Object.assign(entry, EDITED);
        edited.set(title, experiment);
        trace?.(`user edits ${experiment}, ${title}`);
      } else {
        notebook.experiments.delete(experiment);
        edited.delete(title);
        deleted.add(title);
        trace?.(`user deletes ${experiment}, ${title}`);
      }
    },
  };
}

const highestIn = (database: World['database']): number =>
  (database.prepare('SELECT ifnull(max(experiment), 0) AS id FROM runs').get() as { id: number }).id;

function createCommentUsers({ notebook, database, random, trace, remaps, changedFiles, timeline }: World) {
  const changedComments = new Map<number, ChangedComment>();
  const known = database.prepare('SELECT id FROM runs ORDER BY id');
  const done = database.prepare("SELECT id FROM runs WHERE step = 'done' AND parked IS NULL ORDER BY id");
  const posted = database.prepare(
    `SELECT run, n, comment, experiment FROM comments JOIN runs ON runs.id = run
       WHERE comment IS NOT NULL ORDER BY run, n`,
  );
  /** Whatever their runs are doing. */
  function changeFiles(): void {
    for (const { id } of known.all() as { id: number }[]) {
      if (!remaps || random.chance(0.4)) continue;
      remaps.set(id - 1, (remaps.get(id - 1) ?? 0) + 1);
      changedFiles?.add(id - 1);
      trace?.(`the file of run ${id} changes`);
    }
  }

  return {
    changedComments,
    changeComment(): void {
      const rows = posted.all() as { run: number; n: number; comment: number; experiment: number }[];
      const chosen = rows[random.below(rows.length)];
      const comments = chosen && notebook.experiments.get(chosen.experiment)?.comments;
      if (!chosen || !comments?.has(chosen.comment) || changedComments.has(chosen.comment)) return;
      const { comment, experiment, n } = chosen;
      const run = chosen.run - 1;
      const text = random.chance(0.5) ? `${comments.get(comment)}, as I see it` : undefined;
      if (text === undefined) comments.delete(comment);
      else comments.set(comment, text);
      changedComments.set(comment, { run, n, version: remaps?.get(run) ?? 0, experiment, text });
      trace?.(`user ${text === undefined ? 'deletes' : 'edits'} comment ${comment} of ${experiment}`);
    },
    requestRemaps(): void {
      if (changedFiles) changeFiles();
      else requestRemapsOfDone();
    },
  };

  function requestRemapsOfDone(): void {
    for (const { id } of done.all() as { id: number }[]) {
      if (!remaps || random.chance(0.4)) continue;
      if (!askRemap(database, id, runOf(id - 1).run.file.path, timeline.elapsedMs())) continue;
      remaps.set(id - 1, (remaps.get(id - 1) ?? 0) + 1);
      trace?.(`user requests a remap of run ${id}`);
    }
  }
}
