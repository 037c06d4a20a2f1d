import type { ParseOptions } from '../../config/vocabulary.js';
import type { Line } from '../lines.js';
import { createWatchedCells } from '../read/cells.js';
import type { Context } from '../read/context.js';
import { createPairFinder } from '../read/find-pairs.js';
import { load } from '../source.js';
import type { TreeFile } from '../trees/read-tree.js';
import { cutAt } from './delimited.js';
import type { OpenFile } from './open-file.js';
import { MOST_WHOLE_BYTES, type WholeFile } from './whole.js';

/** The whole of a file, for formats that cannot be read piece by piece. */
export async function loadWhole(
  { source, refuse, pace }: OpenFile,
  { limits }: ParseOptions,
): Promise<WholeFile> {
  return { bytes: await load(source, limits.maxBytes ?? MOST_WHOLE_BYTES, refuse), refuse, pace };
}

const NONE: ReadonlySet<string> = new Set();

/** What `meta` and cell references find beside the tree: in the file's name or path, or in its lines where it has some. */
export async function namedIn(
  { source, refuse, pace }: OpenFile,
  options: ParseOptions,
  lines: readonly Line[] = [],
): Promise<TreeFile> {
  const context: Context = {
    ...{ options, refuse, pace, sheets: [], first: lines.slice(0, 100), maxKeptCells: 0 },
    ...{ path: source.path, name: source.name, cut: cutAt(options.delimiter ?? 'tab', options.quote) },
  };
  const cells = createWatchedCells(context);
  const finders = options.meta.map((finder) => createPairFinder(finder, context));
  for (const line of lines) {
    cells.take(line);
    for (const finder of finders) finder.take(line, false);
  }
  const pairs = finders.flatMap((finder) => finder.finish(NONE));
  return {
    ...{ refuse, pace },
    named: pairs.map(({ line, ...pair }) => ({ ...pair, line: line?.number })),
    cell: (written) => cells.at(written)?.text,
  };
}
