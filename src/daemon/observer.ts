import type { FileError } from '../errors.js';
import type { OpenRun, RunChange } from '../model.js';

/** Whoever wants to see what the daemon does, while it does it. */
export interface Observer {
  filed(run: OpenRun, experiment: number): void;
  /** A run is quarantined, held or postponed. */
  setBack(run: OpenRun, change: RunChange): void;
  /** A file does not read as its mapping says. */
  refused(instrument: string, path: string, problem: FileError): void;
}

export const nobody: Observer = {
  filed: () => undefined,
  setBack: () => undefined,
  refused: () => undefined,
};
