import { dirname, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';
import { readYaml } from '../config/yaml.js';
import { ConfigError, explain, LabfeedError, type Place, UsageError } from '../errors.js';
import { nearest } from '../text.js';

interface Question<T> {
  /** Its name in the file of `--answers`. */
  readonly key: string;
  readonly text: string;
  /** Why it is asked, in a sentence. */
  readonly why: string;
  /** Taken if the answer is empty. */
  readonly preset?: string | undefined;
  /** How the default is shown, if not as it is. */
  readonly presetShown?: string;
  /** Typed without an echo, and not accepted in a file. Reads what the file has instead. */
  readonly secret?: (written: unknown, where: Place) => string;
  /** What the answer means. Throws a LabfeedError if it cannot be used. */
  read(answer: string): T | Promise<T>;
}

/** Where the answers come from: a person, or a file. */
export interface Answers {
  /** Relative paths are relative to this folder. */
  readonly folder: string;
  ask<T>(question: Question<T>): Promise<T>;
  close(): void;
}

interface Terminal {
  readonly input: NodeJS.ReadableStream & { readonly isTTY?: boolean };
  readonly output: NodeJS.WritableStream;
}

/** Asks a person. A wrong answer is asked again, with the reason. */
export function askPerson({ input, output }: Terminal): Answers {
  let isHidden = false;
  // readline repeats what is typed here, as bytes: its control sequences move the cursor.
  const echo = new Writable({
    write(chunk: Buffer, _encoding, done) {
      if (!isHidden) output.write(chunk);
      done();
    },
  });
  // Without a history: the arrow keys must not show a key again.
  const lines = createInterface({ input, output: echo, terminal: input.isTTY ?? false, historySize: 0 });
  const reader = lines[Symbol.asyncIterator]();
  let isClosed = false;
  lines.once('close', () => {
    isClosed = true;
  });
  async function readLine(prompt: string, hide: boolean): Promise<string> {
    lines.setPrompt(prompt);
    // Lines that were piped in are still to be read after the end of the input. From Node 24, `prompt` throws then.
    if (isClosed) output.write(prompt);
    else lines.prompt();
    isHidden = hide;
    const { value, done } = await reader.next().finally(() => {
      isHidden = false;
      if (hide) output.write('\n');
    });
    if (done) throw new StoppedError();
    return String(value).trim();
  }
  return {
    folder: process.cwd(),
    async ask({ text, why, preset, presetShown = preset, secret, read }) {
      output.write(`\n${text}\n  ${why}\n`);
      for (;;) {
        const prompt = `${secret ? 'hidden' : ''}${secret && presetShown ? ', ' : ''}${presetShown ? `Enter: ${presetShown}` : ''}`;
        const answer = (await readLine(`${prompt && `[${prompt}] `}> `, secret !== undefined)) || preset;
        try {
          if (answer === undefined) throw new LabfeedError('this question has no default');
          return await read(answer);
        } catch (error) {
          if (!(error instanceof LabfeedError)) throw error;
          output.write(`${explain(error)}\n`);
        }
      }
    },
    close: () => lines.close(),
  };
}

/** The person pressed Ctrl-C or Ctrl-D. */
export class StoppedError extends LabfeedError {
  constructor() {
    super('setup was stopped; nothing was changed');
  }
}

/** Takes the answers from a YAML file. What is absent gets its default; a wrong answer ends the command. */
export function answersFrom(file: string, keys: readonly string[]): Answers {
  const { value = {}, problems, placeOf, placeOfKey } = readYaml(file);
  const [problem] = problems;
  if (problem) throw new UsageError(problem.message, problem);
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new UsageError('expected answers by name', { where: { file }, hint: `names: ${keys.join(', ')}` });
  const written = value as Readonly<Record<string, unknown>>;
  for (const key of Object.keys(written)) {
    if (keys.includes(key)) continue;
    const guess = nearest(key, keys);
    const hint = guess ? `did you mean ${guess}?` : `known answers: ${keys.join(', ')}`;
    throw new UsageError(`unknown answer ${JSON.stringify(key)}`, { where: placeOfKey([key]), hint });
  }
  return {
    folder: dirname(resolve(file)),
    async ask({ key, preset, secret, read }) {
      const where = placeOf([key]);
      try {
        const found = written[key] ?? undefined;
        const answer = found === undefined ? preset : secret ? secret(found, where) : textOf(found);
        if (answer === undefined) throw new LabfeedError('the answer is missing');
        return await read(answer);
      } catch (error) {
        // A question about an answer has already named itself.
        if (!(error instanceof LabfeedError) || error instanceof UsageError) throw error;
        const [first = error] = error instanceof ConfigError ? error.problems : [];
        throw new UsageError(`${key}: ${first.message}`, { where, hint: first.hint, cause: error });
      }
    },
    close: () => undefined,
  };
}

function textOf(written: unknown): string {
  if (typeof written === 'string' || typeof written === 'number') return String(written);
  if (typeof written === 'boolean') return written ? 'yes' : 'no';
  throw new LabfeedError('expected text');
}

/** For questions that are answered with yes or no. */
export function readYes(answer: string): boolean {
  if (/^y(es)?$/i.test(answer)) return true;
  if (/^no?$/i.test(answer)) return false;
  throw new LabfeedError('expected yes or no');
}
