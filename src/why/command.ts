import { lstatSync, realpathSync } from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { type Command, InvalidArgumentError } from 'commander';
import { atMost, systemClock } from '../clock.js';
import { configFrom, daemonState, type JsonOption, olderRuns, requireJournal, withJson } from '../commands/options.js';
import { formatTable, terminalWidth } from '../commands/terminal.js';
import type { Claim } from '../config/load.js';
import { EXIT, explain, LabfeedError } from '../errors.js';
import { journalExists } from '../journal/database.js';
import { openReader } from '../journal/reader.js';
import { type Place, placesElsewhere } from '../members.js';
import { hasWords, indent, shellWord, terminalLine, terminalText } from '../text.js';
import { isAbsent } from '../watch/identify.js';
import { createMatcher, pathInside } from '../watch/match.js';
import { list } from '../watch/scan.js';
import { type Evidence, gather, type Sources, splitMachine } from './gather.js';
import { conclude, type Explanation, type Finding } from './why.js';

export function addWhy(command: Command): void {
  withJson(command, ['labfeed why /srv/instruments/nanodrop/run-17.tsv', 'labfeed why run-17'])
    .argument('<path>', 'Path of a file, or part of one; the file may be gone', parseText)
    .action(why);
}

function parseText(text: string): string {
  if (text.trim() === '') throw new InvalidArgumentError('Expected a path or part of one.');
  return text;
}

async function why(asked: string, { json, ...options }: JsonOption): Promise<void> {
  const config = configFrom(options);
  const journal = requireJournal(config);
  const now = systemClock.now();
  const reader = journalExists(journal) ? openReader(journal) : undefined;
  try {
    const { running, live } = reader ? daemonState(journal, now) : { running: false, live: undefined };
    const sources = { config, reader, running, live: running ? live : undefined, now };
    const { found, answers, trouble } = await explainWithFleet(asked, sources);
    const elsewhere = answers.length > 0 ? [] : placesElsewhere(sources.live?.fleet);
    if (json) console.log(JSON.stringify({ asked, ...found, answers, ...askAt(elsewhere) }, null, 2));
    else console.log(answers.length > 0 ? toText(answers, found.more) : nothingKnown(asked, elsewhere, trouble));
    if (trouble !== undefined) process.stderr.write(`${trouble}\n`);
    for (const folder of found.unsearched)
      process.stderr.write(`the folder ${folder} could not be searched completely\n`);
    if (answers.every(({ outcome }) => outcome === 'unknown')) process.exitCode = EXIT.failed;
  } finally {
    await reader?.close();
  }
}

async function explainAll(asked: string, sources: Sources) {
  const found = await findFiles(asked, sources);
  const answers: (Explanation & { readonly evidence: Evidence })[] = [];
  for (const path of found.paths) {
    const evidence = await gather(path, sources);
    answers.push({ ...conclude(evidence), evidence });
  }
  return { found, answers, isUnknown: answers.every(({ outcome }) => outcome === 'unknown') };
}

/** A machine that only watches does not keep the older runs of others. `trouble`: why they are not known. */
async function explainWithFleet(asked: string, sources: Sources) {
  const known = await explainAll(asked, sources);
  if (!known.isUnknown) return { ...known, trouble: undefined };
  try {
    return { ...((await askFleet(asked, sources)) ?? known), trouble: undefined };
  } catch (error) {
    if (!(error instanceof LabfeedError)) throw error;
    return { ...(await explainAll(asked, { ...sources, isFleetUnknown: true })), trouble: explain(error) };
  }
}

/** Undefined if the database does not know it either. */
async function askFleet(asked: string, sources: Sources) {
  const reader = await olderRuns(sources.config, { words: withoutOwnName(asked, sources.config) });
  if (!reader) return undefined;
  try {
    const older = await explainAll(asked, { ...sources, reader });
    return older.isUnknown ? undefined : older;
  } finally {
    await reader.close();
  }
}

/** The other machines of the fleet, each of which knows files of its folders that are no runs. */
const askAt = (places: readonly Place[]) =>
  places.length === 0
    ? {}
    : {
        elsewhere: places.map(({ member: { name, isAway }, folder: { instrument, watch } }) => ({
          ...{ machine: name, isAway, instrument, watch },
        })),
      };

const MAX_PLACES = 20;

function nothingKnown(asked: string, places: readonly Place[], trouble: string | undefined): string {
  const text = `nothing is known about ${terminalLine(asked)}: no path in the watched folders or in the journal contains it`;
  if (places.length === 0) return text;
  const lines = places
    .slice(0, MAX_PLACES)
    .map(({ member: { name, isAway }, folder: { instrument, watch } }) =>
      terminalLine(`  ${name}${isAway ? ' (away)' : ''}: ${instrument}, ${watch}`),
    );
  const more = places.length > MAX_PLACES ? [`  and ${places.length - MAX_PLACES} more, see labfeed status`] : [];
  return [
    trouble === undefined ? `${text}, and no run of the fleet does` : text,
    `other machines may know a file that is not a run yet; ask there: labfeed why ${shellWord(asked)}`,
    ...lines,
    ...more,
  ].join('\n');
}

function toText(answers: readonly Explanation[], more: boolean): string {
  const [first] = answers;
  if (first !== undefined && answers.length === 1) return explanationText(first);
  const table = formatTable(
    [
      { title: 'state', text: ({ outcome }) => outcome },
      { title: 'run', text: ({ run }) => (run === undefined ? '' : String(run)), align: 'right' },
      { title: 'file', text: ({ path }) => path },
      { title: 'why', text: ({ answer }) => answer.text, flexible: true },
    ],
    answers,
    terminalWidth(),
  );
  const count = more ? `more than ${answers.length}` : String(answers.length);
  return `${table}\n${count} files match; for everything about one of them: labfeed why PATH`;
}

function explanationText({ path, answer, findings }: Explanation): string {
  const toLines = ({ text, hint }: Finding): string =>
    terminalText(`${text}${hint === undefined ? '' : `\n  → ${hint}`}`);
  const evidence = findings.map((finding) => indent(toLines(finding), '    ').replace(/^ {4}/, '  - '));
  return [terminalLine(path), indent(toLines(answer)), ...evidence].join('\n');
}

const MAX_FILES = 100;

/**
 * The file at this path if there is or was one, otherwise all files whose paths contain these words: in the journal, in
 * the status of the daemon and in the folders.
 */
export async function findFiles(asked: string, { config, reader, live }: Sources) {
  const text = withoutOwnName(asked, config);
  const isElsewhere = config.settings.fleet !== undefined && splitMachine(text) !== undefined;
  const path = isElsewhere ? text : toWatchedPath(resolve(text), config.claims);
  const only = { paths: [path], more: false, unsearched: [] as string[] };
  const known = (await reader?.filesAt(path)) ?? [];
  if (known.length > 0 || mayExist(path)) return only;
  const { longest, matches } = createSearch(text);
  const files = (await reader?.files(longest, MAX_FILES + 1)) ?? [];
  const recorded = files.map((file) => file.path).filter((one) => longest === text || matches(one));
  const waiting = live?.instruments.flatMap((instrument) => instrument.waiting.first) ?? [];
  const folders = new Set(config.claims.map(({ watch }) => watch));
  const searches = await Promise.all([...folders].map((folder) => search(folder, matches)));
  const all = new Set([
    ...recorded,
    ...waiting.map((file) => file.path).filter(matches),
    ...searches.flatMap(({ found }) => found),
  ]);
  /** Folders that did not respond in time or could not be read completely. */
  const unsearched = searches.flatMap(({ folder, isComplete }) => (isComplete ? [] : [folder]));
  if (all.size === 0 && text.includes('/')) return { ...only, unsearched };
  const paths = [...all].sort((a, b) => rank(a, text) - rank(b, text) || (a < b ? -1 : 1));
  return { paths: paths.slice(0, MAX_FILES), more: paths.length > MAX_FILES, unsearched };
}

/** Paths of this machine are shown without its name, but may be given with it, as other machines show them. */
function withoutOwnName(text: string, { settings: { fleet } }: Sources['config']): string {
  const own = `${fleet?.name}:/`;
  return fleet && text.startsWith(own) ? text.slice(own.length - 1) : text;
}

/** Also in a folder that this user may not enter. */
function mayExist(path: string): boolean {
  try {
    lstatSync(path);
    return true;
  } catch (error) {
    return !isAbsent(error);
  }
}

/** Node shows bytes of an argument that are not UTF-8 as U+FFFD. In paths, labfeed shows them as `\xE9`. */
function createSearch(text: string) {
  const parts = text.split(/\ufffd+/);
  const longest = parts.reduce((before, part) => (part.length > before.length ? part : before));
  const masked = (path: string): string => path.replace(/(?:\\x[0-9A-F]{2}|\ufffd)+/g, '\ufffd');
  const matches = (path: string): boolean =>
    parts.length === 1 ? hasWords(path, text) : masked(path).includes(masked(text));
  return { longest, matches };
}

/** First files with exactly this name, then those whose name contains it. */
function rank(path: string, text: string): number {
  const name = basename(path);
  return name === text ? 0 : name.includes(text) ? 1 : 2;
}

/** A share may not respond at all. */
const SEARCH_MS = 10_000;

async function search(folder: string, matches: (path: string) => boolean) {
  const found: string[] = [];
  let isComplete = false;
  const collect = async (): Promise<void> => {
    const signal = AbortSignal.timeout(SEARCH_MS);
    const batches = list(folder, { matcher: createMatcher({ files: ['**'], ignore: [] }), signal });
    let next = await batches.next();
    for (; !next.done; next = await batches.next()) found.push(...next.value.map(({ path }) => path).filter(matches));
    isComplete = next.value.state === 'present';
  };
  await atMost(SEARCH_MS, systemClock, Promise.allSettled([collect()]));
  return { folder, found, isComplete };
}

/** The path below the watched folder as it is configured, also if it was given through a link. */
function toWatchedPath(path: string, claims: readonly Claim[]): string {
  if (claims.some(({ watch }) => pathInside(watch, path) !== undefined)) return path;
  const real = realPath(path);
  for (const { watch } of claims) {
    const inside = pathInside(realPath(watch), real);
    if (inside !== undefined) return join(watch, inside);
  }
  return path;
}

/** If the file is gone, its folder is resolved. */
function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    const folder = dirname(path);
    return folder === path ? path : resolve(realPath(folder), relative(folder, path));
  }
}
