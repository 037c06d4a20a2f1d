import { generate } from './generate.js';
import { scoreAll } from './score.js';

/** Prints how well generated files are read without a mapping: `npm run bench -- reading [SEED] [FILES]`. */

const [first = Math.floor(Math.random() * 1e6), files = 500] = process.argv.slice(2).map(Number);
const { mistakes, reasons, refused, ...found } = await scoreAll(
  Array.from({ length: files }, (_, n) => first + n),
  generate,
);
const share = (part: number, all: number): string => `${((100 * part) / Math.max(1, all)).toFixed(1)} %`;
console.log(`${files} generated files from seed ${first}, ${refused} refused (${share(refused, files)})`);
for (const kind of ['facts', 'readings', 'units', 'dates'] as const) {
  const { all, right, wrong } = found[kind];
  console.log(`${kind.padEnd(9)} ${share(right, all)} right, ${wrong} wrong (${share(wrong, all)}), of ${all}`);
}
for (const [reason, seeds] of reasons) console.log(`refused ${seeds.length}: ${reason} (seed ${seeds.slice(0, 5)})`);
for (const mistake of mistakes.slice(0, 60)) console.log(mistake);
