import type { LimiterState, WaitingFile } from '../live.js';
import type { RunState } from '../model.js';

/** All that is known about one file, from its folder, the configuration, the journal and the running daemon. */
export interface Evidence {
  readonly path: string;
  readonly now: number;
  readonly file: FileEvidence;
  /** In the order in which they claim files. */
  readonly instruments: readonly InstrumentEvidence[];
  /** What the journal remembers of this path; the same instrument may stand there twice. */
  readonly known: readonly KnownPath[];
  /** Runs that this path, or the very bytes of the file, belong to; the newest first. */
  readonly runs: readonly KnownRun[];
  /** Whether there is a journal at all. */
  readonly journal: boolean;
  /** It is the journal itself, or a file that belongs to it. */
  readonly isJournal: boolean;
  readonly daemon: {
    readonly running: boolean;
    readonly gate: LimiterState | undefined;
  };
  readonly servers: readonly KnownServer[];
}

export type FileEvidence =
  | {
      readonly state: 'present';
      readonly size: number;
      readonly modifiedMs: number;
      /** Undefined where it was not, or could not be, read. */
      readonly sha256: string | undefined;
      /** Why it was not. */
      readonly unread: string | undefined;
    }
  | { readonly state: 'absent' | 'folder' }
  | { readonly state: 'unreadable'; readonly reason: string };

export interface InstrumentEvidence {
  readonly name: string;
  readonly watch: string;
  readonly files: readonly string[];
  /** How the file stands to it. */
  readonly rule: Rule;
  /** The path of the run that the file is one of several of. */
  readonly partOf: string | undefined;
  readonly folder: {
    readonly state: 'present' | 'missing' | 'unreadable';
    readonly reason?: string | undefined;
  };
  /** A linked folder between the watched one and the file: such are not followed. */
  readonly link: string | undefined;
  /** What is wrong with it, so that it is stopped. */
  readonly mistakes: readonly string[];
  readonly quietMs: number;
  readonly doneFile: { readonly name: string; readonly isThere: boolean } | undefined;
  /** Undefined where they have a mistake. */
  readonly changed: string | undefined;
  readonly existing: string | undefined;
  readonly duplicates: string | undefined;
  /** How many old files wait for an answer. */
  readonly asked: number;
  /** What the daemon says of this very file. */
  readonly waiting: WaitingFile | undefined;
}

export type Rule =
  | { readonly kind: 'taken'; readonly pattern: string }
  | { readonly kind: 'ignore' | 'doneFile' | 'run'; readonly pattern: string }
  /** `otherCase`: one that would fit if capitals did not count. */
  | { readonly kind: 'files'; readonly otherCase: string | undefined }
  /** How many folders lie between it and the file. */
  | { readonly kind: 'outside'; readonly distance: number };

interface KnownPath {
  readonly instrument: string;
  readonly verdict: 'taken' | 'skipped' | 'asked';
  readonly run?: number | undefined;
}

export interface KnownRun {
  readonly id: number;
  readonly instrument: string;
  readonly state: RunState;
  /** Empty where it was erased. */
  readonly path: string;
  readonly sha256: string;
  readonly server: string | undefined;
  readonly experiment: number | undefined;
  readonly reason: string | undefined;
  readonly dueAt: number;
  readonly addedAt: number;
  readonly updatedAt: number;
  /** What a person can do about it. */
  readonly nextStep: string;
}

interface KnownServer {
  readonly url: string;
  readonly dialect: string | undefined;
  readonly halted: string | undefined;
}

/** What became of a file. Where it became a run, in the words that commands and page have for that. */
type Outcome =
  | RunState
  /** The same bytes are a run already. */
  | 'duplicate'
  /** Passed over as the configuration says. */
  | 'skipped'
  /** Part of the question that old files raise. */
  | 'asked'
  /** No instrument claims it. */
  | 'unmatched'
  /** The instrument that claims it is stopped. */
  | 'stopped'
  /** There is no such file, and the journal does not know of one. */
  | 'unknown';

/** One piece of evidence, in words. */
export interface Finding {
  readonly text: string;
  /** What can be done about it. */
  readonly hint?: string;
}

export interface Explanation {
  readonly path: string;
  readonly outcome: Outcome;
  /** The answer in one sentence, and what can be done. */
  readonly answer: Finding;
  /** What it rests on. */
  readonly findings: readonly Finding[];
  readonly run: number | undefined;
  readonly experiment: number | undefined;
  /** Where the experiment is. */
  readonly address: string | undefined;
}

export interface Account {
  readonly outcome: Outcome;
  readonly answer: Finding;
  readonly findings?: readonly Finding[];
}

/** A file belongs to the first instrument that matches it. */
export const ownerOf = (instruments: readonly InstrumentEvidence[]): InstrumentEvidence | undefined =>
  instruments.find(({ rule }) => rule.kind === 'taken');

/** Where the run is that the file is, or is part of. */
export const runPathOf = ({ path, instruments }: Pick<Evidence, 'path' | 'instruments'>): string =>
  ownerOf(instruments)?.partOf ?? path;

/** Which folders and globs matched, or which came nearest and by what they missed. */
export function matching({ path, instruments, isJournal }: Evidence): Finding[] {
  if (isJournal) return [{ text: "it belongs to labfeed's own journal, which is no run" }];
  if (instruments.length === 0) return [{ text: 'the configuration has no instruments' }];
  const owner = ownerOf(instruments);
  const inside = instruments.filter(({ rule }) => rule.kind !== 'outside');
  if (owner) return [...claimed(owner), ...inside.filter((one) => one !== owner).map((one) => beside(one, owner))];
  if (inside.length > 0) return inside.map(missed);
  const own = instruments.find(({ watch }) => watch === path);
  if (own) return [{ text: `it is the folder of ${own.name}: name a file in it` }];
  const [nearest] = instruments.toSorted((a, b) => distanceOf(a) - distanceOf(b));
  return [
    {
      text: `it is in none of the watched folders${nearest ? `; the nearest is ${nearest.watch}, of ${nearest.name}` : ''}`,
    },
  ];
}

const distanceOf = ({ rule }: InstrumentEvidence): number => (rule.kind === 'outside' ? rule.distance : 0);

function claimed({ name, watch, rule, folder, partOf }: InstrumentEvidence): Finding[] {
  const pattern = rule.kind === 'taken' ? rule.pattern : '';
  const gone = folder.state === 'present' ? '' : `, which is ${folder.state}: ${folder.reason}`;
  return [
    { text: `it matches ${name}: files "${pattern}" in the folder ${watch}${gone}` },
    ...(partOf === undefined ? [] : [{ text: `it belongs to a run of several files: ${partOf}` }]),
  ];
}

/** How another instrument, whose folder the file is in as well, stands to it. */
function beside(other: InstrumentEvidence, owner: InstrumentEvidence): Finding {
  if (other.rule.kind !== 'taken') return missed(other);
  return {
    text: `it would match ${other.name} too ("${other.rule.pattern}"), but ${owner.name} stands before it`,
    hint: 'a file goes to the first instrument that matches it; make the globs tell them apart',
  };
}

function missed({ name, watch, files, rule }: InstrumentEvidence): Finding {
  const where = `${name}, in whose folder ${watch} it is,`;
  switch (rule.kind) {
    case 'ignore':
      return {
        text: `${where} passes it over: ignore "${rule.pattern}" fits it, or a folder above it`,
        hint: `if it is a run, change \`ignore\` of ${name}`,
      };
    case 'doneFile':
      return { text: `${where} takes it for a done-file: its name fits "${rule.pattern}"` };
    case 'run':
      return {
        text: `${where} does not take it: its runs are made of several files (${rule.pattern}), and it is part of none`,
        hint: `if it belongs to a run, change \`run\` of ${name}`,
      };
    default:
      return {
        text: `${where} does not take it: none of its globs fits: ${files.map((glob) => `"${glob}"`).join(', ')}`,
        hint: hintOf(name, rule),
      };
  }
}

function hintOf(name: string, rule: InstrumentEvidence['rule']): string {
  const otherCase = rule.kind === 'files' ? rule.otherCase : undefined;
  return otherCase === undefined
    ? `if it is a run, add a glob to \`files\` of ${name}`
    : `"${otherCase}" would fit but for capitals, which count: add a glob with the other letters to \`files\` of ${name}`;
}
