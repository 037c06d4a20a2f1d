import { expect, test } from 'vitest';
import { createLog } from '../src/log.js';

/** A log, and everything written to it. */
function written(format: 'json' | 'journal' = 'json') {
  const lines: string[] = [];
  const destination = { write: (line: string) => void lines.push(line) };
  return { ...createLog({ level: 'debug', format, destination }), text: () => lines.join('') };
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

test('a secret is redacted in the spellings in which a program may repeat it', () => {
  const { log, conceal, isSecretIn, text } = written();
  const secret = '7-c0ffee"/+<0123456789>';
  const bytes = Buffer.from(`Authorization: ${secret}\r\nHost: eln`);
  conceal(secret);
  const spellings = [
    secret.toUpperCase(),
    encodeURIComponent(secret),
    '7-c0ffee&quot;/+&lt;0123456789&gt;',
    Buffer.from(secret).toString('hex'),
    ...[0, 1, 2].map((start) => bytes.subarray(start).toString('base64')),
    ...[0, 1, 2].map((start) => bytes.subarray(start).toString('base64url')),
  ];
  for (const spelling of spellings) {
    expect(isSecretIn(`before ${spelling} after`)).toBe(true);
    log.info({ spelling }, 'echoed');
  }
  expect(text().match(/\[secret\]/g)).toHaveLength(spellings.length);
  expect(isSecretIn('7-c0ffee')).toBe(false);
});

test('control characters and changes of direction are visible in a line, which stays the same JSON', () => {
  const { log, text } = written();
  const name = 'a\u001b[2J\u009b\u202egpj.csv\u2066\u2028';
  log.info({ name }, name);
  expect(JSON.parse(text())).toMatchObject({ name, msg: name });
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not be there
  expect(text()).not.toMatch(/[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e\u2066\u2028]/);
});

test('in the journal of systemd, each event is one line with its priority, its message and its fields', () => {
  const { log, conceal, text } = written('journal');
  conceal('k-0815');
  log.debug('looked');
  log.info({ run: 7, instrument: 'plate reader' }, 'run filed');
  log.warn({ reason: 'the disk is full\n  → free some space', key: 'k-0815' }, 'waiting');
  log.error({ path: 'a\u001b[31m.csv', err: new Error('not read') }, 'failed');
  log.fatal('ended');
  expect(text().split('\n')).toEqual([
    '<7>looked',
    '<6>run filed run=7 instrument="plate reader"',
    '<4>waiting reason="the disk is full → free some space" key=[secret]',
    expect.stringMatching(/^<3>failed path=[!-~]+ error="not read"$/),
    '<2>ended',
    '',
  ]);
});
