const MARKS = ['#', '!', '~', '%', '//', '*', ';'];
const LOOK_LINES = 200;

/** What comments begin with: the first line is one, others are, and rows are not. */
export function findCommentMark(texts: readonly string[]): string | undefined {
  const filled = texts.slice(0, LOOK_LINES).filter((text) => text.trim() !== '');
  const mark = MARKS.find((candidate) => filled[0]?.trimStart().startsWith(candidate));
  if (mark === undefined) return undefined;
  const marked = filled.filter((text) => text.trimStart().startsWith(mark)).length;
  const isLabelled = mark === '#' && filled.some((text) => text.startsWith('##'));
  return marked >= 2 && marked < filled.length && !isLabelled ? mark : undefined;
}
