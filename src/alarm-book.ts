import type { LiveAlarm } from './live.js';

export const CHANNELS = ['webhook', 'command'] as const;

export type Channel = (typeof CHANNELS)[number];

/** That an alarm was raised, or is over, for one who is still to be told. */
export interface Notice extends LiveAlarm {
  readonly channel: Channel;
  readonly state: 'raised' | 'over';
  /** When it was raised or over. */
  readonly at: number;
  /** How often it was tried in vain, and when to try again. */
  readonly attempts: number;
  readonly dueAt: number;
}

/** What must outlive the daemon, so that a restart neither repeats an alarm nor forgets one. */
export interface AlarmBook {
  readonly raised: readonly LiveAlarm[];
  /** In the order in which they are to be told. */
  readonly untold: readonly Notice[];
}
