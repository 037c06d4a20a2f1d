import type { Node } from './node.js';

/**
 * Of all hits of a path from the top, the one that belongs to a row: it stands in the row, else in the innermost
 * place that holds both. So `//Sample/@name` is the row's own sample, and `//Serial_number` the only one there is.
 */
export function nearestHit<H extends { readonly node: Node }>(row: Node, hits: readonly H[]): H | undefined {
  if (hits.length < 2) return hits[0];
  // Hits are in the order of the file, so those that share most with the row stand right before or after it.
  const after = firstFrom(row.order, hits);
  const before = commonOf(row, hits[after - 1]?.node);
  const behind = commonOf(row, hits[after]?.node);
  const common = before && behind ? innerOf(before, behind) : (before ?? behind);
  return hits[firstFrom(common?.order ?? 0, hits)];
}

/** Where the first hit is that stands at or below this order. */
function firstFrom(order: number, hits: readonly { readonly node: Node }[]): number {
  let low = 0;
  let high = hits.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((hits[middle]?.node.order ?? 0) < order) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The innermost place that holds both. */
function commonOf(row: Node, hit: Node | undefined): Node | undefined {
  if (!hit) return undefined;
  let [one, other]: (Node | undefined)[] = [row, hit];
  // What stands later in the file is never outside of what stands earlier.
  while (one && other && one !== other) {
    if (one.order > other.order) one = one.parent;
    else other = other.parent;
  }
  return one;
}

/** One holds the other, since both hold the row. */
const innerOf = (one: Node, other: Node): Node => (one.order > other.order ? one : other);
