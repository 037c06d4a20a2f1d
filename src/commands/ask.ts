import { systemClock } from '../clock.js';
import { EXIT } from '../errors.js';
import { type JournalClient, openClient } from '../journal/client.js';
import { isFree, JournalInUseError } from '../journal/database.js';
import { openJournal } from '../journal/journal.js';
import { type Request, subjectOf } from '../journal/requests.js';

/** What became of one request. `waiting`: it is in the journal, durably, for a daemon that has not answered yet. */
export interface Outcome {
  readonly run?: number;
  /** Of a request that is about no run. */
  readonly instrument?: string;
  readonly outcome: 'done' | 'refused' | 'waiting';
  readonly text: string;
}

/** The daemon looks twice a second; longer than this it does not answer only when something is wrong with it. */
const WAIT_MS = 10_000;
const LOOK_MS = 100;

/** Leaves the requests in the journal's inbox, and resolves with what whoever holds the journal made of them. */
export async function ask(
  path: string,
  choose: (client: JournalClient) => Promise<readonly Request[]>,
): Promise<Outcome[]> {
  const client = openClient(path);
  try {
    const requests = await choose(client);
    const asked = await client.ask(requests, systemClock.now());
    await answered(asked, path, client);
    return await Promise.all(
      requests.map(async (request, index) => ({
        ...('run' in request ? { run: request.run } : { instrument: request.instrument }),
        ...(await outcomeOf(request, asked[index] ?? 0, client)),
      })),
    );
  } finally {
    await client.close();
  }
}

/** Waits for the answers, for as long as there are more of them from time to time. */
async function answered(asked: readonly number[], path: string, client: JournalClient): Promise<void> {
  let open = asked;
  let until = systemClock.monotonic() + WAIT_MS;
  do {
    await applyIfFree(path);
    const answers = await Promise.all(open.map((id) => client.answerTo(id)));
    const left = open.filter((_, index) => answers[index] === undefined);
    if (left.length === 0) return;
    if (left.length < open.length) until = systemClock.monotonic() + WAIT_MS;
    open = left;
    await systemClock.sleep(LOOK_MS);
  } while (systemClock.monotonic() < until);
}

/** Where no daemon runs, the command is one for a moment. */
async function applyIfFree(path: string): Promise<void> {
  if (!isFree(path)) return;
  try {
    const journal = await openJournal(path, systemClock);
    try {
      while ((await journal.inbox.apply()).length > 0);
    } finally {
      await journal.close();
    }
  } catch (error) {
    // A daemon has started meanwhile: it answers.
    if (!(error instanceof JournalInUseError)) throw error;
  }
}

async function outcomeOf(
  request: Request,
  asked: number,
  client: JournalClient,
): Promise<Omit<Outcome, 'run'>> {
  // Looked at before the answer, which may come in between.
  const isWaiting = await client.isWaiting(asked);
  const answer = await client.answerTo(asked);
  if (answer) return { outcome: answer.done ? 'done' : 'refused', text: answer.text };
  if (isWaiting) {
    const text = `${subjectOf(request)}: not answered yet; it is recorded in the journal, and the daemon carries it out as soon as it can`;
    return { outcome: 'waiting', text };
  }
  const text = `${subjectOf(request)}: what was asked is no longer in the journal, and what became of it is not known; ask again`;
  return { outcome: 'refused', text };
}

/** `path`: of the journal. */
export function tellOutcomes(path: string, outcomes: readonly Outcome[], json: boolean | undefined): void {
  if (json) console.log(JSON.stringify(outcomes, null, 2));
  else {
    for (const { outcome, text } of outcomes) {
      if (outcome === 'done') console.log(text);
      else process.stderr.write(`${text}\n`);
    }
  }
  if (!json && outcomes.some(({ outcome }) => outcome === 'done') && isFree(path))
    process.stderr.write('no daemon runs: what is to be sent or read goes on with the next `labfeed run`\n');
  // What waits is not done: a script that goes on as if it were would be wrong.
  if (outcomes.some(({ outcome }) => outcome !== 'done')) process.exitCode = EXIT.failed;
}
