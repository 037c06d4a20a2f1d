import { nearest } from '../text.js';
import { type CommentOptions, type InstrumentConfig, instrumentSchema } from './schema.js';
import type { YamlFile } from './yaml.js';

/** An instrument that is written down, be it with mistakes: what has to be known of it to know its runs again. */
export interface ListedInstrument extends Pick<InstrumentConfig, 'duplicates'> {
  readonly name: string;
  readonly comments: Pick<CommentOptions, 'readings' | 'text'>;
}

const { duplicates, comments } = instrumentSchema.shape;

export function listInstruments(parts: readonly YamlFile[]): ListedInstrument[] {
  return parts.flatMap(({ value }) =>
    Object.entries(asMap(asMap(value)['instruments'])).map(([name, instrument]) => {
      const written = asMap(instrument);
      return {
        name,
        duplicates: duplicates.safeParse(written['duplicates']).data ?? duplicates.parse(undefined),
        comments: comments.safeParse(written['comments']).data ?? comments.parse(undefined),
      };
    }),
  );
}

/** Whether instruments may stand behind a key that is not known: `instrumnets: { … }`, `includ: more.yaml`. */
export const mayHideInstruments = (key: string, value: unknown): boolean =>
  (typeof value === 'object' && value !== null) || nearest(key, ['include']) !== undefined;

const asMap = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : {};
