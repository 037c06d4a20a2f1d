import type { Decide, Fault } from '../support/faults.js';
import { seeded } from '../support/random.js';
import type { SeenRequest } from '../support/request-log.js';
import type { Lab, Pc } from './lab.js';

/** Something that lasts until it is ended. */
export interface Spell {
  readonly end: () => void;
}

const page = (answer: number): Fault => ({ answer, html: `<html><title>${answer}</title></html>` });

const isWrite = ({ method }: SeenRequest): boolean => method !== 'GET';
const isCreation = ({ method, path }: SeenRequest): boolean => method === 'POST' && path.endsWith('/experiments');
const isPatch = ({ method }: SeenRequest): boolean => method === 'PATCH';

/** How the server always fails on the PATCH of a poisoned run. */
const POISONS: Readonly<Record<string, Fault>> = {
  page: page(502),
  reset: 'cutBefore',
  hang: { holdRequest: { until: new Promise(() => undefined) } },
};

const poisonIn = ({ method, body }: SeenRequest): string | undefined =>
  method === 'PATCH' ? /"title":"bad-(\w+)-/.exec(body)?.[1] : undefined;

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
const JUMPS_MS = [3 * MINUTE_MS, 5 * 60 * MINUTE_MS, 30 * DAY_MS, 730 * DAY_MS];

const anyPc = ({ pcs, random }: Lab): Pc => pcs[random.below(2)] as Pc;

const forAll = ({ control }: Lab, fault: Fault, when: (request: SeenRequest) => boolean): Spell => ({
  end: control.plan(fault, { when, times: Number.POSITIVE_INFINITY }).lift,
});

function createTheirs({ control, random, people }: Lab, atMost: number): number[] {
  const ids = Array.from({ length: 1 + random.below(atMost) }, () =>
    control.as('colleague').create({ title: 'their work' }),
  );
  for (const id of ids) people.created.set(id, 'their work');
  return ids;
}

/** What happens among kills and lost answers. Spells last for a few rounds, the rest stays. */
export const EVENTS: Readonly<Record<string, (lab: Lab) => Spell | undefined>> = {
  /** The server always fails on the PATCH of one more run. */
  poison(lab) {
    const pc = anyPc(lab);
    const kinds = Object.keys(POISONS).filter((kind) => !pc.poisoned.some((title) => title.includes(kind)));
    const kind = kinds[lab.random.below(kinds.length)];
    if (kind !== undefined) pc.dropPoisoned(kind);
    return undefined;
  },
  /** A database restarts: every write gets a 500 as JSON. */
  errors: (lab) => forAll(lab, { answer: 500 }, isWrite),
  /** The key may only read. */
  readOnly: (lab) => forAll(lab, { answer: 403 }, isCreation),
  /** A proxy refuses every PATCH. */
  refused: (lab) => forAll(lab, page(405), isPatch),
  /** A tenth of the answers is 503. */
  busy(lab) {
    // Of its own, because the number of requests depends on the machine.
    const random = seeded(lab.random.below(1_000_000));
    return forAll(lab, page(503), () => random.chance(0.1));
  },
  /** Another person's entry cannot be shown. */
  unreadable(lab) {
    for (const id of createTheirs(lab, 1)) lab.people.unreadable.add(id);
    return undefined;
  },
  hidden(lab) {
    for (const id of createTheirs(lab, 10)) {
      lab.people.hidden.add(id);
      if (lab.dialect === 'elabftw') lab.control.as('colleague').hide(id);
    }
    return undefined;
  },
  /** Ids that the server never assigns. */
  gap(lab) {
    lab.control.skipIds(1 + lab.random.below(40));
    return undefined;
  },
  /** People delete a block of their own. */
  deletedBlock(lab) {
    for (const id of createTheirs(lab, 40)) {
      lab.control.as('colleague').delete(id);
      lab.people.created.delete(id);
    }
    return undefined;
  },
  /** Somebody sets the clock of a PC, by minutes to years. It is right again later. */
  clock(lab) {
    const pc = anyPc(lab);
    const jump = JUMPS_MS[lab.random.below(JUMPS_MS.length)] ?? 0;
    pc.setClock(lab.random.chance(0.5) ? jump : -jump);
    return { end: () => pc.setClock(0) };
  },
};

/** What applies as long as the lab exists: poisoned runs, and entries that cannot be read. */
export function standing(lab: Lab): Decide {
  return (request) => {
    const { method, path } = request;
    const poison = poisonIn(request);
    if (poison !== undefined) return POISONS[poison] ?? 'pass';
    const id = Number(/\/experiments\/(\d+)/.exec(path)?.[1]);
    if (method === 'GET' && lab.people.unreadable.has(id)) return { answer: 500 };
    return lab.dialect === 'v2' && lab.people.hidden.has(id) ? { answer: 403 } : 'pass';
  };
}

/** Plans a fault for one request, or for a moment. Returns a function that ends it. */
export function planFault({ control, random }: Lab): Spell {
  const faults: readonly Fault[] = [
    'cutBefore',
    'cutAfter',
    { cutThen: { ms: random.below(500) } },
    page(502),
    { answer: 500, html: '<h1>Error</h1>', carriedOut: true },
    { holdAnswer: { ms: 600 } },
  ];
  const fault = faults[random.below(faults.length + 2)];
  // Some of them carry out the request, which must never happen to a poisoned one.
  const when = (request: SeenRequest) => isWrite(request) && poisonIn(request) === undefined;
  if (fault !== undefined) return { end: control.plan(fault, { when, skip: random.below(3) }).lift };
  if (random.chance(0.5)) return { end: control.plan({ answer: 401 }, { forMs: 200 }).lift };
  control.limitRate({ requests: 10, perMs: 1000, retryAfter: 'seconds' });
  return { end: () => control.limitRate(undefined) };
}

/** People create entries, and edit, lock or delete experiments that labfeed has filed. */
export function actAsPeople(lab: Lab): void {
  const { control, random, people, dialect } = lab;
  if (random.chance(0.2)) createTheirs(lab, 1);
  if (!random.chance(0.2)) return;
  const filed = control
    .experiments()
    .filter(
      ({ id, title, comments, state }) =>
        /^(one|two)\d/.test(title) && comments.length > 0 && state === 'normal' && !people.edited.has(id),
    );
  const chosen = filed[random.below(filed.length)];
  if (!chosen) return;
  const owner = control.as('owner');
  if (random.chance(0.5)) {
    owner.edit(chosen.id, { title: EDITED });
    if (dialect === 'elabftw' && random.chance(0.5)) owner.lock(chosen.id);
    people.edited.set(chosen.id, chosen.title);
  } else {
    owner.delete(chosen.id);
    people.deleted.add(chosen.title);
  }
}

export const EDITED = 'edited by hand';
