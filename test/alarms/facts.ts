import type { Facts, InstrumentFacts } from '../../src/alarms/conditions.js';
import type { LiveInstrument } from '../../src/live.js';

export const NOW = Date.UTC(2026, 0, 5, 12);

type Overrides = Partial<Omit<InstrumentFacts, 'live'>> & { readonly live?: Partial<LiveInstrument> };

/** An instrument with nothing to report, apart from the overrides. */
export const instrument = ({ live, ...rest }: Overrides = {}): InstrumentFacts => ({
  live: {
    name: 'nanodrop',
    watch: '/data/nanodrop',
    line: 'watching',
    folder: { state: 'present' },
    scannedAt: NOW,
    files: 3,
    unmatched: { files: 0, example: undefined },
    waiting: { files: 0, first: [], unreadable: 0 },
    unreadable: { files: 0, first: [] },
    stuck: { files: 0, first: [] },
    lastFileAt: NOW - 1000,
    polling: undefined,
    ...live,
  },
  silence: undefined,
  quietSince: NOW - 1000,
  unmatchedArrivals: { occasions: 0, example: undefined },
  quarantined: undefined,
  held: undefined,
  asked: 0,
  ...rest,
});

/** A daemon with nothing to report, apart from the overrides. */
export const facts = (overrides: Partial<Facts> = {}): Facts => ({
  now: NOW,
  notebook: {
    url: 'https://eln.example.org',
    gate: { kind: 'open', perSecond: 10 },
    answered: true,
  },
  overdue: undefined,
  uploads: { url: 'https://eln.example.org', instruments: ['nanodrop'] },
  spool: { shortage: undefined, bytes: 0, maxBytes: 1e10 },
  sources: undefined,
  strays: [],
  instruments: [instrument()],
  problems: [],
  refused: undefined,
  journal: undefined,
  page: undefined,
  ...overrides,
});
