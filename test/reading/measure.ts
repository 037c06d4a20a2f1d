import { generate } from './generate.js';
import { GRAMMARS, generateIn } from './grammars.js';
import { generateHead } from './heads.js';
import { scoreAll } from './score.js';
import { generateRecords, RECORD_SHAPES } from './sheets-and-records.js';
import { generateTree, TREE_SHAPES } from './trees.js';

/** Prints how well generated files are read without a mapping: `npm run bench -- reading [SEED] [FILES]`. */

const [first = Math.floor(Math.random() * 1e6), files = 500] = process.argv.slice(2).map(Number);
const share = (part: number, all: number): string => `${((100 * part) / Math.max(1, all)).toFixed(1)} %`;

async function measure(name: string, count: number, make: Parameters<typeof scoreAll>[1]): Promise<void> {
  const seeds = Array.from({ length: count }, (_, n) => first + n);
  const { mistakes, reasons, refused, ...found } = await scoreAll(seeds, make);
  console.log(`${name}: ${count} files from seed ${first}, ${refused} refused (${share(refused, count)})`);
  for (const kind of ['facts', 'readings', 'units', 'dates'] as const) {
    const { all, right, wrong } = found[kind];
    console.log(`  ${kind.padEnd(9)} ${share(right, all)} right, ${wrong} wrong (${share(wrong, all)}), of ${all}`);
  }
  for (const [reason, own] of reasons) console.log(`  refused ${own.length}: ${reason} (seed ${own.slice(0, 5)})`);
  for (const mistake of mistakes.slice(0, 20)) console.log(`  ${mistake}`);
}

await measure('any layout', files, generate);
await measure('facts', files, generateHead);
for (const grammar of GRAMMARS) await measure(grammar, Math.ceil(files / 5), (seed) => generateIn(grammar, seed));
for (const shape of TREE_SHAPES) await measure(shape, Math.ceil(files / 5), (seed) => generateTree(shape, seed));
for (const shape of RECORD_SHAPES) await measure(shape, Math.ceil(files / 5), (seed) => generateRecords(shape, seed));
