import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { tempFolder } from '../support/temp-folder.js';

const BENCH = new URL('../bench/stages.mjs', import.meta.url).href;
const measured = z.array(z.object({ what: z.string(), target: z.number(), ratios: z.array(z.number()) }));

/** The goals are those of `npm run bench`. A machine under load may miss them a little; a new pass over the lines doubles. */
const MARGIN = 1.5;

test('reading a file takes a few times as long as splitting it into cells, also without a mapping', () => {
  const script = `import { measureStages } from ${JSON.stringify(BENCH)};
    console.log(JSON.stringify(await measureStages(${JSON.stringify(tempFolder())}, () => {}, 20)));`;
  const output = execFileSync(process.execPath, ['--input-type=module', '--eval', script], { encoding: 'utf8' });
  const stages = measured.parse(JSON.parse(output));
  const middle = ({ ratios }: (typeof stages)[number]) => ratios.toSorted((a, b) => a - b)[ratios.length >> 1] ?? 0;
  expect(stages).toHaveLength(3);
  for (const stage of stages) expect(middle(stage), stage.what).toBeLessThan(stage.target * MARGIN);
});
