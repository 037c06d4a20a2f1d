import type { Problem } from '../errors.js';
import type { YamlFile } from './yaml.js';

/** Warns of a key that somebody wrote and that has no effect yet, rather than let them trust in it. */
export function findUnheeded(parts: readonly YamlFile[]): Problem[] {
  return parts.flatMap((yaml) =>
    Object.entries(asMap(asMap(yaml.value)['instruments']))
      .filter(([, instrument]) => (asMap(instrument)['attach'] ?? 'never') !== 'never')
      .map(([name]) => ({
        where: yaml.placeOfKey(['instruments', name, 'attach']),
        message: 'attach has no effect in this version: the raw file is not attached',
        stops: 'nothing',
      })),
  );
}

const asMap = (value: unknown): Record<string, unknown> =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
