import { withDefaults } from '../config/vocabulary.js';
import type { Measured } from './measure/measure.js';
import { createPace } from './pace.js';
import { measureFile } from './parse.js';
import { createRefuse } from './refuse.js';
import type { Source } from './source.js';

/** Looks at a sample file and says how it is to be read, and what it leaves open. */
export async function learn(source: Source, signal?: AbortSignal): Promise<Measured> {
  const refuse = createRefuse(source.path);
  const { maxMs } = withDefaults({}).limits;
  return measureFile({ source, refuse, pace: createPace({ maxMs, signal, refuse }) });
}
