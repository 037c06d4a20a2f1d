/**
 * @typedef {object} Result
 * @property {string} what
 * @property {string} baseline
 * @property {number[]} ratios One for each round.
 * @property {number} target The ratio should stay below it.
 * @property {string} [raw] What stands behind the ratios, for who asks for it.
 */

export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** Round by round: what slows the machine for a while slows both, and falls out. */
export const ratios = (ours, theirs) => ours.map((value, round) => value / theirs[round]);

/**
 * Round after round, as many as fit: on a machine that is slow or busy fewer, but enough for a median.
 * @param {{ least: number, most: number, withinMs: number }} limits
 */
export function* rounds({ least, most, withinMs }) {
  const startedMs = performance.now();
  for (let round = 1; round <= most; round++) {
    if (round > least && performance.now() - startedMs > withinMs) return;
    yield round;
  }
}

const digits = (value) => (value < 10 ? value.toFixed(2) : value.toFixed(1));

/** @param {Result[]} results */
export function table(results) {
  const rows = results.map(({ what, baseline, ratios: all, target }) => [
    what,
    baseline,
    digits(median(all)),
    `${digits(Math.min(...all))} – ${digits(Math.max(...all))}`,
    `< ${target}`,
    median(all) < target ? '' : 'missed',
  ]);
  const head = ['what', 'against', 'ratio', 'lowest – highest', 'target', ''];
  const widths = head.map((_, column) => Math.max(...[head, ...rows].map((row) => row[column].length)));
  const line = (row) =>
    row
      .map((cell, column) => (column < 2 ? cell.padEnd(widths[column]) : cell.padStart(widths[column])))
      .join('  ')
      .trimEnd();
  return [line(head), line(widths.map((width) => '─'.repeat(width))), ...rows.map(line)].join('\n');
}
