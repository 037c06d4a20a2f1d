import { existsSync, lstatSync, statSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import type { Claim, LoadedConfig } from '../config/load.js';
import { explainProblem } from '../errors.js';
import type { Live } from '../live.js';
import { checkMapping } from '../mapping/mapping.js';
import { isAbsent, reasonOf } from '../watch/identify.js';
import { createGrouping, createMatcher, doneFileOf } from '../watch/match.js';
import { DEFAULT_QUIET_MS } from '../watch/settle.js';
import type { InstrumentEvidence, Rule } from '../why/evidence.js';
import { insideOf } from './watched-path.js';

export interface About {
  readonly config: LoadedConfig;
  readonly live: Live | undefined;
  /** How many old files of the instrument wait for an answer. */
  readonly asked: number;
  /** Whether it may be a folder. */
  readonly mayBeFolder: boolean;
}

/** How a file stands to one instrument: its folder, its globs, and what it waits for. */
export function instrumentEvidence(
  claim: Claim,
  path: string,
  { config, live, asked, mayBeFolder }: About,
): InstrumentEvidence {
  const { name, watch, files, ready } = claim;
  const inside = insideOf(watch, path);
  const partOf = inside === undefined ? undefined : runOfSeveral(claim, inside, mayBeFolder);
  const told = live?.instruments.find((instrument) => instrument.name === name);
  const instrument = config.instruments.find((one) => one.name === name);
  const existing = instrument?.existing;
  return {
    name,
    watch,
    files,
    rule: inside === undefined ? outside(watch, path) : ruleFor(claim, inside, partOf === path),
    partOf,
    folder: folderState(watch),
    link: inside === undefined ? undefined : linkOnTheWay(watch, inside),
    mistakes: mistakesOf(name, config, live),
    quietMs: ready.quiet ?? (ready.doneFile === undefined ? DEFAULT_QUIET_MS : 0),
    doneFile: doneFileFor(partOf ?? path, ready.doneFile),
    changed: instrument?.changed,
    existing: typeof existing === 'object' ? `since ${existing.since}` : existing,
    duplicates: instrument?.duplicates,
    asked,
    waiting: told?.waiting.first.find((one) => one.path === (partOf ?? path)),
  };
}

/** Where several files are one run: the path of that run. A folder may be the run itself. */
function runOfSeveral({ run, watch }: Claim, inside: string, mayBeFolder: boolean): string | undefined {
  const grouping = createGrouping(run);
  const member =
    grouping?.memberOf(inside) ?? (mayBeFolder ? grouping?.memberOf(`${inside}/any`) : undefined);
  return member && `${watch}/${member.run}`;
}

function ruleFor({ files, ignore, ready, run }: Claim, inside: string, isRunFolder: boolean): Rule {
  if (isRunFolder && run !== 'file' && 'folder' in run) return { kind: 'taken', pattern: run.folder };
  const verdict = createMatcher({ files, ignore, run, doneFile: ready.doneFile }).verdict(inside);
  if (verdict.taken) return { kind: 'taken', pattern: verdict.pattern };
  if (verdict.rule !== 'files') return { kind: verdict.rule, pattern: verdict.pattern };
  const otherCase = files.find((glob) => {
    const folded = createMatcher({ files: [glob.toLowerCase()], ignore: [] });
    return folded.verdict(inside.toLowerCase()).taken;
  });
  return { kind: 'files', otherCase };
}

/** How many steps lead from one place to the other: who mistook the folder mistook the last names of it. */
const outside = (folder: string, path: string): Rule => ({
  kind: 'outside',
  distance: relative(folder, dirname(path)).split(sep).filter(Boolean).length,
});

function folderState(watch: string): InstrumentEvidence['folder'] {
  try {
    return statSync(watch).isDirectory()
      ? { state: 'present' }
      : { state: 'unreadable', reason: 'it is a file and not a folder' };
  } catch (error) {
    return { state: isAbsent(error) ? 'missing' : 'unreadable', reason: reasonOf(error) };
  }
}

function linkOnTheWay(watch: string, inside: string): string | undefined {
  const names = inside.split('/').slice(0, -1);
  return names
    .map((_, index) => join(watch, ...names.slice(0, index + 1)))
    .find((folder) => lstatSync(folder, { throwIfNoEntry: false })?.isSymbolicLink() === true);
}

function mistakesOf(name: string, config: LoadedConfig, live: Live | undefined): string[] {
  const instrument = config.instruments.find((one) => one.name === name);
  const own = [...config.problems, ...(instrument ? checkMapping(instrument) : [])].filter(
    ({ stops }) => typeof stops === 'object' && stops.instrument === name,
  );
  const told = live?.problems.filter((problem) => problem.instrument === name) ?? [];
  return [...new Set([...own.map(explainProblem), ...told.map(({ at, message }) => `${at}: ${message}`)])];
}

function doneFileFor(path: string, pattern: string | undefined): InstrumentEvidence['doneFile'] {
  if (pattern === undefined) return undefined;
  const name = String(doneFileOf(path, pattern));
  return { name, isThere: existsSync(name) };
}
