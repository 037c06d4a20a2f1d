import type { Clock } from '../clock.js';
import type { Instrument, LoadedConfig } from '../config/load.js';
import type { ConfigProblem } from '../live.js';
import { createLineState, type LineState } from '../watch/state.js';

/** An instrument as people ask about it: how its line is, be it stopped. */
export interface WatchedInstrument {
  readonly name: string;
  readonly state: LineState;
  /** Undefined where a mistake or a failed test stops it. */
  readonly usable: Instrument | undefined;
}

/** Every instrument that is written down, each once. */
export function watchedInstruments(
  { listed, claims, instruments }: LoadedConfig,
  problems: readonly ConfigProblem[],
  clock: Clock,
): WatchedInstrument[] {
  const broken = new Set(problems.map(({ instrument }) => instrument));
  return [...new Set(listed.map(({ name }) => name))].map((name) => {
    const watch = claims.find((claim) => claim.name === name)?.watch ?? '';
    const usable = instruments.find((instrument) => instrument.name === name && !broken.has(name));
    const state = createLineState({ name, watch }, clock);
    if (usable === undefined) state.is('stopped');
    return { name, state, usable };
  });
}
