import type { FailureClass } from '../errors.js';
import type { Body, Form } from './body.js';
import type { Method } from './exchange.js';

/** What a request is about: one experiment or its comments, the list of experiments, or API keys. */
export type Subject = 'entry' | 'experiments' | 'keys';

export interface Verdict {
  readonly failure: FailureClass;
  /** Whether the server may have done it all the same. */
  readonly lost: boolean;
  readonly hint: string;
  /** Where it differs from what the class says. */
  readonly scope?: 'run';
}

const HINTS = {
  key: 'check the API key that `notebook.key` names: that it is whole, still valid, and may write',
  locked:
    'somebody may have locked it or taken the key’s user off it; if nothing works, check the key’s rights',
  rights: 'check what the API key that `notebook.key` names may do: it must be allowed to create experiments',
  gone: 'it is not there (any more): somebody may have deleted it',
  deleted: 'somebody may have deleted or archived it; restore it in the notebook, or leave it',
  edited: 'somebody has it open in the editor; it can be changed once they are done',
  address: 'check `notebook.url`: no notebook answers there',
  refused: 'the notebook will refuse this again until what is sent changes',
  tooLarge: 'send less: a shorter body or comment, or have the server’s limit raised',
  busy: 'the server asks for patience; if this lasts, lower `notebook.rate`',
  outage: 'this usually passes by itself; if it lasts, ask who runs the notebook',
  redirect: 'check `notebook.url`: the server points to another address, and the key is not sent there',
} as const;

/** eLabFTW 4.9 to 5.1 answers a bad key in plain text; a later one a read-only key in JSON. Both with 400. */
const ABOUT_THE_KEY =
  /^(?:(?:no corresponding|no|invalid|unknown|wrong|bad|incorrect) api key\b|you are using a read-only key)/i;

/** Passes by itself, so it is tried again; but it is no outage, so nobody else waits for it. */
const BEING_EDITED = { failure: 'server', scope: 'run', hint: HINTS.edited } as const;

interface Row extends Omit<Verdict, 'lost' | 'hint'> {
  readonly status: number | '2xx' | '3xx' | '4xx' | '5xx';
  readonly on?: Subject;
  readonly method?: Method;
  readonly form?: Form;
  readonly code?: number;
  readonly says?: RegExp;
  readonly lost?: true;
  readonly hint: string;
}

/**
 * What an answer means that is not the expected one, or cannot be used. The first row that fits counts.
 * A status that the contract lists is a verdict whatever page a proxy dresses it in; with any other, a web
 * page is an outage.
 */
const TABLE: readonly Row[] = [
  // Surely not done.
  { status: 400, says: ABOUT_THE_KEY, failure: 'auth', hint: HINTS.key },
  { status: 400, says: /^this entry is being edited by/i, ...BEING_EDITED },
  { status: 400, method: 'PATCH', code: 422, failure: 'conflict', hint: HINTS.deleted },
  { status: 400, failure: 'request', hint: HINTS.refused },
  { status: 401, failure: 'auth', hint: HINTS.key },
  { status: 403, on: 'keys', failure: 'auth', hint: HINTS.key },
  { status: 403, on: 'experiments', failure: 'conflict', hint: HINTS.rights },
  { status: 403, failure: 'conflict', hint: HINTS.locked },
  { status: 404, on: 'entry', failure: 'conflict', hint: HINTS.gone },
  // Nothing in a run can make the list of experiments vanish: the address is wrong, or a proxy lost the notebook.
  { status: 404, failure: 'server', hint: HINTS.address },
  { status: 405, form: 'page', failure: 'server', hint: HINTS.outage },
  { status: 405, failure: 'request', hint: HINTS.refused },
  { status: 413, failure: 'request', hint: HINTS.tooLarge },
  { status: 422, failure: 'request', hint: HINTS.refused },
  { status: 429, failure: 'rate', hint: HINTS.busy },
  // Lost: perhaps done, perhaps not, perhaps still to be.
  { status: '2xx', form: 'json', failure: 'server', scope: 'run', lost: true, hint: HINTS.outage },
  { status: '2xx', failure: 'server', lost: true, hint: HINTS.outage },
  { status: '3xx', failure: 'server', lost: true, hint: HINTS.redirect },
  { status: 408, failure: 'server', lost: true, hint: HINTS.outage },
  { status: 425, failure: 'server', lost: true, hint: HINTS.outage },
  { status: '4xx', form: 'page', failure: 'server', lost: true, hint: HINTS.outage },
  { status: '4xx', failure: 'request', lost: true, hint: HINTS.refused },
  // Mostly a value that the database refused: the application itself is well enough to answer in JSON.
  { status: 500, form: 'json', failure: 'server', scope: 'run', lost: true, hint: HINTS.outage },
  { status: '5xx', failure: 'server', lost: true, hint: HINTS.outage },
];

export interface Refusal {
  readonly status: number;
  readonly on: Subject;
  readonly method: Method;
  readonly body: Body;
}

export function verdictOn(refusal: Refusal): Verdict {
  const row = TABLE.find((candidate) => fits(candidate, refusal));
  const { failure, hint, scope, lost = false } = row ?? UNHEARD_OF;
  return { failure, hint, lost: lost && changes(refusal.method), ...(scope ? { scope } : {}) };
}

/** No answer at all. `sent`: whether a byte of the request can have left. */
export function verdictOnSilence(method: Method, sent: boolean, hint: string = HINTS.outage): Verdict {
  return { failure: 'server', lost: sent && changes(method), hint };
}

/** HTTP ends at 599, servers need not. */
const UNHEARD_OF: Row = { status: '5xx', failure: 'server', lost: true, hint: HINTS.outage };

function fits(row: Row, { status, on, method, body }: Refusal): boolean {
  return (
    (row.status === status || row.status === `${Math.floor(status / 100)}xx`) &&
    (row.on ?? on) === on &&
    (row.method ?? method) === method &&
    (row.form ?? body.form) === body.form &&
    (row.code === undefined || row.code === body.code) &&
    (row.says === undefined || body.words.some((words) => row.says?.test(words)))
  );
}

/** A GET that was not heard has done nothing that could be lost. */
const changes = (method: Method): boolean => method !== 'GET';
