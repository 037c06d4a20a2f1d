import { InvalidArgumentError } from 'commander';

/** A run or an experiment: a whole number from 1. */
export function readNumber(text: string): number {
  const number = Number(text);
  if (!/^[1-9][0-9]*$/.test(text) || !Number.isSafeInteger(number))
    throw new InvalidArgumentError('expected a number from 1.');
  return number;
}

/** Several of them, each once. */
export const readNumbers = (text: string, before: readonly number[] = []): number[] => [
  ...new Set([...before, readNumber(text)]),
];
