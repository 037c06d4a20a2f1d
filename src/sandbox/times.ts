import type { Clock } from '../clock.js';

/** UTC, to the second: what notebooks of this kind show. Too coarse to tell two quick changes apart. */
export const timestamp = (clock: Clock) => new Date(clock.now()).toISOString().slice(0, 19).replace('T', ' ');

/** The local day. Sweden writes it YYYY-MM-DD. */
export const today = (clock: Clock) => new Date(clock.now()).toLocaleDateString('sv-SE');
