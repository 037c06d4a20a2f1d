import type { Finding } from './account.js';
import type { Evidence, InstrumentEvidence } from './evidence.js';

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
  if (owner)
    return [...claimed(owner), ...inside.filter((one) => one !== owner).map((one) => beside(one, owner))];
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
