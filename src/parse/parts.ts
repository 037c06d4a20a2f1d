import { posix } from 'node:path';
import picomatch from 'picomatch';
import type { ParseOptions } from '../config/vocabulary.js';
import type { Refuse } from './refuse.js';
import type { Part, Source } from './source.js';

/** The file of a run that its mapping reads first; the run itself where it is one file. */
export function mainOf(
  run: Source,
  options: Pick<ParseOptions, 'main' | 'also' | 'format'>,
  refuse: Refuse,
): Source {
  const { parts } = run;
  if (!parts) return run;
  if (options.main !== undefined) return onlyOne(parts, options.main, '`main`', refuse);
  // Whoever joins files says which is the first.
  const first = parts.find(({ path }) => path === run.path);
  const others = Object.keys(options.also ?? {}).filter((name) => !name.includes('{stem}'));
  const left = parts.filter(({ within }) => !others.some((name) => fits(name, within)));
  const only = first ?? (left.length === 1 ? left[0] : undefined);
  if (only) return only;
  // What is not read need not be one of them: the folder's own name is known.
  if (options.format === 'none') return run;
  throw refuse(
    `the run has ${parts.length} files, and the mapping does not say which one is read: ${namesOf(parts)}`,
    {
      hint: `name it: \`main: ${JSON.stringify(left[0]?.within ?? '*.csv')}\``,
    },
  );
}

/** A further file of a run, as `also` names it. */
export function otherOf({ parts = [] }: Source, main: Source, name: string, refuse: Refuse): Source {
  const { name: stem } = posix.parse(main.name);
  // As it stands: a stem may hold what a glob takes for a sign.
  const glob = name.replaceAll('{stem}', () => stem.replace(/[\\*?[\]{}()!+@|]/g, '\\$&'));
  return onlyOne(parts, glob, `\`also: { ${JSON.stringify(name)}: … }\``, refuse);
}

function onlyOne(parts: readonly Part[], glob: string, word: string, refuse: Refuse): Source {
  const found = parts.filter(({ within }) => fits(glob, within));
  const [only] = found;
  if (!only) {
    throw refuse(
      `no file of the run is what ${word} names, ${JSON.stringify(glob)}; there are ${namesOf(parts)}`,
      {
        isAbsent: true,
      },
    );
  }
  if (found.length > 1) {
    throw refuse(
      `${found.length} files of the run are what ${word} names, ${JSON.stringify(glob)}: ${namesOf(found)}`,
      {
        hint: 'write it so that it fits one of them alone',
      },
    );
  }
  return only;
}

const fits = (glob: string, name: string): boolean => picomatch.isMatch(name, glob, { dot: true });

const MOST_NAMED = 5;

function namesOf(parts: readonly Part[]): string {
  const names = parts.slice(0, MOST_NAMED).map(({ within }) => within);
  return parts.length > MOST_NAMED
    ? `${names.join(', ')} and ${parts.length - MOST_NAMED} more`
    : names.join(', ');
}
