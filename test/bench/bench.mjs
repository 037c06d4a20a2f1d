/**
 * What labfeed costs, as ratios to the least that could do the same, measured side by side on this machine:
 * seconds of one machine mean nothing on another. `npm run bench -- --raw` also shows what is behind them.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { measureDelivery } from './delivery.mjs';
import { measureLongFile } from './long-file.mjs';
import { killAll } from './processes.mjs';
import { table } from './ratios.mjs';
import { measureStages } from './stages.mjs';
import { measureStartUp } from './startup.mjs';

const folder = mkdtempSync(join(tmpdir(), 'labfeed-bench-'));
process.on('exit', () => {
  killAll();
  rmSync(folder, { recursive: true, force: true });
});
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(1));

const tell = (what) => process.stderr.write(process.stderr.isTTY ? `\r\x1b[K${what}` : `${what}\n`);

try {
  const delivery = await measureDelivery(join(folder, 'delivery'), tell);
  const startUp = await measureStartUp(join(folder, 'start-up'), tell);
  const stages = await measureStages(join(folder, 'stages'), tell);
  const longFile = await measureLongFile(join(folder, 'long-file'), tell);
  const results = [...delivery, ...startUp, ...stages, ...longFile];
  tell('');
  console.log(table(results));
  if (process.argv.includes('--raw')) {
    for (const { what, raw } of results) console.log(`${what}: ${raw}`);
  }
} catch (error) {
  console.error('\nthe bench could not measure:', error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
