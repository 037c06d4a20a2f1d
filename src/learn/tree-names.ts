import type { ParseMapping } from '../config/vocabulary.js';
import { type Node, UNIT } from '../parse/extract/tree.js';
import { unique } from '../text.js';

/** What the values of JSON and XML are called: by their own name and, where needed, those of what they are in. */

export type Facts = NonNullable<ParseMapping['facts']>;
export type Spec = Facts[string];

/** Something in each element of a level. `path`: from the element. */
export interface Part {
  readonly path: string;
  /** The names on the way, the own name last. */
  readonly names: readonly string[];
  readonly nodes: readonly Node[];
  /** Where its unit is, from the element or the root. */
  unit?: string | undefined;
}

export const tableName = (names: readonly string[]): string => cleanName(names.at(-1) ?? '') || 'readings';

const cleanName = (name: string): string => name.replace(/^@/, '').trim();

/** Names that say nothing without that of what they are in. */
const GENERIC = /^(?:@.*|name|id|text|type|units?|key|code|label|version|status|count|index)$/i;

/** The own name, with as many of the names before it as make it understandable and different from the others. */
export function nameParts(parts: readonly Part[]): [string, Spec][] {
  const named = parts.map((part) => ({ part, depth: depthOf(part.names) }));
  const nameOf = ({ part: { names }, depth }: (typeof named)[number]) =>
    [...new Set(names.slice(-depth).map(cleanName))].join(' ');
  for (let round = 0; round < 4; round++) {
    const times = new Map<string, number>();
    for (const each of named) times.set(nameOf(each), (times.get(nameOf(each)) ?? 0) + 1);
    for (const each of named) {
      if ((times.get(nameOf(each)) ?? 0) > 1 && each.depth < each.part.names.length) each.depth++;
    }
  }
  const taken: Record<string, true> = {};
  return named.map((each) => {
    const name = unique(nameOf(each) || 'value', taken);
    taken[name] = true;
    const { path, unit } = each.part;
    return [name, unit === undefined ? path : { from: path, unit: { from: unit } }];
  });
}

function depthOf(names: readonly string[]): number {
  // A unit in a list of units is not the value of the name.
  return names.length > 1 && (GENERIC.test(names.at(-1) ?? '') || UNIT.test(names.at(-2) ?? '')) ? 2 : 1;
}
