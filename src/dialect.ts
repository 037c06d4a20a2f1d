import type { Dialect } from './model.js';

/** A documented request whose answer differs: eLabFTW's records of API keys name the team. */
export const dialectOf = (keys: readonly Readonly<Record<string, unknown>>[]): Dialect =>
  keys.some((key) => 'team' in key && 'can_write' in key) ? 'elabftw' : 'v2';
