/** Text from files and names of files, on somebody's terminal: nothing in it may move the cursor or turn the text. */

/** On one line. */
export const oneLine = (text: string): string => text.replace(/[\p{Cc}\p{Cf}\u2028\u2029]+/gu, ' ');

/** Line breaks and tabs stay. */
export const manyLines = (text: string): string =>
  text.replace(/\r\n?/g, '\n').replace(/[^\P{Cc}\n\t]|\p{Cf}/gu, '\ufffd');

export const indent = (text: string, by = '  '): string => text.replace(/^/gm, by);
