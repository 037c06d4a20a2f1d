import { isProvisional, provisionalTitle } from '../markers.js';
import type { ServerFacts } from '../model.js';
import type { ExperimentRecord, ServerMemory } from './deps.js';

/** Fields in which two blank experiments of the same user differ: ids, links, times, and the day they were made. */
const VARYING =
  /^(id|elabid|uuid|date|sharelink|.*link|.*_at|.*changelog.*|.*time.*|created.*|modified.*|updated.*)$/i;

/** What an experiment looks like in all but ids and times. Owner and team stay in: a person's blank differs in those. */
export function profileOf(record: ExperimentRecord): string {
  const kept = Object.entries(record).filter(([name]) => !VARYING.test(name));
  return JSON.stringify(kept.sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** Whether the server keeps a creation's title is seen on the first one that is read back, and remembered. */
export async function learnTitles(record: ExperimentRecord, memory: ServerMemory): Promise<void> {
  const keepsTitle = typeof record.title === 'string' && isProvisional(record.title);
  await memory.learn(keepsTitle ? { keepsTitle } : { keepsTitle, blank: profileOf(record) });
}

/** Whether this is what a creation of ours with this reference leaves behind. */
export function isOurCreation(
  record: ExperimentRecord,
  reference: string,
  { keepsTitle, blank }: ServerFacts,
): boolean {
  if (keepsTitle !== false) return record.title === provisionalTitle(reference);
  return blank !== undefined && profileOf(record) === blank;
}

/** Whether nobody has touched an experiment since a creation of ours made it, whichever one it was. */
export function isUntouched(record: ExperimentRecord, { keepsTitle, blank }: ServerFacts): boolean {
  if (keepsTitle !== false) return typeof record.title === 'string' && isProvisional(record.title);
  return blank !== undefined && profileOf(record) === blank;
}
