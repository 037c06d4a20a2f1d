import { LabfeedError } from '../errors.js';

/** Ways in which a delivery ends early without anything having gone wrong. */

/** Not a failure: the run can only be decided on after this time. */
export class NotYetError extends LabfeedError {
  override readonly name = 'NotYetError';
  readonly untilMs: number;

  constructor(message: string, untilMs: number) {
    super(message);
    // The clock that only grows has fractions, and the journal none.
    this.untilMs = Math.ceil(untilMs);
  }
}

/** The daemon is ending: what was not sent yet is surely not sent. */
export class StoppedError extends LabfeedError {
  override readonly name = 'StoppedError';
}

/** Nothing more is sent to this server until a person has looked at it. */
export class HaltedError extends LabfeedError {
  override readonly name = 'HaltedError';
}
