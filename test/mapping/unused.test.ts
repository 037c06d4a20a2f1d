import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { trialAsJson, trialAsText } from '../../src/commands/try.js';
import { makePreview } from '../../src/daemon/preview.js';
import { learn, toInstrument, toYaml } from '../../src/learn/learn.js';
import { tryFile, tryQuarantined } from '../../src/mapping/mapping.js';
import { openSample } from '../../src/mapping/sample.js';
import { changesBetween, shapeOf } from '../../src/model.js';
import { tempFolder } from '../support/temp-folder.js';

/** Lines that look like readings, but are in no table. */

const TABLE = Array.from({ length: 6 }, (_, n) => `${n},${20 + n / 10}`).join('\n');
const UNUSED = Array.from({ length: 4 }, (_, n) => `${n};${n + 0.5};${n + 0.25};0.${n}`).join('\n');
const TEXT = `t,y\n${TABLE}\n\nSecond part\n${UNUSED}\n`;
const MESSAGE = '4 lines that look like readings were not used: 10–13';
/** A mapping that a person could write, and that does not read the second part. */
const PARSE = { delimiter: ',', table: {} };

async function sample(text: string, name = 'run.csv') {
  const path = join(tempFolder(), name);
  writeFileSync(path, text);
  return openSample(path);
}

const attempt = async (text: string, written: object) =>
  tryFile(toInstrument('scope', { watch: '/data', ...written }), await sample(text), Date.now());

describe('lines that look like readings and are in no table', () => {
  test('are counted, with the lines that tables have', async () => {
    const { record } = await attempt(TEXT, { parse: PARSE });
    expect(record).toMatchObject({ tableLines: 7 });
    expect(record.unread).toEqual([
      { kind: 'unread', from: 9, to: 9 },
      { kind: 'unread', from: 10, to: 13, readings: 4 },
    ]);
  });

  test('are counted if they were read as facts whose names are numbers', async () => {
    const text = `t,y\n${TABLE}\n\n400\t0.1\n410\t0.2\n420\t0.3\nGain\t5\n`;
    const { record, warnings, omits } = await attempt(text, { parse: { ...PARSE, meta: { separator: 'tab' } } });
    expect(record.unread).toEqual([{ kind: 'only facts', from: 9, to: 11, readings: 3 }]);
    expect(warnings).toEqual(['3 lines that look like readings were not used: 9–11']);
    expect(omits).toEqual([]);
  });

  test('are counted if they were split in the wrong place, unless they are few', async () => {
    const rows = (count: number) => Array.from({ length: count }, (_, n) => `S-${n}   2,${6000 + n}`).join('\n');
    const parse = { delimiter: ',', meta: { separator: ',' } };
    expect((await attempt(`Gain,5\n\n${rows(12)}\n`, { parse })).warnings).toEqual([
      '12 lines that look like readings were not used: 3–14',
    ]);
    expect((await attempt(`Gain,5\n\n${rows(9)}\n`, { parse })).warnings).toEqual([]);
    const tabs = '1\t60,2157\t73,9\n2\t34,5285\t80,3\n3\t18,4150\t38,5\n';
    expect((await attempt(`Gain,5\n\n${tabs}`, { parse })).warnings).toHaveLength(1);
  });

  test('are named by `try`, in the entry and on the page', async () => {
    const trial = await attempt(TEXT, { parse: PARSE });
    expect(trialAsText(trial, false)).toContain(`\ncheck       ${MESSAGE}\n`);
    expect(trialAsJson(trial)).toMatchObject({ warnings: [MESSAGE] });
    expect(trial.draft.body).toContain(`<p>${MESSAGE}.</p>`);
    const instrument = { ...toInstrument('scope', { watch: '/data', parse: PARSE }), placeOf: undefined };
    const preview = await makePreview({
      sample: { name: 'run.csv', content: Buffer.from(TEXT), modifiedMs: Date.now() },
      instrument,
      nowMs: Date.now(),
    });
    expect(preview).toMatchObject({ ok: true, doubts: [MESSAGE] });
  });

  test('`try` shows what was read of a file that would be quarantined, and no date if that is unclear', async () => {
    const show = async (text: string) =>
      tryQuarantined(
        toInstrument('scope', { watch: '/data', parse: PARSE, unread: 'quarantine' }),
        await sample(text),
        Date.now(),
      );
    const held = await show(TEXT);
    expect(trialAsText(held, false)).toMatch(
      /^would be quarantined: .*4 lines that look like readings[\s\S]*\ndate {8}\d/,
    );
    expect(trialAsJson(held)).toMatchObject({
      quarantine: expect.stringContaining(MESSAGE),
      draft: { date: expect.any(String) },
    });
    expect(trialAsJson(held).record.tables[0]?.rows).toHaveLength(6);

    const dated = {
      delimiter: ',',
      meta: { separator: ',', until: 't' },
      facts: { date: 'Date' },
      table: { header: 't' },
    };
    const instrument = toInstrument('scope', { watch: '/data', parse: dated });
    const undated = await tryQuarantined(instrument, await sample(`Date,03/04/2026\nt,y\n${TABLE}\n`), Date.now());
    expect(trialAsText(undated, false)).toMatch(/^would be quarantined: [\s\S]*\ndate {8}unknown\n/);
    expect(trialAsJson(undated)).toMatchObject({
      quarantine: expect.stringContaining('03/04/2026'),
      draft: { date: null },
    });
    expect(trialAsJson(await show(`t,y\n${TABLE}\n`))).not.toHaveProperty('quarantine');
  });

  test('quarantine a run that is read as drafted or without a mapping, unless they are few', async () => {
    await expect(attempt(TEXT, { parse: PARSE, unread: 'quarantine' })).rejects.toMatchObject({
      message: MESSAGE,
      where: { line: 10 },
      hint: expect.stringMatching(/add a table for them to the mapping; .*`unread: warn`/),
    });
    const few = `t,y\n${TABLE}\n${TABLE}\n${TABLE}\n${TABLE}\n${TABLE}\n${TABLE}\n\nSecond part\n${UNUSED}\n`;
    expect((await attempt(few, { parse: PARSE, unread: 'quarantine' })).warnings).toHaveLength(1);
    const two = `t,y\n1,2\n\nSecond part\n1;2;3\n4;5;6\n`;
    expect((await attempt(two, { parse: PARSE, unread: 'quarantine' })).warnings).toEqual([]);
  });

  test('quarantine a run without a mapping, and not if a person decided to file it', async () => {
    const text = `t,y\n${TABLE}\n\n1 2 3 4\n1 2 3 5 7\n2 3 4 5\nend of file\n2 3 4 6\n`;
    await expect(attempt(text, {})).rejects.toMatchObject({
      message: '3 lines that look like readings were not used: 9, 11, 13',
      hint: expect.stringContaining('add a mapping that reads them'),
    });
    expect((await attempt(text, { unread: 'warn' })).warnings).toHaveLength(1);
  });

  test('are doubts of a draft, which quarantines such runs until a person changes it', async () => {
    const short = `t,y\n${TABLE}\n${TABLE}\n${TABLE}\n${TABLE}\n${TABLE}\n${TABLE}\n`;
    const file = await sample(`${short}\n1 2 3 4\n1 2 3 5 7\n2 3 4 5\nend of file\n2 3 4 6\n`);
    const learned = await learn([file], Date.now());
    expect(learned.instrument).toMatchObject({ unread: 'quarantine' });
    const yaml = await toYaml(learned, [file.path]);
    expect(yaml).toMatch(/# Unsure: \d lines that look like readings were not used: /);
  });
});

test.each([
  ['a note with numbers', 'Lamp 1 2 3 on\nSerial 5 7 8 9\n'],
  ['statistics', 'Mean,1,2\nSD,0.1,0.2\nCV%,1,2\nMax,3,4\nMin,1,1\n'],
  ['settings', 'Wavelengths\t260\t280\nGains\t1\t2\nTimes\t5\t6\nSlits\t1\t1\n'],
  ['dates alone', 'Started 2026-03-04 10:20\nPaused 2026-03-04 10:30\nEnded 2026-03-04 10:40\n'],
])('%s below the readings are not taken for readings', async (_, footer) => {
  const { record } = await attempt(`t,y\n${TABLE}\n\n${footer}`, {
    parse: { ...PARSE, meta: { separator: 'tab' } },
  });
  expect(record.unread.some(({ readings }) => readings !== undefined)).toBe(false);
});

test('columns without a name are named, and those that labfeed invented do not count as drift', async () => {
  const read = (text: string, table: object = { header: 'none' }) => attempt(text, { parse: { table } });
  const before = await read('1,2,3\n4,5,6\n');
  expect(before.warnings).toEqual(['3 columns without a name in the file: column 1, column 2, column 3']);
  expect(before.draft.body).toContain('3 columns without a name in the file');
  const now = await read('1,2\n4,5\n');
  expect(changesBetween(shapeOf(before.record), shapeOf(now.record))).toEqual([]);
  const texts = await read('t,y\n1,<2\n3,4\n', {});
  expect(texts.record.tables[0]?.columns.map(({ name }) => name)).toEqual(['t', 'y', 'y text']);
  const none = await read('t,y\n1,2\n3,4\n', {});
  expect(changesBetween(shapeOf(texts.record), shapeOf(none.record))).toEqual([]);
  expect(changesBetween(shapeOf(none.record), shapeOf(texts.record))).toEqual([]);
});

describe('numbers that repeat at one path and were not looked up', () => {
  const numbers = (count: number, from = 0) => Array.from({ length: count }, (_, n) => from + n / 4);
  const read = async (content: object | string, parse: object) => {
    const isText = typeof content === 'string';
    const file = await sample(isText ? content : JSON.stringify(content, null, 1), isText ? 'run.xml' : 'run.json');
    return tryFile(toInstrument('scope', { watch: '/data', parse }), file, Date.now());
  };
  const zipped = { tables: { scan: { columns: { t: { from: '/scan/t' }, y: { from: '/scan/y' } } } } };

  test('are named with their path, and quarantine a run that was read as drafted', async () => {
    const content = { scan: { t: numbers(12), y: numbers(12, 5) }, blank: { y: numbers(15, 7) } };
    const { warnings, omits } = await read(content, zipped);
    expect(warnings).toEqual(['15 values that look like readings were not used: lines 34–48 of /blank/y']);
    expect(omits).toEqual(['not read: lines 34–48 of /blank/y']);
    const drafted = toInstrument('scope', { watch: '/data', parse: zipped, unread: 'quarantine' });
    const file = await sample(JSON.stringify(content), 'run.json');
    await expect(tryFile(drafted, file, Date.now())).rejects.toMatchObject({
      message: '15 values that look like readings were not used: line 1 of /blank/y',
    });
  });

  test('are left out like columns if the same rows are read', async () => {
    const content = { scan: { t: numbers(12), y: numbers(12, 5), z: numbers(12, 7) }, few: numbers(9) };
    expect((await read(content, zipped)).warnings).toEqual([]);
    const shorter = { scan: { ...content.scan, z: numbers(11, 7) } };
    expect((await read(shorter, zipped)).warnings).toEqual([expect.stringContaining('11 values')]);
    const rows = Array.from({ length: 12 }, (_, n) => ({ t: n, y: 2 * n }));
    expect((await read({ rows }, { table: { rows: '/rows', columns: ['t'] } })).warnings).toEqual([]);
  });

  test('are found in the text of one element, but not in counts', async () => {
    const scans = numbers(12).map((n) => `<scan id="${n}" length="3"><peak>${n}</peak></scan>`);
    const xml = `<run><sample>A</sample>${scans.join('\n')}\n<trace>${numbers(20).join(' ')}</trace></run>`;
    const { warnings } = await read(xml, { table: { rows: '//scan', columns: ['peak'] } });
    expect(warnings).toEqual(['20 values that look like readings were not used: line 13 of /run/trace']);
  });

  test('are found in records of which nothing was read', async () => {
    const lines = numbers(6).map((n) => `R;${n};${n + 1}\nQ;${n};${n + 2}`);
    const parse = { format: 'records', delimiter: ';', table: { rows: '/R' } };
    const file = await sample(lines.join('\n'), 'run.txt');
    const { warnings } = await tryFile(toInstrument('scope', { watch: '/data', parse }), file, Date.now());
    expect(warnings).toEqual(['12 values that look like readings were not used: lines 2–12 of /Q']);
  });
});
