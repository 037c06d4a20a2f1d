/** A name as people use it: the file's own, on one line, without the `:` `=` `?` that only end it. */
export const cleanName = (written: string): string =>
  written
    .replace(/\s*\n\s*/g, ' ')
    .trim()
    .replace(/[\s:=?]+$/, '');

/** Gives each name once: one that comes again gets ` (2)`. */
export function createUniqueNames(): (name: string) => string {
  const taken = new Set<string>();
  const times = new Map<string, number>();
  return (name) => {
    let unique = name;
    let n = times.get(name) ?? 1;
    while (taken.has(unique)) unique = `${name} (${++n})`;
    times.set(name, n);
    taken.add(unique);
    return unique;
  };
}
