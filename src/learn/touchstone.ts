import type { ParseMapping } from '../config/vocabulary.js';
import type { FinderMapping } from './pieces.js';

/** The option line of Touchstone files, which network analysers write: `# GHz S RI R 50`. */

interface Options {
  /** The number of its line. */
  readonly line: number;
  readonly parameter: string;
  readonly format: keyof typeof PARTS;
  /** How many columns the rows have. */
  readonly columns: number;
}

const OPTION_LINE = /^\s*#\s*[kmg]?hz\s+([syzgh])\s+(ri|ma|db)\s+r\s+\S+\s*$/i;

/** How each format writes a complex number: the names and units of its two parts. */
const PARTS = {
  RI: [{ name: 'real' }, { name: 'imag' }],
  MA: [{ name: 'magnitude' }, { name: 'angle', unit: 'deg' }],
  DB: [
    { name: 'magnitude', unit: 'dB' },
    { name: 'angle', unit: 'deg' },
  ],
} as const;

/** Further down, there are rows. */
const MAX_LINES = 200;

export function findOptions(texts: readonly string[]): Options | undefined {
  const at = texts.slice(0, MAX_LINES).findIndex((text) => OPTION_LINE.test(text));
  const [, parameter, format] = OPTION_LINE.exec(texts[at] ?? '') ?? [];
  const row = texts.slice(at + 1).find((text) => /^\s*[-+.\d]/.test(text));
  if (parameter === undefined || format === undefined || row === undefined) return undefined;
  return {
    ...{ line: at + 1, parameter: parameter.toUpperCase(), columns: row.trim().split(/[\s,]+/).length },
    format: format.toUpperCase() as Options['format'],
  };
}

/** The standard order of two ports. More ports take several lines. */
const PORTS: ReadonlyMap<number, readonly string[]> = new Map([
  [3, ['11']],
  [9, ['11', '21', '12', '22']],
]);

/** With the options as facts, the unit of the frequency, and the names of the other columns unless the file has them. */
export function withOptions(mapping: ParseMapping, { line, parameter, format, columns }: Options): ParseMapping {
  const { table, meta = [] } = mapping;
  const ports = PORTS.get(columns);
  if (!table || !ports || table.columns !== undefined) return mapping;
  const parts = ports.flatMap((port) =>
    PARTS[format].map((part) => ({ ...part, name: `${parameter}${port} ${part.name}` })),
  );
  const named = parts.map(({ name, ...unit }, n) => [name, { from: n + 2, ...unit }]);
  const anyCase = (word: string) => [...word].map((letter) => `[${letter}${letter.toLowerCase()}]`).join('');
  // Another format would give the columns other names, so such a file does not match.
  const words = [parameter, format, 'R'].map(anyCase).join('\\s+');
  const match = `/^\\s*#\\s*(?<options>(?<frequency_unit>[kKmMgG]?[hH][zZ])\\s+${words}\\s+\\S+)\\s*$/`;
  // Any other remark of as many words is no header.
  const hasNames = typeof table.header === 'string' && /fr?e?q|hz/i.test(table.header);
  const isOptions = (finder: FinderMapping) =>
    finder.line === line || (line === 1 && finder.match?.includes('<heading>'));
  return {
    ...mapping,
    meta: [...[meta].flat().filter((finder) => !isOptions(finder)), { match }],
    table: {
      ...(hasNames ? table : { header: 'none', skip: '/^\\s*[#!]/' }),
      columns: {
        frequency: { from: 1, unit: { from: 'frequency_unit' } },
        ...(!hasNames && Object.fromEntries(named)),
      },
    },
  };
}
