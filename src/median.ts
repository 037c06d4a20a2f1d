/** The middle one of numbers in their order; between the two in the middle, where there are two. */
export function medianOf(sorted: Float64Array): number {
  const upper = sorted[sorted.length >> 1] ?? Number.NaN;
  const lower = sorted[(sorted.length - 1) >> 1] ?? Number.NaN;
  // Halved before they are added: the sum of two great numbers is infinite.
  return upper === lower ? upper : lower / 2 + upper / 2;
}
