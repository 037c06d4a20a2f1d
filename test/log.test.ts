import { expect, test } from 'vitest';
import { createLog } from '../src/log.js';

/** A log, and everything written to it. */
function written() {
  const lines: string[] = [];
  const destination = { write: (line: string) => void lines.push(line) };
  return { ...createLog({ level: 'info', pretty: false, destination }), text: () => lines.join('') };
}

test('a secret is redacted in messages, fields, URLs and errors', () => {
  const { log, conceal, text } = written();
  conceal('k-0815');
  log.info({ field: 'k-0815', nested: { deep: ['k-0815'] } }, 'sent k-0815');
  log.warn({ url: 'https://eln.example.org/?key=k-0815' }, 'asked');
  log.error({ err: new Error('401 for k-0815') }, 'refused');
  expect(text()).toContain('sent [secret]');
  expect(text()).not.toContain('k-0815');
});

test('a second secret, and one that JSON escapes, are redacted too', () => {
  const { log, conceal, text } = written();
  conceal('say "friend"\\');
  conceal('another');
  log.info({ one: 'say "friend"\\', two: 'another' }, 'both');
  expect(text()).not.toMatch(/friend|another/);
});

test('an empty secret redacts nothing', () => {
  const { log, conceal, text } = written();
  conceal('');
  log.info('as it is');
  expect(text()).toContain('as it is');
  expect(text()).not.toContain('[secret]');
});
