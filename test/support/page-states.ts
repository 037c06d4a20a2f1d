import type { Live, LiveMember, MemberFolder } from '../../src/live.js';
import type { InstrumentSummary, Job, JobDetail, Overview } from '../../src/status/api.js';
import { NO_RUNS, someInstrument, someJob, someLive } from './status-server.js';

export const someSummary = (name: string, changes: Partial<InstrumentSummary> = {}): InstrumentSummary => ({
  name,
  runs: NO_RUNS,
  asked: 0,
  hours: [],
  ...changes,
});

/** An instrument of a machine of a fleet, on which nothing happens. */
export const someFolder = (instrument: string, changes: Partial<MemberFolder> = {}): MemberFolder => ({
  ...{ instrument, watch: `/srv/${instrument}`, state: 'present', reason: null, lastFileAt: null, silenceMs: null },
  ...{ waiting: 0, unreadable: 0, stuck: 0, asked: 0, runs: { queued: 0, quarantined: 0, held: 0 } },
  ...changes,
});

/** A machine of a fleet that is away. Its folder was missing. */
export const someMember = (name: string, changes: Partial<LiveMember> = {}): LiveMember => ({
  ...{
    name,
    role: 'watch',
    version: name,
    seenAt: 1,
    isAway: true,
    skewMs: 90_000,
    leads: false,
    waiting: 2,
    failures: 1,
  },
  folders: [someFolder(name, { watch: name, state: 'missing', reason: name, lastFileAt: 1, waiting: 3 })],
  alarms: [{ kind: 'folder', instrument: name, text: name }],
  ...changes,
});

/** This many instruments, with everything that a card can show. */
export function manyInstruments(many: number): { live: Live; overview: Overview } {
  const names = Array.from({ length: many }, (_, n) => `instrument-${n}`);
  const hour = Math.floor(Date.now() / 3_600_000);
  return {
    live: someLive({ instruments: names.map((name) => someInstrument(name)) }),
    overview: {
      servers: [],
      instruments: names.map((name, n) =>
        someSummary(name, {
          runs: { ...NO_RUNS, done: 10 },
          last: someJob(n + 1, { instrument: name, title: `Run of ${name}` }),
          hours: [{ hour, runs: 10 }],
        }),
      ),
    },
  };
}

/** Every text that can come from a file, a person or a server, each an attempt to become markup. */
export function hostile(text: string): { live: Live; overview: Overview; jobs: Job[]; job: JobDetail } {
  const job = someJob(1, {
    instrument: text,
    state: 'quarantined',
    step: 'pending',
    path: `/srv/${text}`,
    sha256: text,
    title: text,
    server: text,
    experiment: 5,
    failure: text,
    reason: `${text}\n  → ${text}`,
  });
  const problem = { at: text, message: text, hint: text, instrument: text };
  const instrument = someInstrument(text, {
    watch: text,
    folder: { state: 'missing', reason: text },
    unmatched: { files: 1, example: text },
    waiting: { files: 1, first: [{ path: text, since: 1, reason: text }], unreadable: 1 },
    unreadable: { files: 1, first: [{ path: text, since: 1, reason: text }] },
    stuck: { files: 0, first: [] },
  });
  return {
    live: someLive({
      config: text,
      problems: [problem],
      refused: { at: 1, problems: [problem] },
      notebook: {
        url: `javascript:${text}`,
        gate: { kind: 'down', since: 1, probeAt: 1, failure: 'server', reason: text },
        requests: [{ method: text, status: text, count: 1 }],
      },
      instruments: [instrument],
      alarms: [{ kind: 'silence', instrument: text, since: 1, text }],
      fleet: { name: text, delivers: false, trouble: text, kept: 1, members: [someMember(text)] },
    }),
    overview: {
      instruments: [someSummary(text, { runs: { ...NO_RUNS, quarantined: 1 }, last: job, asked: 60 })],
      servers: [{ url: text, dialect: text, halted: text }],
    },
    jobs: [job],
    job: {
      ...job,
      draft: { title: text, date: text, body: '<p>quiet</p>', tags: [text] },
      comments: [{ n: 1, text }],
      history: [{ at: 1, words: text }],
      paths: [text],
      sources: [
        { path: text, outcome: 'moved', movedTo: text },
        { path: text, reason: text },
      ],
      versions: [text],
      drift: [text],
    },
  };
}
