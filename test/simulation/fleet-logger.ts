import type { Growths } from '../../src/growth.js';
import type { Connection } from '../../src/journal/database.js';
import { originLine } from '../../src/markers.js';
import type { FakeExperiment } from '../support/fake-notebook.js';
import type { Random } from '../support/random.js';
import { newRun, sha256, someDraft } from '../support/runs.js';
import type { Pc } from './world.js';

/** A growing file. Several members may follow it, as on a share: each reads it at other times. */
export interface Logger {
  followers: ReadonlySet<string>;
  lines: number;
  /** How often a member has reported something about it. */
  reports: number;
}

const TITLE = 'log';
const GENERATION = 1;

/** Often, all of these members follow it. */
export function createLogger(watchers: readonly { readonly name: string }[], random: Random): Logger {
  const followers = random.chance(0.3) ? watchers.slice(0, 1) : watchers;
  return { followers: new Set(followers.map(({ name }) => name)), lines: 1, reports: 0 };
}

/** Takes the lines that this member has not taken yet. */
export async function readLog({ lines }: Logger, growths: Growths, pc: Pc): Promise<void> {
  const from = (await growths.upto(GENERATION))?.upto ?? 0;
  if (from >= lines) return;
  const taken = Array.from({ length: lines - from }, (_, n) => `line ${from + n + 1}.`);
  const origin = originLine({ label: 'logger log.csv', sha256: sha256(TITLE), journal: pc.journal });
  const body = `<p>${lines} lines</p><p>${origin}</p>`;
  await growths.append({
    ...{ generation: GENERATION, from, upto: lines, lines, tail: Buffer.from(`${lines}`), range: '', notes: [] },
    parts: [
      {
        ...{ day: '', run: newRun(TITLE, { path: '/share/log.csv' }), rows: taken.length, accumulated: '{}' },
        reading: { draft: { ...someDraft(TITLE, [taken.join(' ')]), body } },
      },
    ],
  });
  await growths.flush(GENERATION);
}

/** Something about the file that is reported once, such as a new name. */
export async function reportLog(logger: Logger, growths: Growths): Promise<void> {
  logger.reports += 1;
  await growths.report(GENERATION, `report ${logger.reports}`, false);
}

/** Whether the fleet has all lines. */
export const isLogTaken = ({ lines }: Logger, db: Connection): boolean =>
  !db.exists`SELECT 1 FROM failures` &&
  !db.exists`SELECT 1 FROM growths WHERE next IS NOT NULL` &&
  db.exists`SELECT 1 FROM generations WHERE upto = ${lines}`;

/** Throws unless every line is in the notebook once. */
export function verifyLog({ lines }: Logger, experiments: Iterable<FakeExperiment>, db: Connection): void {
  const filed = [...experiments].filter(({ title }) => title === TITLE);
  const found = filed.flatMap(({ comments }) =>
    [...comments.values()].flatMap((text) => [...text.matchAll(/line (\d+)\./g)].map(([, line]) => Number(line))),
  );
  const wanted = Array.from({ length: lines }, (_, n) => n + 1);
  if (filed.length !== 1 || found.join() !== wanted.join())
    throw new Error(`the log of ${lines} lines is filed ${filed.length} times, with the lines ${found.join()}`);
  if (!filed[0]?.body.includes(`<p>${lines} lines</p>`)) throw new Error(`the log has an old body: ${filed[0]?.body}`);
  const reports = db.values<string>`SELECT detail FROM history WHERE event = 'fileChanged'`;
  if (new Set(reports).size < reports.length) throw new Error(`a report is there twice: ${reports.join()}`);
}
