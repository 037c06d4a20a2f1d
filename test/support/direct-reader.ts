import { readGrowth } from '../../src/mapping/growth.js';
import { findHeader } from '../../src/mapping/header.js';
import { createMapping, type MappingOptions } from '../../src/mapping/mapping.js';
import { readRun } from '../../src/mapping/reading.js';
import type { Reader } from '../../src/pipeline.js';

/** Reads files in this thread, without limits. */
export function directReader(instrument: MappingOptions, journal: string): Reader {
  const mapping = createMapping(instrument, journal);
  return {
    read: (file, nowMs, options) => readRun(file, mapping, nowMs, options),
    findHeader: (task) => findHeader(task, mapping),
    readGrowth: (task) => readGrowth(task, mapping),
    close: () => undefined,
  };
}
