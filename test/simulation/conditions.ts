import type { NotebookError } from '../../src/errors.js';
import { referenceOf } from '../../src/markers.js';
import { statusError } from '../../src/notebook/errors.js';
import { FAULTS, isCreation } from '../support/fake-notebook.js';
import type { Random } from '../support/random.js';
import { type Condition, knowsTitles, type Refusal, runOf, type World } from './world.js';

/** Conditions that last for the whole history, or that begin and end by themselves. */
export function scheduleConditions(world: World): void {
  const { events, timeline, conditions, kind, trace } = world;
  const poison = events.get('poison');
  if (poison) {
    world.poisoned = poison.below(2);
    conditions.add(poisonedRun(world.poisoned, poison, world));
  }
  const titles = events.get('titles');
  // Whether the second PC's journal knows it, too, is not seen from here.
  if (titles && kind.keepsTitle === false && !events.has('second')) upgradeLater(titles, world);
  const during = (name: 'spell' | 'readonly' | 'refused', condition: (random: Random) => Condition): void => {
    const random = events.get(name);
    if (!random) return;
    const begun = condition(random);
    const begin = random.below(random.chance(0.5) ? 100 : 5000);
    // At least a moment: with none at all, it could begin after its end.
    const lasts = 1 + random.below([2000, 60_000, name === 'spell' ? 180_000 : 600_000][random.below(3)] ?? 0);
    world.calmAt = Math.max(world.calmAt, begin + lasts);
    timeline.at(begin, () => {
      trace?.(`${name} begins`);
      conditions.add(begun);
    });
    timeline.at(begin + lasts, () => {
      trace?.(`${name} ends`);
      conditions.delete(begun);
    });
  };
  during('spell', spell);
  during('readonly', () => ({
    answer: ({ operation }) =>
      isCreation(operation) ? { error: refused('POST', '/experiments', 403, JSON_BODY) } : undefined,
  }));
  during('refused', refusedPatches);
}

/**
 * The server keeps titles from some time on, but not before the journal knows that it drops them: nobody could recognise
 * the blank experiments of unknown outcome that it has by then, since none was ever compared with one of ours.
 */
function upgradeLater(random: Random, world: World, attempts = 5): void {
  const { timeline, notebook, database, trace } = world;
  timeline.at(random.below(20_000), () => {
    // A power failure must not make it forget that.
    if (!knowsTitles(world) || !database.isSynced())
      return attempts > 0 ? upgradeLater(random, world, attempts - 1) : undefined;
    trace?.('the server keeps titles from now on');
    notebook.keepTitles();
  });
}

/** Each way in which a write can fail again and again. */
const POISONS: readonly ((method: 'PATCH' | 'POST', path: string) => Refusal)[] = [
  (method, path) => ({ error: refused(method, path, 502, PAGE) }),
  () => ({ error: FAULTS.dropped.error(true) }),
  () => ({ error: FAULTS.dropped.error(true), isSilent: true }),
  (method, path) => ({ error: refused(method, path, 405, PAGE) }),
  (method, path) => ({ error: refused(method, path, 405, JSON_BODY) }),
  (method, path) => ({ error: refused(method, path, 500, JSON_BODY) }),
];

/** A run whose description or comments the server never accepts. */
function poisonedRun(n: number, random: Random, { pc, trace }: World): Condition {
  const { run, draft } = runOf(n, 0, pc);
  const { sha256 } = run.file;
  const reference = referenceOf({ instrument: run.instrument, sha256, copy: '', refiling: 0 });
  const refuse = POISONS[random.below(POISONS.length)] ?? POISONS[0];
  const isComment = draft.comments.length > 0 && random.chance(0.5);
  trace?.(`run ${n} is poisoned: its ${isComment ? 'comments' : 'description'}`);
  return {
    answer({ operation, args: [id, content] }) {
      const text = JSON.stringify(isCreation(operation) ? id : content) ?? '';
      if (isComment)
        return operation === 'postComment' && text.includes(reference)
          ? refuse?.('POST', `/experiments/${id}/comments`)
          : undefined;
      if (!text.includes(sha256)) return undefined;
      if (operation === 'createFilledExperiment') return refuse?.('POST', '/experiments');
      return operation === 'patchExperiment' ? refuse?.('PATCH', `/experiments/${id}`) : undefined;
    },
  };
}

/** The database behind the application is away. Some writes took effect before it noticed. */
function spell(random: Random): Condition {
  let left = random.below(4);
  return {
    answer: ({ operation, isWrite }) =>
      isWrite
        ? {
            error: refused('POST', isCreation(operation) ? '/experiments' : '/experiments/1', 500, JSON_BODY),
            isDone: random.chance(0.3) && left-- > 0,
          }
        : undefined,
  };
}

function refusedPatches(random: Random): Condition {
  const [status, body] = (
    [
      [405, PAGE],
      [403, PAGE],
      [405, JSON_BODY],
    ] as const
  )[random.below(3)] ?? [405, PAGE];
  return {
    answer: ({ operation, args: [id] }) =>
      operation === 'patchExperiment' ? { error: refused('PATCH', `/experiments/${id}`, status, body) } : undefined,
  };
}

/** Another person's experiment that the server fails to show. After a restore, one of ours can have its id. */
export function unreadable(id: number, random: Random, isTheirs: () => boolean): Condition {
  const body = random.chance(0.5) ? JSON_BODY : PAGE;
  return {
    answer: ({ operation, args }) =>
      operation === 'readExperiment' && args[0] === id && isTheirs()
        ? { error: refused('GET', `/experiments/${id}`, 500, body) }
        : undefined,
  };
}

const JSON_BODY = { type: 'application/json', text: '{"code":0,"message":"failed","description":"failed"}' };
const PAGE = {
  type: 'text/html',
  text: '<html><head><title>Refused</title></head><body><h1>Refused</h1></body></html>',
};

/** As the client reports such an answer. */
function refused(
  method: 'GET' | 'PATCH' | 'POST',
  path: string,
  status: number,
  { type, text }: typeof PAGE,
): NotebookError {
  const subject = path === '/experiments' ? 'experiments' : 'entry';
  return statusError(
    { method, path, subject, key: '', origin: 'http://simulated' },
    { status, headers: { 'content-type': type }, text },
    0,
  );
}
