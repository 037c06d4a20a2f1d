import type { Problem } from '../errors.js';
import type { ConfigPath, YamlFile } from './yaml.js';

/** Keys that are understood and checked but not acted on yet, with what does not happen. */
const SETTINGS: Readonly<Record<string, string>> = {
  alarms: 'nobody is called; troubles are in the log',
};
const INSTRUMENT: Readonly<Record<string, string>> = {
  attach: 'the raw file is not attached',
  silence: 'nothing is told when no file comes',
};

/** Warns of every key that somebody wrote and that has no effect, rather than let them trust in it. */
export function findUnheeded(parts: readonly YamlFile[]): Problem[] {
  return parts.flatMap((yaml) => {
    const top = asMap(yaml.value);
    return [
      ...unheeded(yaml, [], top, SETTINGS),
      ...Object.entries(asMap(top['instruments'])).flatMap(([name, instrument]) =>
        unheeded(yaml, ['instruments', name], asMap(instrument), INSTRUMENT),
      ),
    ];
  });
}

function unheeded(
  yaml: YamlFile,
  path: ConfigPath,
  map: Record<string, unknown>,
  effects: Readonly<Record<string, string>>,
): Problem[] {
  return Object.keys(map)
    .filter((key) => key in effects && !OFF.has(map[key]))
    .map((key) => ({
      where: yaml.placeOfKey([...path, key]),
      message: `${key} has no effect in this version: ${effects[key]}`,
      stops: 'nothing',
    }));
}

/** Who switches a thing off gets what they asked for. */
const OFF: ReadonlySet<unknown> = new Set([false, 'off', 'never']);

const asMap = (value: unknown): Record<string, unknown> =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
