import type { Live, LiveMember, MemberFolder } from './live.js';
import { formatDuration, joinWords, plural, relativeTime } from './text.js';

/** The machines of a fleet in words, the same in commands and on the page. */

type Fleet = NonNullable<Live['fleet']>;

/** An instrument on one of the machines. */
export interface Place {
  readonly member: LiveMember;
  readonly folder: MemberFolder;
}

/** The instruments of the other machines: this one knows more about its own. */
export const placesElsewhere = (fleet: Fleet | undefined): Place[] =>
  (fleet?.members ?? [])
    .filter(({ name }) => name !== fleet?.name)
    .flatMap((member) => member.folders.map((folder) => ({ member, folder })));

/** Who delivers; null: nobody. Undefined if that is not known: before the machines are listed, and without the database. */
export const leaderOf = ({ trouble, members }: Fleet): string | null | undefined =>
  trouble !== undefined || members.length === 0 ? undefined : (members.find(({ leads }) => leads)?.name ?? null);

/** What another machine says about its own runs and folders is in the lists of runs and folders, too. */
const LISTED = ['quarantine', 'held'];

/** The alarms of the other machines, each once, with the machines that have it. */
export function alarmsElsewhere(fleet: Fleet | undefined, own: Live['alarms']): string[] {
  const machines = new Map<string, string[]>();
  for (const { name, isAway, alarms } of fleet?.members ?? []) {
    if (name === fleet?.name) continue;
    for (const { kind, instrument, text } of alarms) {
      if ((instrument != null && LISTED.includes(kind)) || own.some((alarm) => alarm.text === text)) continue;
      machines.set(text, [...(machines.get(text) ?? []), isAway ? `${name} (away)` : name]);
    }
  }
  return [...machines].map(([text, names]) => `${names.join(', ')}: ${text}`);
}

/**
 * The address stands for the notebook in what the fleet records: under another one, a machine knows nothing of what was sent.
 * Undefined if all machines that deliver, or are ready to, have the same.
 */
export function differentNotebooks(members: readonly Pick<LiveMember, 'name' | 'isAway' | 'notebook'>[]) {
  const machines = new Map<string, string[]>();
  for (const { name, isAway, notebook } of members)
    if (notebook != null && !isAway) machines.set(notebook, [...(machines.get(notebook) ?? []), name]);
  if (machines.size < 2) return undefined;
  const notebooks = joinWords([...machines].map(([url, names]) => `${url} (${names.join(', ')})`));
  return {
    notebooks,
    text: `the machines that deliver have different addresses of the notebook: ${notebooks}`,
    hint: 'set exactly the same `notebook.url` on all of them: the one under which runs have been filed',
  };
}

const MAX_SKEW_MS = 5000;

export function describeClock({ skewMs }: LiveMember): string {
  if (Math.abs(skewMs) <= MAX_SKEW_MS) return 'clock correct';
  return `its clock is ${formatDuration(Math.abs(skewMs))} ${skewMs > 0 ? 'ahead' : 'behind'}`;
}

export const describeSeen = ({ isAway, seenAt }: LiveMember, now: number): string =>
  `${isAway ? 'away, ' : ''}last seen ${relativeTime(seenAt, now)}`;

export const describeRole = ({ leads, role }: LiveMember): string =>
  leads ? 'delivers' : role === 'watch' ? 'watches' : 'ready to deliver';

/** Runs that it knows of and that are not filed yet, and what of it the leader has not applied. */
export function describeQueue({ folders, waiting, failures }: LiveMember): string[] {
  const queued = folders.reduce((sum, { runs }) => sum + (runs?.queued ?? 0), 0);
  return [
    ...(queued > 0 ? [plural(queued, 'run queued', 'runs queued')] : []),
    ...(waiting > 0 ? [plural(waiting, 'operation waiting', 'operations waiting')] : []),
    ...(failures > 0 ? [`${plural(failures, 'operation')} set aside, see labfeed.failures`] : []),
  ];
}

/** An older version reports less, which must not look as if there were nothing. */
export const describeOlder = ({ folders }: LiveMember): string[] =>
  folders.some(({ runs }) => runs == null) ? ['its version does not report silence, runs and backlogs'] : [];

export const isSilent = ({ member: { alarms }, folder: { instrument } }: Place): boolean =>
  alarms.some((alarm) => alarm.kind === 'silence' && alarm.instrument === instrument);

/** Folder, last file, what waits and what needs a person. */
export function describeFolder(place: Place, now: number): string {
  const { watch, state, reason, lastFileAt, silenceMs, waiting, unreadable, stuck, asked, runs } = place.folder;
  const there =
    state === 'present' ? '' : state === 'stopped' ? ' is not watched' : ` is ${state}${reason ? ` (${reason})` : ''}`;
  const count = (n: number | null | undefined, one: string, many: string): string[] =>
    n ? [plural(n, one, many)] : [];
  const expected = silenceMs == null ? [] : [`expected every ${formatDuration(silenceMs)}`];
  return [
    `${watch}${there}`,
    ...(lastFileAt == null ? ['no file yet'] : [`last file ${relativeTime(Math.min(lastFileAt, now), now)}`]),
    ...(isSilent(place) && silenceMs != null ? [`silent for more than ${formatDuration(silenceMs)}`] : expected),
    ...count(waiting, 'file not ready', 'files not ready'),
    ...count(unreadable, 'file cannot be read', 'files cannot be read'),
    ...count(stuck, 'file waits for more than a day', 'files wait for more than a day'),
    ...count(asked, 'existing file needs a decision', 'existing files need a decision'),
    ...count(runs?.queued, 'run queued', 'runs queued'),
    ...count(runs?.quarantined, 'run quarantined', 'runs quarantined'),
    ...count(runs?.held, 'run held', 'runs held'),
  ].join(', ');
}
