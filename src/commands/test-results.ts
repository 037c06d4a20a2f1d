import type { Instrument } from '../config/load.js';
import { EXIT, explainProblem, formatPlace } from '../errors.js';
import type { TestResult } from '../mapping/tests.js';

/** Tells what came of the golden tests: what passes on stdout, what fails on stderr. */
export function tellTests(
  instruments: readonly Instrument[],
  results: readonly TestResult[],
  json: boolean | undefined,
): void {
  if (json) console.log(JSON.stringify(results.map(asJson), null, 2));
  else for (const { name } of instruments) tellInstrument(name, results);
  if (results.some(({ problems }) => problems.length > 0)) process.exitCode = EXIT.failed;
}

function tellInstrument(name: string, results: readonly TestResult[]): void {
  const own = results.filter(({ instrument }) => instrument === name);
  console.log(summary(name, own));
  for (const problem of own.flatMap(({ problems }) => problems))
    process.stderr.write(`${explainProblem(problem)}\n`);
}

/** How many tests of an instrument pass, in a line. */
export function summary(name: string, results: readonly TestResult[]): string {
  const failing = results.filter(({ problems }) => problems.length > 0).length;
  const tests = results.length === 1 ? '1 test' : `${results.length} tests`;
  if (results.length === 0) return `${name}: no tests`;
  if (failing > 0) return `${name}: ${failing} of ${tests} ${failing === 1 ? 'fails' : 'fail'}`;
  return `${name}: ${tests} ${results.length === 1 ? 'passes' : 'pass'}`;
}

const asJson = ({ instrument, file, problems }: TestResult) => ({
  instrument,
  file,
  passed: problems.length === 0,
  problems: problems.map(({ where, message, hint }) => ({ at: formatPlace(where), message, hint })),
});
