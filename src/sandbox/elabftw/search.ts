import { type Entry, STATE } from '../entries.js';
import type { SandboxRequest } from '../resource.js';
import type { Store } from '../store.js';
import { type Account, mayRead } from './access.js';
import { improper } from './failure.js';
import { extraFields } from './metadata.js';
import { single, toInteger, toText } from './php.js';
import { listedEntry } from './record.js';

type Query = SandboxRequest['query'];

/** The list of experiments, last changed first: those in use unless other states are asked for. */
export function listEntries(query: Query, store: Store, account: Account, usualLimit: number) {
  const states = readStates(single(query['state']));
  const matches = parseSearch(single(query['extended']) ?? '');
  const limit = toInteger(single(query['limit'])) || usualLimit;
  const offset = Math.max(0, toInteger(single(query['offset'])));
  return store.entries
    .all()
    .filter((entry) => states.includes(entry.state) && mayRead(entry, account) && matches(entry))
    .sort((a, b) => b.modified_at.localeCompare(a.modified_at) || b.id - a.id)
    .slice(offset, limit > 0 ? offset + limit : undefined)
    .map((entry) => listedEntry(entry, store));
}

const readStates = (text: string | undefined) => (text ? text.split(',').map(toInteger) : [STATE.normal]);

type Matches = (entry: Entry) => boolean;

/** One term of a search: `title:word`, `title:"some words"`, `extrafield:KEY:"value"`, or words alone. */
const TERM =
  /\s*(?:AND\s+|&\s*)?(?:(title|body|extrafield:(?:"[^"]+"|'[^']+'|[^\s:"']+)):)?("[^"]*"|'[^']*'|[^\s:"'()|!]+)\s*/y;

/** All terms must match. Of the whole grammar of eLabFTW's search, the part that finds a title or a field. */
function parseSearch(text: string): Matches {
  const terms: Matches[] = [];
  const term = new RegExp(TERM);
  while (term.lastIndex < text.length) {
    const at = term.lastIndex;
    const found = term.exec(text);
    if (!found) throw improper(`Line 1, Column ${at + 1}: search syntax error.`);
    terms.push(matchTerm(found[1] ?? '', like(unquoted(found[2] ?? ''))));
  }
  return (entry) => terms.every((matches) => matches(entry));
}

function matchTerm(field: string, pattern: RegExp): Matches {
  if (field === 'title') return ({ title }) => pattern.test(title);
  if (field === 'body') return ({ body }) => pattern.test(body);
  if (field === '') return ({ title, body }) => pattern.test(title) || pattern.test(body);
  const key = unquoted(field.slice('extrafield:'.length));
  return ({ metadata }) => pattern.test(toText(extraFields(metadata)[key]?.value));
}

const unquoted = (text: string) => text.replace(/^(["'])(.*)\1$/s, '$2');

/** A substring in any case, in which `_` stands for any character and `%` for any number of them. */
function like(text: string): RegExp {
  const source = text.replace(/\\?[_%]|[.*+?^${}()|[\]\\/]/g, (part) => {
    if (part === '_') return '.';
    if (part === '%') return '.*';
    return part.startsWith('\\') && part.length > 1 ? part.slice(1) : `\\${part}`;
  });
  return new RegExp(source, 'isu');
}
