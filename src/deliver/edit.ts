import type { OpenRun } from '../model.js';
import type { DeliverDeps } from './deps.js';
import { surelyNotDone } from './failures.js';
import { graceMsOf } from './grace.js';
import { NotYetError } from './interruptions.js';

/** Sends a change that may be sent again. One whose answer is lost may still be carried out, which is noted. */
export async function edit<T>(run: OpenRun, { edits }: DeliverDeps, send: () => Promise<T>): Promise<T> {
  try {
    return await send();
  } catch (error) {
    if (!surelyNotDone(error)) edits.note(run.id);
    throw error;
  }
}

/** Waits until no change that this process sent before can come any more, and undo what is sent now. */
export async function outwaitEdits(run: OpenRun, deps: DeliverDeps): Promise<void> {
  const { edits, clock } = deps;
  if (!edits.isNoted(run.id)) return;
  const leftMs = (await graceMsOf(deps)) - edits.sinceMs(run.id);
  if (leftMs > 0)
    throw new NotYetError('a change whose answer was lost may still be carried out', clock.now() + leftMs);
}
