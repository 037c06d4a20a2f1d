import { ConfigError, formatPlace, type LabfeedError, type Problem } from '../errors.js';
import type { ConfigProblem } from '../live.js';

/** A mistake in the configuration as people are shown it. */
export const shownProblem = ({ where, message, hint, stops }: Problem): ConfigProblem => ({
  at: formatPlace(where),
  message,
  hint,
  instrument: typeof stops === 'object' ? stops.instrument : undefined,
});

/** Why a configuration was refused; what has no place of its own concerns the file. */
export function shownRefusal(error: LabfeedError, file: string): ConfigProblem[] {
  if (error instanceof ConfigError) return error.problems.map(shownProblem);
  const { message, hint, where = { file } } = error;
  return [{ at: formatPlace(where), message, hint, instrument: undefined }];
}
