/** A name as people use it: the file's own, on one line, without the `:` `=` `?` that only end it. */
export function cleanName(written: string): string {
  const name = written.includes('\n')
    ? written
        .split('\n')
        .map((part) => part.trim())
        .join(' ')
    : written;
  // By hand: a pattern for the end of a text is tried at each of its characters, and a line can be long.
  let end = name.length;
  while (end > 0 && ENDINGS.has(name.charAt(end - 1))) end--;
  return name.slice(0, end).trim();
}

const ENDINGS = new Set([' ', '\t', '\u00a0', ':', '=', '?']);

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
