import { isBlank, type Line } from '../lines.js';
import { merge } from './kinds.js';
import type { Found, FoundRows } from './layout.js';
import type { FoundPlate } from './plates.js';

/** Stretches of a file that are one table: the same columns under titles of their own, or the plates of a run. */
export interface Group<T extends Found = Found> {
  readonly parts: readonly T[];
  /** The line above each part that says what it is; none where a part has no such line. */
  readonly titles: readonly (Line | undefined)[];
}

export function groupTables(found: readonly Found[], lines: readonly Line[]): Group[] {
  const groups: { parts: Found[]; titles: (Line | undefined)[] }[] = [];
  for (const [n, next] of found.entries()) {
    const title = titleOf(next, lines, found[n - 1]?.to ?? 0);
    const open = groups.at(-1);
    if (open && belongs(next, title, open)) {
      open.parts.push(next);
      open.titles.push(title);
    } else groups.push({ parts: [next], titles: [title] });
  }
  return groups;
}

function belongs(next: Found, title: Line | undefined, { parts, titles }: Group): boolean {
  const [first] = parts;
  // Without a title nothing tells where one part ends and the next begins.
  if (!first || !title || titles[0] === undefined || first.kind !== next.kind) return false;
  return first.kind === 'plate' || (next.kind === 'rows' && isContinued(first, next));
}

/** The same columns, under the same names or under none. */
function isContinued(first: FoundRows, next: FoundRows): boolean {
  if (merge(first.body.kinds, next.body.kinds) === undefined) return false;
  return next.heading.rows === 0 || namesOf(next) === namesOf(first);
}

const namesOf = ({ heading }: FoundRows): string => heading.names.map(({ text }) => text.trim()).join('\n');

/** The line above a table, where it is a few words by itself; for rows whose names stand further up, the line between. */
export function titleOf(found: Found, lines: readonly Line[], top: number): Line | undefined {
  const between = found.kind === 'rows' && found.heading.skip.length > 0 ? found.heading.title : undefined;
  if (between) return between;
  for (let index = found.from - 1; index >= top; index--) {
    const line = lines[index];
    if (!line || isBlank(line)) continue;
    const filled = line.cells.filter((cell) => cell !== '');
    return filled.length <= 2 && line.text.trim().length <= 100 ? line : undefined;
  }
  return undefined;
}

export const isPlates = (group: Group): group is Group<FoundPlate> => group.parts[0]?.kind === 'plate';
export const isRows = (group: Group): group is Group<FoundRows> => group.parts[0]?.kind === 'rows';
