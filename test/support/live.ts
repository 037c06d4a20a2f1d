import type { Live } from '../../src/live.js';

/** The status of a healthy daemon. */
export const someLive = (changes: Partial<Live> = {}): Live => ({
  at: Date.now(),
  pid: process.pid,
  version: '0.1.0',
  startedAt: Date.now() - 3_600_000,
  config: '/etc/labfeed/config.yaml',
  page: undefined,
  problems: [],
  refused: undefined,
  spool: undefined,
  notebook: {
    url: 'https://eln.example.org',
    gate: { kind: 'open', perSecond: 10 },
    requests: [{ method: 'POST', status: '201', count: 3 }],
  },
  instruments: [
    {
      name: 'balance',
      watch: '/srv/balance',
      line: 'watching',
      folder: { state: 'present' },
      scannedAt: undefined,
      files: 3,
      unmatched: { files: 0, example: undefined },
      unreadable: { files: 0, first: [] },
      stuck: { files: 0, first: [] },
      waiting: {
        files: 1,
        first: [{ path: '/srv/balance/new.csv', since: 1, reason: 'unchanged for 2 s of 5 s' }],
        unreadable: 0,
      },
      lastFileAt: undefined,
      polling: undefined,
    },
  ],
  alarms: [],
  ...changes,
});
