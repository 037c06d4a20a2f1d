import type { Instrument } from '../config/load.js';
import { instrumentSchema } from '../config/schema.js';
import type { ParseMapping } from '../config/vocabulary.js';
import { explain, FileError } from '../errors.js';
import { type Choice, choose } from '../learn/choose.js';
import { commonFolder, suggestFiles, suggestName, suggestTitle } from '../learn/suggest.js';
import { createMapping } from '../mapping.js';
import type { IdentifiedFile } from '../model.js';
import { createMatcher } from '../watch/match.js';
import { measureSample } from './measure-sample.js';

/** An instrument as it would stand in a configuration, made from samples. */
export interface Learnt {
  readonly name: string;
  readonly instrument: {
    readonly watch: string;
    readonly files: string | string[];
    readonly parse: ParseMapping;
    readonly experiment: { readonly title: string };
  };
  /** What a person should look at, one thing each. */
  readonly doubts: readonly string[];
}

/** Looks at sample files and says how an instrument that writes such files would be configured. */
export async function learn(
  files: readonly IdentifiedFile[],
  nowMs: number,
  signal?: AbortSignal,
): Promise<Learnt> {
  const paths = files.map(({ path }) => path);
  const watch = commonFolder(paths);
  const name = suggestName(watch, paths);
  const choice = await choose(files, {
    measure: (file) => measureSample(file, signal),
    read: (file, parse) => createMapping(asInstrument(name, { watch, parse })).parse(file, signal),
  });
  const instrument = {
    watch,
    files: suggestFiles(watch, paths),
    parse: choice.mapping,
    experiment: { title: suggestTitle(choice.read.map(({ record }) => record)) },
  };
  const doubts = [
    ...choice.doubts,
    ...choice.unread.map(({ file, reason }) => `${file.path} is not read by it: ${reason}`),
    ...refusedDrafts(asInstrument(name, instrument), choice, nowMs),
    ...ignored(asInstrument(name, instrument), paths),
    ...(files.length === 1 ? ['it was learnt from one file; a few more make it surer'] : []),
  ];
  return { name, instrument, doubts };
}

/** The instrument as the daemon would use it. */
export function asInstrument(name: string, written: object): Instrument {
  const placeOf = () => ({ file: name });
  return { ...instrumentSchema.parse(written), name, mapping: '', written, placeOf };
}

/** Files that read well can still be quarantined: for a date that can be read two ways, for example. */
function refusedDrafts(instrument: Instrument, { read }: Choice<IdentifiedFile>, nowMs: number): string[] {
  const mapping = createMapping(instrument);
  return read.flatMap(({ file, record }) => {
    try {
      mapping.map(record, file, nowMs);
      return [];
    } catch (error) {
      if (!(error instanceof FileError)) throw error;
      return [`it would be quarantined: ${explain(error)}`];
    }
  });
}

function ignored({ watch, files, ignore, ready }: Instrument, paths: readonly string[]): string[] {
  const matcher = createMatcher({ files, ignore, doneFile: ready.doneFile });
  return paths.flatMap((path) => {
    const verdict = matcher.verdict(path.slice(watch.length).replace(/^[\\/]+/, ''));
    if (verdict.taken) return [];
    const why = verdict.rule === 'files' ? 'files does not fit it' : `it is ignored by ${verdict.pattern}`;
    return [`${path} would not be taken: ${why}`];
  });
}
