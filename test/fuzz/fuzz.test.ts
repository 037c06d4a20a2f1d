import { type ChildProcess, fork } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import { tempFolder } from '../support/temp-folder.js';

/*
 * Inputs that nobody would write by hand: mutated files, configurations, server responses and command lines. Each is read
 * or refused with a message for people; none crashes, hangs or needs much memory.
 *
 *   npm run fuzz                                      a few hundred of each, from a random seed, which is printed
 *   LABFEED_MINUTES=60 npm run fuzz                   as many as an hour allows
 *   LABFEED_SEED=7 LABFEED_CASES=1 npm run fuzz -- -t files      one of them again
 *   LABFEED_CASES=100000 npm run fuzz -- -t generated            many of one kind
 *   LABFEED_SAMPLES=FOLDER npm run fuzz -- -t generated          mutations of your own files, or -t digits, -t files
 */

/** How much memory the process that performs the cases may ever use. */
const MAX_MEMORY_MB = 300;

/** Each kind has its file beside this one, and its share of the time. A command line takes a process of its own. */
const KINDS = {
  files: 600,
  digits: 400,
  generated: 800,
  mappings: 200,
  configurations: 400,
  responses: 400,
  'command-lines': 25,
} as const;

const minutes = Number(process.env['LABFEED_MINUTES'] ?? 0);
const firstSeed = Number(process.env['LABFEED_SEED'] ?? Math.floor(Math.random() * 1e9));
const wanted = process.env['LABFEED_CASES'];
console.info(`fuzz: the first seed is ${firstSeed}`);

interface Answer {
  readonly seed: number;
  readonly what: string;
  /** What is wrong with the outcome of the case; undefined if nothing is. */
  readonly problem?: string;
  readonly memoryMb: number;
  readonly cpuMs: number;
}

function findProblem({ what, problem, memoryMb }: Answer): string | undefined {
  if (problem !== undefined) return `${what} ${problem}`;
  return memoryMb > MAX_MEMORY_MB ? `${what} needs ${memoryMb} MB` : undefined;
}

/** V8 keeps compiled code, 1 MB for each thousand cases, which must not be mistaken for the memory that a case needs. */
const CASES_PER_PROCESS = 10_000;

/** Performs one case after another in a process of its own, which is replaced when it hangs or dies. */
function startPerformer(kind: string, folder: string) {
  let child: ChildProcess | undefined;
  let performed = 0;
  const most = { cpuMs: 0, memoryMb: 0 };
  // It uses sources of these tests.
  const execArgv = ['--import', new URL('../support/typescript.mjs', import.meta.url).href];
  const script = fileURLToPath(new URL('perform.mjs', import.meta.url));
  const start = () => fork(script, [kind, folder], { stdio: 'pipe', execArgv });

  async function perform(seed: number): Promise<string | undefined> {
    const current = child ?? start();
    child = current;
    let said = '';
    const listen = (chunk: Buffer) => {
      said += chunk;
    };
    current.stderr?.on('data', listen);
    const result = await new Promise<Answer | string>((resolve) => {
      const timer = setTimeout(() => resolve('hangs'), HANG_MS);
      current.once('exit', (code, signal) => resolve(`ends the process (${signal ?? code}): ${said.slice(-2000)}`));
      current.once('message', (answer) => resolve(answer as Answer));
      current.send(seed);
      current.once('message', () => clearTimeout(timer));
    });
    current.removeAllListeners();
    current.stderr?.off('data', listen);
    const problem = typeof result === 'string' ? result : findProblem(result);
    if (typeof result !== 'string') {
      most.cpuMs = Math.max(most.cpuMs, result.cpuMs);
      most.memoryMb = Math.max(most.memoryMb, result.memoryMb);
    }
    if (problem !== undefined || ++performed % CASES_PER_PROCESS === 0) stop();
    return problem;
  }

  function stop(): void {
    child?.kill('SIGKILL');
    child = undefined;
  }

  return { perform, stop, most };
}

/** Wall time, on a machine that may be busy: only for those that never end. */
const HANG_MS = 60_000;

const performers: ReturnType<typeof startPerformer>[] = [];
afterAll(() => {
  for (const { stop } of performers) stop();
});

/** So that a long run shows that it goes on. */
const CASES_PER_REPORT = 2000;

test.each(Object.entries(KINDS))(
  '%s: each one is read or refused',
  { timeout: minutes * 60_000 + 600_000 + Number(wanted ?? 0) * 200 },
  async (kind, cases) => {
    const startedMs = Date.now();
    const until = startedMs + (minutes * 60_000) / Object.keys(KINDS).length;
    const count = wanted === undefined ? cases : Number(wanted);
    const failures: string[] = [];
    let performed = 0;
    const processes = Math.min(count, Number(process.env['LABFEED_PROCESSES'] ?? availableParallelism()));
    const own = Array.from({ length: processes }, () => startPerformer(kind, tempFolder()));
    const report = () => {
      const perSecond = ((1000 * performed) / (Date.now() - startedMs)).toFixed(1);
      const [cpuMs, memoryMb] = (['cpuMs', 'memoryMb'] as const).map((key) =>
        Math.max(...own.map(({ most }) => most[key])),
      );
      console.info(
        `fuzz: ${performed} ${kind}, ${failures.length} failures, ${perSecond} cases/s, at most ${cpuMs} ms and ${memoryMb} MB`,
      );
    };

    // A failure does not end a long run: all are reported at its end, and each when it occurs.
    async function performOthers({ perform, stop }: ReturnType<typeof startPerformer>): Promise<void> {
      while (performed < count || Date.now() < until) {
        const seed = firstSeed + performed++;
        const problem = await perform(seed);
        if (problem !== undefined) {
          const failure = `LABFEED_SEED=${seed} LABFEED_CASES=1 npm run fuzz -- -t ${kind}: ${problem}`;
          failures.push(failure);
          console.info(failure);
        }
        if (performed % CASES_PER_REPORT === 0) report();
      }
      stop();
    }

    performers.push(...own);
    await Promise.all(own.map(performOthers));
    report();
    expect(failures).toEqual([]);
  },
);
