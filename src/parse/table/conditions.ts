import { regexSource } from '../../config/grammar.js';
import type { ValueReader } from '../values/value.js';

type Condition = string | number | boolean;

/** Whether a cell is as `where` wants it: any of the listed conditions will do. */
export function compileConditions(
  wanted: readonly Condition[],
  values: ValueReader,
): (text: string) => boolean {
  const tests = wanted.map((condition) => compileCondition(condition, values));
  return (text) => tests.some((test) => test(text));
}

function compileCondition(condition: Condition, { read, missing }: ValueReader): (text: string) => boolean {
  if (condition === 'any') return (text) => text !== '' && !missing.has(text);
  if (typeof condition === 'number') return (text) => read(text).value === condition;
  if (typeof condition === 'boolean') return (text) => text.toLowerCase() === String(condition);
  const source = regexSource(condition);
  if (source === undefined) return (text) => text === condition;
  const regex = new RegExp(source);
  return (text) => regex.test(text);
}
