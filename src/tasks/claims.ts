import { relative, sep } from 'node:path';
import type { Claim, Instrument, LoadedConfig } from '../config/load.js';
import { createMatcher } from '../watch/match.js';

/** What the instruments before this one claim; also those with a mistake, whose files wait until it is mended. */
export const claimsBefore = (
  { name }: Pick<Instrument, 'name'>,
  { claims }: LoadedConfig,
): readonly Claim[] =>
  claims.slice(
    0,
    claims.findIndex((claim) => claim.name === name),
  );

/** A file belongs to the first instrument that matches it. */
export function claimedBy(instruments: readonly Claim[]): (path: string) => boolean {
  const claims = instruments.map(({ watch, files, ignore, ready, run }) => {
    const matcher = createMatcher({ files, ignore, doneFile: ready.doneFile, run });
    return (path: string): boolean => {
      const inside = relative(watch, path);
      return (
        !inside.startsWith('..') && matcher.verdict(sep === '/' ? inside : inside.replaceAll(sep, '/')).taken
      );
    };
  });
  return (path) => claims.some((takes) => takes(path));
}
