import type { Database } from '../../src/journal/database.js';
import { createRequestStore } from '../../src/journal/requests.js';
import { createStore } from '../../src/journal/store.js';

/** Requests a remap as `retry --remap` does, assuming that the file exists; false if it is refused. */
export function askRemap(database: Database, run: number, path: string, at: number): boolean {
  const store = createStore(database, () => at, { schedule: () => undefined });
  const requests = () => database.prepare("SELECT count(*) AS n FROM history WHERE event = 'remapAsked'").get();
  const before = JSON.stringify(requests());
  void createRequestStore(store).decide({ kind: 'remap', run }, { path, has: 'itsBytes' });
  store.flush();
  return JSON.stringify(requests()) !== before;
}
