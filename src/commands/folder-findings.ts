import type { Claim, Instrument, LoadedConfig } from '../config/load.js';
import { spokenCount } from '../text.js';
import { claimedBy, claimsBefore, createMatcher } from '../watch/match.js';
import { createRuns } from '../watch/runs.js';
import { list } from '../watch/scan.js';
import type { Finding } from './findings.js';
import type { Overlap } from './overlaps.js';

/** What a look into the watched folders shows. */
export interface FolderFindings {
  readonly findings: readonly Finding[];
  readonly overlaps: readonly Overlap[];
}

export async function examineFolders(config: LoadedConfig): Promise<FolderFindings> {
  const all = await Promise.all(
    config.instruments.map((instrument) => examineFolder(instrument, claimsBefore(instrument, config))),
  );
  return {
    findings: all.flatMap(({ findings }) => findings),
    overlaps: all.flatMap(({ overlaps }) => overlaps),
  };
}

async function examineFolder(instrument: Instrument, earlier: readonly Claim[]): Promise<FolderFindings> {
  const { name, watch, run, ready } = instrument;
  const { signal } = new AbortController();
  const matcher = createMatcher({ ...instrument, doneFile: ready.doneFile });
  const listing = list(watch, { matcher, signal });
  const { gather } = createRuns({ root: watch, run, matcher, signal, isClaimed: () => false });
  const runs = new Set<string>();
  const claimed = countClaimed(name, earlier);
  for (;;) {
    const next = await listing.next();
    if (!next.done) {
      for (const { path } of next.value) claimed.look(path);
      for (const { path } of gather(next.value)) runs.add(path);
      continue;
    }
    const { value: result } = next;
    if (result.state !== 'present') {
      const hint = 'it is picked up when it appears; check the path, the mount and the permissions';
      const text = `${name}: the folder ${watch} is ${result.state}: ${result.reason}`;
      return { findings: [{ level: 'wrong', text, hint }], overlaps: [] };
    }
    const grouped = run === 'file' ? '' : `, of ${spokenCount(runs.size, 'run')}`;
    const text = `${name}: ${watch} is there, ${spokenCount(result.files, 'file')} ${result.files === 1 ? 'matches' : 'match'}${grouped}`;
    const found: Finding = { level: 'good', text };
    const unread = result.unread.map(
      ({ path, reason }): Finding => ({ level: 'note', text: `${name}: ${path} cannot be read: ${reason}` }),
    );
    return { findings: [found, ...unread], overlaps: claimed.overlaps() };
  }
}

/** Counts the files of an instrument that go to others, by who gets them. */
function countClaimed(second: string, earlier: readonly Claim[]) {
  const claims = earlier.map((claim) => ({ first: claim.name, takes: claimedBy([claim]) }));
  const found = new Map<string, { example: string; files: number }>();
  return {
    look(path: string): void {
      const first = claims.find(({ takes }) => takes(path))?.first;
      if (first === undefined) return;
      const { example, files } = found.get(first) ?? { example: path, files: 0 };
      found.set(first, { example, files: files + 1 });
    },
    overlaps: (): Overlap[] => [...found].map(([first, counted]) => ({ first, second, ...counted })),
  };
}
