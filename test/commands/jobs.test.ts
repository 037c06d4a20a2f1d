import { expect, test, vi } from 'vitest';
import { jobsTable, nextStep } from '../../src/commands/jobs.js';
import type { Job } from '../../src/journal/jobs.js';

const NOW = Date.UTC(2026, 0, 5, 12);

const job = (changes: Partial<Job>): Job => ({
  id: 17,
  instrument: 'nanodrop',
  state: 'quarantined',
  step: 'pending',
  path: '/srv/instruments/nanodrop/run-17.tsv',
  size: 1,
  modifiedMs: NOW,
  sha256: 'ab'.repeat(32),
  backlog: false,
  title: undefined,
  server: undefined,
  experiment: undefined,
  failure: 'file',
  reason: undefined,
  attempts: 0,
  dueAt: 0,
  addedAt: NOW,
  updatedAt: NOW,
  ...changes,
});

const lastLine = (changes: Partial<Job>): string => {
  vi.stubEnv('COLUMNS', '300');
  const line =
    jobsTable([job(changes)], NOW)
      .split('\n')
      .at(-1) ?? '';
  vi.unstubAllEnvs();
  return line;
};

test('a reason is one line, with line and column but without the path', () => {
  const reason = '/srv/instruments/nanodrop/run-17.tsv:3:7: 1,234 can be read in two ways\n  → decimal: ","';
  expect(lastLine({ reason })).toMatch(/ run-17\.tsv .* line 3, column 7: 1,234 can be read in two ways$/);
});

test('a filed run has its experiment and title; an erased run has no name', () => {
  expect(lastLine({ state: 'done', experiment: 12, title: 'Weighing' })).toMatch(/ 12 +Weighing$/);
  expect(lastLine({ path: '' })).toContain('(erased)');
});

test('a held run offers to adopt its experiment only if its reason does not say what helps', () => {
  const held = { state: 'held', step: 'created', failure: 'conflict', experiment: 5 } as const;
  expect(nextStep(job({ ...held, reason: 'its title is now A → B' }))).toContain(
    'To overwrite experiment 5: labfeed adopt 17 5.',
  );
  const next = nextStep(job({ ...held, reason: 'experiment 5 is deleted\n  → labfeed does not change it' }));
  expect(next).not.toContain('adopt');
  expect(next).toContain('labfeed refile 17');
});
