import { createInterface } from 'node:readline';
import { UsageError } from '../errors.js';

/** All of standard input. On a terminal it is said what is expected, and how it ends. */
export async function readInput(what: string): Promise<string> {
  if (process.stdin.isTTY) process.stderr.write(`${what}; a line with Ctrl-D ends it:\n`);
  const pieces: Buffer[] = [];
  for await (const piece of process.stdin) pieces.push(piece as Buffer);
  return Buffer.concat(pieces).toString();
}

/** What cannot be taken back is asked for on a terminal; where nobody can answer, it must have been said before. */
export async function confirm(question: string, yes: boolean | undefined): Promise<boolean> {
  if (yes) return true;
  if (!process.stdin.isTTY || !process.stderr.isTTY) {
    throw new UsageError('nobody can be asked here, and this cannot be taken back', {
      hint: 'add --yes to do it without being asked',
    });
  }
  process.stderr.write(`${question} [y/N] `);
  for await (const line of createInterface({ input: process.stdin })) return /^\s*y(es)?\s*$/i.test(line);
  return false;
}

const ENTER = new Set(['\r', '\n', '\x04']);

/** A secret: of a terminal one line that is not shown, else all of standard input. */
export async function readSecret(what: string): Promise<string> {
  const { stdin, stderr } = process;
  if (!stdin.isTTY) return (await readInput(what)).trim();
  stderr.write(`${what} (it is not shown): `);
  stdin.setRawMode(true);
  let text = '';
  try {
    for await (const piece of stdin) {
      for (const character of String(piece)) {
        if (ENTER.has(character)) return text.trim();
        if (character === '\x03') throw new UsageError('nothing was entered');
        text = character === '\x7f' || character === '\b' ? text.slice(0, -1) : text + character;
      }
    }
    return text.trim();
  } finally {
    stdin.setRawMode(false);
    stderr.write('\n');
  }
}
