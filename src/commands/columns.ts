/** Rows under a heading, in columns. On a terminal the last column is cut where the line ends; elsewhere nothing is. */
export function columns(
  heading: readonly string[],
  rows: readonly (readonly string[])[],
  width: number | undefined = process.stdout.columns,
): string {
  const all = [heading, ...rows].map((row) => row.map(oneLine));
  const widths = heading.map((_, column) => Math.max(...all.map((row) => lengthOf(row[column] ?? ''))));
  return all
    .map((row) => row.map((cell, column) => padded(cell, widths[column] ?? 0)).join('  '))
    .map((line) => cut(line.trimEnd(), width))
    .join('\n');
}

/** What others wrote is shown, and moves no cursor and rings no bell. Lines and tabs stay. */
export const printable = (text: string): string =>
  text.replace(/\r\n?/g, '\n').replace(/[^\P{C}\n\t\u200c\u200d]/gu, '�');

const oneLine = (cell: string): string => printable(cell).replace(/\s+/g, ' ').trim();

/** In characters as people count them, more or less: what is wide in the terminal is not measured. */
const lengthOf = (text: string): number => [...text].length;

const padded = (cell: string, width: number): string => cell + ' '.repeat(width - lengthOf(cell));

const cut = (line: string, width: number | undefined): string =>
  width === undefined || lengthOf(line) <= width ? line : `${[...line].slice(0, width - 1).join('')}…`;
