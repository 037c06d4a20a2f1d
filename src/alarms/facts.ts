import type { Silence } from '../config/silence.js';
import type { Live, LiveAlarm, LiveGate, LiveInstrument } from '../live.js';

/** All that alarms are judged by, as it is at one instant. */
export interface Facts {
  readonly now: number;
  readonly notebook: {
    readonly url: string;
    readonly gate: LiveGate;
    /** Whether it has done anything for us since the gate was made: before that, an open gate proves nothing. */
    readonly answered: boolean;
    /** Why nothing is sent until a person has recovered the journal. */
    readonly halted: string | undefined;
  };
  readonly instruments: readonly InstrumentFacts[];
  readonly problems: Live['problems'];
  readonly refused: Live['refused'];
  /** Why the status page is not there, though it should be. */
  readonly page: string | undefined;
  /** Why the journal cannot be written. */
  readonly journal: string | undefined;
}

export interface InstrumentFacts {
  readonly live: LiveInstrument;
  readonly silence: Silence | undefined;
  /** When its last file came, or else when its folder was first listed. */
  readonly quietSince: number | undefined;
  /** Files that came where runs should have come. */
  readonly strangers: { readonly occasions: number; readonly example: string | undefined };
  readonly quarantined: Resting | undefined;
  readonly held: Resting | undefined;
  /** How many old files wait for an answer. */
  readonly asked: number;
}

/** Runs that rest, and the one of them that came last. */
export interface Resting {
  readonly runs: number;
  readonly path: string;
  readonly reason: string | undefined;
}

/** What was found out about one kind of trouble. Of what is not mentioned, there is none. */
export interface Finding {
  readonly kind: LiveAlarm['kind'];
  readonly instrument: string | undefined;
  /** Unsure: nothing can be said now, and what was said before stands. */
  readonly verdict: 'trouble' | 'unsure';
  readonly text: string;
  /** How long it must last before anybody is told. */
  readonly graceMs: number;
}

export const trouble = (
  kind: LiveAlarm['kind'],
  instrument: string | undefined,
  text: string,
  graceMs = 0,
): Finding => ({ kind, instrument, verdict: 'trouble', text, graceMs });

export const unsure = (kind: LiveAlarm['kind'], instrument?: string): Finding => ({
  kind,
  instrument,
  verdict: 'unsure',
  text: '',
  graceMs: 0,
});
