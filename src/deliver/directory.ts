import { NotebookError } from '../errors.js';
import { joinWords, nearest } from '../text.js';

/** What an experiment on eLabFTW can be given by name. */
const NAMED = { category: 'category', status: 'status', template: 'template', link: 'resource' } as const;

export type Named = keyof typeof NAMED;

interface Entry {
  readonly id: number;
  readonly title: string;
}

/** All categories, statuses or templates; the resources whose names contain `wanted`, or the one with this id. */
export type ListNamed = (kind: Named, wanted: string | number) => Promise<readonly Entry[]>;

const KEEP_MS = 300_000;
const SHOWN = 12;

/** The ids of categories, statuses, templates and resources by name, as last read from the server. */
export class Directory {
  readonly #known = new Map<string, { readonly entries: readonly Entry[]; readonly at: number }>();
  /** Ids by the name under which they were found, so that a new name on the server stops nothing. */
  readonly #found = new Map<string, number>();

  async idOf(kind: Named, wanted: string | number, list: ListNamed, now: number): Promise<number> {
    // There can be more resources than a list has. A link to one that does not exist gets 404.
    if (kind === 'link' && typeof wanted === 'number') return wanted;
    const entries = await this.#entries(kind, wanted, list, now);
    const key = JSON.stringify([kind, wanted]);
    const matches = entries.filter(({ id, title }) =>
      typeof wanted === 'number' ? id === wanted : isSame(title, wanted),
    );
    const earlier = entries.find(({ id }) => id === this.#found.get(key));
    const [match = earlier, ...others] = matches;
    if (!match) throw unknownName(kind, wanted, entries);
    if (others.length > 0) throw ambiguousName(kind, wanted, matches);
    this.#found.set(key, match.id);
    return match.id;
  }

  async #entries(kind: Named, wanted: string | number, list: ListNamed, now: number): Promise<readonly Entry[]> {
    // A notebook can have thousands of resources: these are searched for.
    const key = kind === 'link' ? `${kind} ${wanted}` : kind;
    const known = this.#known.get(key);
    const has = known?.entries.some(({ id, title }) => id === wanted || isSame(title, String(wanted)));
    if (known && has && now - known.at < KEEP_MS) return known.entries;
    const entries = await list(kind, wanted);
    this.#known.set(key, { entries, at: now });
    return entries;
  }
}

const isSame = (a: string, b: string): boolean => a.trim().toLowerCase() === b.trim().toLowerCase();

function unknownName(kind: Named, wanted: string | number, entries: readonly Entry[]): NotebookError {
  const names = entries.map(({ title }) => title);
  const guess = nearest(String(wanted), names);
  const shown = names.length > SHOWN ? [...names.slice(0, SHOWN), `${names.length - SHOWN} more`] : names;
  const known = names.length === 0 ? 'the notebook has none' : `it has ${joinWords(shown.map(quote))}`;
  const instead = guess === undefined ? '' : ` Did you mean ${quote(guess)}?`;
  return new NotebookError('request', `the notebook has no ${NAMED[kind]} ${quote(wanted)}; ${known}`, {
    hint: `correct \`experiment.${kind}\` in the configuration, or create it in the notebook. Then retry with --remap.${instead}`,
  });
}

const ambiguousName = (kind: Named, wanted: string | number, matches: readonly Entry[]): NotebookError =>
  new NotebookError(
    'request',
    `the notebook has several with the name ${quote(wanted)}: ${joinWords(matches.map(({ id }) => String(id)))}`,
    { hint: `write the id of the ${NAMED[kind]} in \`experiment.${kind}\` instead. Then retry with --remap` },
  );

const quote = (name: string | number): string => (typeof name === 'number' ? String(name) : JSON.stringify(name));
