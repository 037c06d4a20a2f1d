/** The known name that a mistyped one was most likely meant to be; nothing where none is near. */
export function nearest(name: string, known: Iterable<string>): string | undefined {
  const wanted = fold(name);
  let best: string | undefined;
  let least = Number.POSITIVE_INFINITY;
  for (const candidate of known) {
    const distance = distanceBetween(wanted, fold(candidate));
    if (distance < least) [best, least] = [candidate, distance];
  }
  return best;
}

/** Case, blanks and the signs that stand for blanks are not what a name is remembered by. */
const fold = (name: string): string => name.toLowerCase().replace(/[\s_-]+/g, '');

/** Infinite where the names have too little in common to be taken for each other. */
function distanceBetween(a: string, b: string): number {
  const [short, long] = a.length < b.length ? [a, b] : [b, a];
  const bearable = Math.floor(long.length / 3);
  const edits = long.length - short.length > bearable ? Number.POSITIVE_INFINITY : countEdits(a, b);
  if (edits <= bearable) return edits;
  // `Sample` was meant to be `Sample Name`, unless a mere slip of the finger explains it better.
  return short.length >= 3 && long.includes(short) ? long.length : Number.POSITIVE_INFINITY;
}

/** Letters added, left out, replaced or swapped with their neighbour (optimal string alignment). */
function countEdits(a: string, b: string): number {
  let before: number[] = [];
  let above = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = cell(above, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      row[j] = Math.min(
        replaced,
        cell(above, j) + 1,
        cell(row, j - 1) + 1,
        swapped ? cell(before, j - 2) + 1 : Number.POSITIVE_INFINITY,
      );
    }
    [before, above] = [above, row];
  }
  return cell(above, b.length);
}

const cell = (row: readonly number[], j: number): number => row[j] ?? Number.POSITIVE_INFINITY;
