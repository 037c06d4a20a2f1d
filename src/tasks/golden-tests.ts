import { dirname, relative } from 'node:path';
import PQueue from 'p-queue';
import type { Clock } from '../clock.js';
import type { Instrument } from '../config/load.js';
import { explain, FileError, formatPlace, LabfeedError, type Problem } from '../errors.js';
import { hasText } from '../golden/agree.js';
import { compare } from '../golden/compare.js';
import { quote, showDifference } from '../golden/differences.js';
import { createMapping, type Mapping } from '../mapping.js';
import { openRun } from './sample.js';

type GoldenTest = Instrument['tests'][number];

/** What came of one golden test; it passes where there is no problem. */
export interface TestResult {
  readonly instrument: string;
  readonly file: string;
  readonly problems: readonly Problem[];
}

export interface TestDeps {
  readonly clock: Clock;
  readonly signal?: AbortSignal | undefined;
}

/** What is wrong, of the sample as a whole or with one expectation of it. */
interface Failure {
  readonly key?: string;
  readonly message: string;
  readonly hint?: string | undefined;
}

/** A sample on a share that hangs must not keep the daemon from starting. */
const LONGEST_MS = 30_000;

/** Runs the golden tests of instruments whose mappings have no mistake, a few at a time. Stopped, they are as failed. */
export function runGoldenTests(instruments: readonly Instrument[], deps: TestDeps): Promise<TestResult[]> {
  const queue = new PQueue({ concurrency: 4 });
  return queue.addAll(
    instruments.flatMap((instrument) => {
      if (instrument.tests.length === 0) return [];
      const mapping = createMapping(instrument);
      return instrument.tests.map((test, n) => async (): Promise<TestResult> => {
        const failures = await runInTime(instrument, mapping, test, deps);
        const problems = failures.map((failure) => toProblem(instrument, n, test, failure));
        return { instrument: instrument.name, file: test.file, problems };
      });
    }),
  );
}

async function runInTime(
  instrument: Instrument,
  mapping: Mapping,
  test: GoldenTest,
  { clock, signal }: TestDeps,
): Promise<Failure[]> {
  const ended = new AbortController();
  const either = signal ? AbortSignal.any([ended.signal, signal]) : ended.signal;
  const late: Failure = { message: `it could not be read within ${LONGEST_MS / 1000} s` };
  try {
    return await Promise.race([
      run(instrument, mapping, test, clock.now(), either),
      clock.sleep(LONGEST_MS, either).then(
        () => [late],
        () => [late],
      ),
    ]);
  } finally {
    ended.abort();
  }
}

async function run(
  instrument: Instrument,
  mapping: Mapping,
  { file: path, expect }: GoldenTest,
  nowMs: number,
  signal: AbortSignal,
): Promise<Failure[]> {
  try {
    const file = await openRun(path, instrument, signal);
    const record = await mapping.parse(file, signal);
    return compare(expect, { record, ...mapping.map(record, file, nowMs) });
  } catch (error) {
    if (signal.aborted) return [];
    if (error instanceof FileError) return judgeRefusal(expect, error);
    if (error instanceof LabfeedError) return [{ message: error.message, hint: error.hint }];
    throw error;
  }
}

/** A refusal is a failure, unless it is what the test asks for. */
function judgeRefusal(expect: GoldenTest['expect'], error: FileError): Failure[] {
  const wanted = expect.find((one) => one.of === 'quarantined')?.wanted;
  if (wanted === undefined) {
    const { line } = error.where ?? {};
    const at = line === undefined ? '' : `, for its line ${line}`;
    return [{ message: `it would be quarantined${at}: ${error.message}`, hint: error.hint }];
  }
  const reason = explain(error);
  if (wanted === true || hasText(wanted, reason)) return [];
  const message = `refused, but not for this reason${showDifference(quote(wanted), quote(reason))}`;
  return [{ key: 'quarantined', message }];
}

function toProblem(
  instrument: Instrument,
  n: number,
  { file }: GoldenTest,
  { key, message, hint }: Failure,
): Problem {
  const where = instrument.placeOf(['tests', n, ...(key === undefined ? ['file'] : ['expect', key])]);
  return {
    where,
    message: `${[shownPath(file, where.file), key].filter(Boolean).join(', ')}: ${message}`,
    ...(hint === undefined ? {} : { hint }),
    stops: { instrument: instrument.name },
  };
}

/** As it is mostly written in the configuration: seen from there. */
function shownPath(file: string, config: string): string {
  const inside = relative(dirname(config), file);
  return inside.startsWith('..') ? formatPlace({ file }) : inside;
}
