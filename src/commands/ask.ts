import { systemClock } from '../clock.js';
import { EXIT } from '../errors.js';
import { type JournalClient, openClient } from '../journal/client.js';
import { isFree, JournalInUseError } from '../journal/database.js';
import { openJournal } from '../journal/journal.js';
import type { Request } from '../journal/requests.js';

/** What became of one request. `waiting`: it is in the journal, durably, for a daemon that has not answered yet. */
export interface Outcome {
  readonly run: number;
  readonly outcome: 'done' | 'refused' | 'waiting';
  readonly text: string;
}

/** The daemon looks twice a second; longer than this it does not answer only when something is wrong with it. */
const WAIT_MS = 10_000;
const LOOK_MS = 100;

/** Leaves the requests in the journal's inbox, and resolves with what whoever holds the journal made of them. */
export async function ask(
  path: string,
  choose: (client: JournalClient) => readonly Request[],
): Promise<Outcome[]> {
  const client = openClient(path);
  try {
    const requests = choose(client);
    const asked = client.ask(requests, systemClock.now());
    const until = systemClock.monotonic() + WAIT_MS;
    do {
      await applyIfFree(path);
      if (asked.every((id) => client.answerTo(id) !== undefined)) break;
      await systemClock.sleep(LOOK_MS);
    } while (systemClock.monotonic() < until);
    return requests.map(({ run }, index) => outcomeOf(run, asked[index] ?? 0, client));
  } finally {
    client.close();
  }
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

function outcomeOf(run: number, asked: number, client: JournalClient): Outcome {
  // Looked at before the answer, which may come in between.
  const isWaiting = client.isWaiting(asked);
  const answer = client.answerTo(asked);
  if (answer) return { run, outcome: answer.done ? 'done' : 'refused', text: answer.text };
  if (isWaiting) {
    const text = `run ${run}: recorded in the journal; the daemon applies it when its present step is finished`;
    return { run, outcome: 'waiting', text };
  }
  const text = `run ${run}: what was asked is no longer in the journal, and what became of it is not known; ask again`;
  return { run, outcome: 'refused', text };
}

export function tellOutcomes(outcomes: readonly Outcome[], json: boolean | undefined): void {
  if (json) console.log(JSON.stringify(outcomes, null, 2));
  else {
    for (const { outcome, text } of outcomes) {
      if (outcome === 'refused') process.stderr.write(`${text}\n`);
      else console.log(text);
    }
  }
  if (outcomes.some(({ outcome }) => outcome === 'refused')) process.exitCode = EXIT.failed;
}
