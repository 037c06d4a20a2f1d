import { parseJson } from '../../text.js';
import { type Experiment, fullName, listExperiments, type Store, userOf } from '../store.js';
import { type Call, elabidOf, listedRecord, mayRead, single, statesIn } from './records.js';
import { improper, toInteger, toText, unsupported } from './values.js';

/** The list of experiments: pinned ones first, then as asked for; by default, the last changed first. */
export function search({ query, store }: Pick<Call, 'query' | 'store'>): object[] {
  const states = statesIn(query);
  const text = [single(query['q']), single(query['extended'])].map((part) => part?.trim() ?? '').join(' ');
  const matches = text.trim() === '' ? () => true : parseSearch(text.trim());
  const limit = toInteger(single(query['limit']));
  const offset = Math.max(0, toInteger(single(query['offset'])));
  const compare = ORDERS[single(query['order']) ?? ''] ?? byChange;
  const direction = single(query['sort']) === 'asc' ? 1 : -1;
  // An extra field that is searched for is shown.
  const hasMetadata = /extrafield:/i.test(text);
  return listExperiments(store)
    .filter((experiment) => states.includes(experiment.state) && mayRead(experiment) && matches(experiment))
    .filter((experiment) => isFiltered(experiment, query, store))
    .sort((a, b) => pinned(b) - pinned(a) || direction * compare(a, b) || direction * (a.id - b.id))
    .slice(offset, limit > 0 ? offset + limit : undefined)
    .map((experiment) => ({
      ...listedRecord(experiment, store),
      ...(hasMetadata && { metadata: experiment.metadata }),
    }));
}

type Compare = (a: Experiment, b: Experiment) => number;

const pinned = ({ attributes }: Experiment) => attributes.is_pinned ?? 0;
const byText =
  (text: (experiment: Experiment) => string): Compare =>
  (a, b) =>
    text(a).localeCompare(text(b), 'en', { sensitivity: 'base' });
const byChange = byText(({ modified_at }) => modified_at);
const byNumber =
  (name: 'custom_id' | 'rating'): Compare =>
  (a, b) =>
    (a.attributes[name] ?? 0) - (b.attributes[name] ?? 0);

const ORDERS: Readonly<Record<string, Compare>> = {
  customid: byNumber('custom_id'),
  date: byText(({ date }) => date),
  id: () => 0,
  lastchange: byChange,
  rating: byNumber('rating'),
  title: byText(({ title }) => title),
  user: byText(({ userid }) => fullName(userOf(userid))),
};

/** Parameters that name a column, with the numbers to be found in it. `0` alone counts as absent. */
const FILTERS = {
  cat: 'category',
  category: 'category',
  status: 'status',
  owner: 'userid',
  locked: 'locked',
  rating: 'rating',
};

function isFiltered(experiment: Experiment, query: Call['query'], store: Store): boolean {
  return Object.entries(FILTERS).every(([name, column]) => {
    const wanted = single(query[name]);
    if (!wanted || wanted === '0') return true;
    const value = Object.entries(listedRecord(experiment, store)).find(([key]) => key === column)?.[1];
    return wanted.split(',').some((one) => (/^null$/i.test(one) ? value === null : value === toInteger(one)));
  });
}

type Matches = (experiment: Experiment) => boolean;

/**
 * `title:word`, `body:"some words"`, `extrafield:KEY:'value'` or words alone, combined with AND, OR, NOT and
 * parentheses. The grammar is eLabFTW's; of its fields, those that need other resources are missing.
 */
function parseSearch(text: string): Matches {
  let at = 0;
  const fail = () => improper(`Error with extended search: Line 1, Column ${at + 1}: syntax error.`);
  const take = (pattern: RegExp): string | undefined => {
    const sticky = new RegExp(pattern, `${pattern.flags}y`);
    sticky.lastIndex = at;
    const found = sticky.exec(text)?.[0];
    at += found?.length ?? 0;
    return found;
  };
  const needed = (pattern: RegExp): string => {
    const found = take(pattern);
    if (found === undefined) throw fail();
    return found;
  };

  function either(): Matches {
    take(/\s*/);
    const all = [both()];
    while (take(/\s+OR\s+|\s*\|\s*/i) !== undefined) all.push(both());
    return (experiment) => all.some((matches) => matches(experiment));
  }
  function both(): Matches {
    const all = [one()];
    while (take(/\s+AND\s+|\s*&\s*|\s+(?!OR\s|[|)]|$)/i) !== undefined) all.push(one());
    return (experiment) => all.every((matches) => matches(experiment));
  }
  function one(): Matches {
    if (take(/NOT\s+|!\s*/i) === undefined) return term();
    const matches = term();
    return (experiment) => !matches(experiment);
  }
  function term(): Matches {
    if (take(/\(/) === undefined) {
      const field = take(/[a-z_]+:/i)
        ?.slice(0, -1)
        .toLowerCase();
      return field === undefined ? anywhere(value(/(?!(?:NOT|AND|OR)(?:\s|$))/i)) : within(field);
    }
    const matches = either();
    needed(/\s*\)/);
    return matches;
  }
  /** A quoted text or a word. */
  const value = (before = /(?:)/): string => {
    needed(before);
    const found = needed(/"(?:[^\n\r\f\\"]|\\"|\\)+"|'(?:[^\n\r\f\\']|\\'|\\)+'|[^\n\r\f"'|&!(): ]+/);
    return found.replace(/^(["'])(.*)\1$/s, (_, quote: string, inside: string) =>
      inside.replaceAll(`\\${quote}`, quote),
    );
  };
  function within(field: string): Matches {
    if (field === 'date') return onDates(take(/[<>]=?|!?=/) ?? '=', needed(DATE), take(/\.\./) && needed(DATE));
    if (NUMBERS[field]) return numbered(NUMBERS[field], needed(/\d+|[a-z]+/i));
    const isStrict = take(/s:/) !== undefined;
    if (field === 'extrafield') return extraField(value(), like(value(/:/), isStrict));
    const read = TEXTS[field];
    if (!read) throw OTHER_FIELDS.has(field) ? unsupported(`searching for ${field}`) : fail();
    const pattern = like(value(), isStrict);
    return (experiment) => pattern.test(read(experiment));
  }

  const matches = either();
  take(/\s*/);
  if (at < text.length) throw fail();
  return matches;
}

const authorOf = ({ userid }: Experiment) => fullName(userOf(userid));

const TEXTS: Readonly<Record<string, (experiment: Experiment) => string>> = {
  author: authorOf,
  owner: authorOf,
  body: ({ body }) => body,
  title: ({ title }) => title,
  elabid: elabidOf,
};

const NUMBERS: Readonly<Record<string, (experiment: Experiment) => number | null | undefined>> = {
  id: ({ id }) => id,
  custom_id: ({ attributes }) => attributes.custom_id,
  rating: ({ attributes }) => attributes.rating ?? 0,
  locked: ({ lockedby }) => Number(lockedby !== null),
};

const OTHER_FIELDS = new Set(
  'category created_at group locked_at state status timestamped timestamped_at visibility'.split(' '),
);

const WORDS: Readonly<Record<string, number>> = { true: 1, yes: 1, on: 1, false: 0, no: 0, off: 0, unrated: 0 };

function numbered(read: (experiment: Experiment) => number | null | undefined, text: string): Matches {
  const wanted = WORDS[text.toLowerCase()] ?? toInteger(text);
  return (experiment) => read(experiment) === wanted;
}

const DATE = /\d{4}[.,/-]?\d{2}[.,/-]?\d{2}/;

function onDates(operator: string, text: string, until: string | undefined): Matches {
  const [from = '', to = ''] = [text, until ?? text].map((date) => date.replace(/\D/g, ''));
  return ({ date }) => {
    const day = date.replaceAll('-', '');
    if (until) return day >= from && day <= to;
    if (operator === '!=') return day !== from;
    return operator.includes(day === from ? '=' : day > from ? '>' : '<');
  };
}

/** The words may be in title, body or elabid, or in the date. In the body, `<`, `>` and `&` are entities. */
function anywhere(text: string): Matches {
  const pattern = like(text);
  const inBody = like(text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;'));
  return (experiment) =>
    [experiment.title, experiment.date, elabidOf(experiment)].some((one) => pattern.test(one)) ||
    inBody.test(experiment.body);
}

/** `**`: any field. Case is ignored in keys too. */
function extraField(key: string, pattern: RegExp): Matches {
  return ({ metadata }) => {
    const fields = Object(Object(parseJson(metadata ?? 'null'))['extra_fields']);
    return Object.entries<{ value?: unknown }>(fields).some(
      ([name, field]) =>
        (key === '**' || name.toLowerCase() === key.toLowerCase()) && pattern.test(toText(Object(field)['value'])),
    );
  };
}

/** A substring in any case. `_` stands for any character and `%` for any number of characters. */
function like(text: string, isStrict = false): RegExp {
  const source = text.replace(/\\?[_%]|[.*+?^${}()|[\]\\/]/g, (part) => {
    if (part === '_') return '.';
    if (part === '%') return '.*';
    return part.startsWith('\\') && part.length > 1 ? part.slice(1) : `\\${part}`;
  });
  return new RegExp(isStrict ? `^(?:${source})$` : source, 'isu');
}
