/**
 * What labfeed costs, as ratios to the least that could do the same, measured side by side on this machine:
 * seconds of one machine mean nothing on another. `npm run bench -- --raw` also shows what is behind them, and `--draw`
 * draws docs/images/speed.svg. `npm run bench -- scale` measures large journals and folders, and
 * `npm run bench -- reading [SEED] [FILES]` how well generated instrument files are read, and
 * `npm run bench -- fleet [RUNS…] [--million] [--statements] [--load]` what a fleet costs its database.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { measureLongFile } from './long-file.mjs';
import { drawPipeline } from './picture.mjs';
import { countCalls, measurePipeline, pipelineRatios, pipelineTable } from './pipeline.mjs';
import { killAll } from './processes.mjs';
import { table } from './ratios.mjs';
import { measureScale } from './scale.mjs';
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
  if (process.argv[2] === 'reading') runScript('../reading/measure.ts', process.argv.slice(3));
  else if (process.argv[2] === 'fleet') runScript('./fleet.ts', process.argv.slice(3));
  else if (process.argv.includes('scale')) console.log((await measureScale(folder, tell)).join('\n'));
  else await measureAll();
} catch (error) {
  console.error('\nthe bench could not measure:', error instanceof Error ? error.message : error);
  process.exitCode = 1;
}

function runScript(file, options) {
  const [loader, script] = ['../support/typescript.mjs', file].map((path) =>
    fileURLToPath(new URL(path, import.meta.url)),
  );
  spawnSync(process.execPath, ['--import', loader, script, ...options], { stdio: 'inherit' });
}

async function measureAll() {
  const measured = await measurePipeline(join(folder, 'pipeline'), tell);
  const calls = await countCalls(join(folder, 'calls'), tell);
  const pipeline = pipelineRatios(measured);
  const startUp = await measureStartUp(join(folder, 'start-up'), tell);
  const stages = await measureStages(join(folder, 'stages'), tell);
  const longFile = await measureLongFile(join(folder, 'long-file'), tell);
  const results = [...pipeline, ...startUp, ...stages, ...longFile];
  tell('');
  console.log(table(results));
  console.log(['', ...pipelineTable(measured), calls].join('\n'));
  // Only on request: the picture is part of the documentation.
  if (process.argv.includes('--draw')) drawPipeline(measured, 'docs/images/speed.svg');
  if (process.argv.includes('--raw')) {
    for (const { what, raw } of results) console.log(`${what}: ${raw}`);
  }
}
