import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { csv, makeSite, startDaemon, startSandbox } from './site.mjs';

const MOST_MB = 200;
/** The long file is hashed, measured for its encoding and read, on a machine that may be slow. */
const LONGEST_MS = 600_000;

/**
 * A file of 200 MB as the real daemon takes it, from the folder to the notebook: how much memory the whole process
 * has at most, and how long small files wait that come meanwhile. `parse`: the mapping, if there is one.
 */
export async function measureDaemon(folder, path, parse, tell) {
  const which = parse ? '' : ', no mapping given';
  tell(`a long file, by the daemon${which}`);
  const [long, small] = ['long', 'small'].map((name) => join(folder, name));
  for (const made of [long, small]) mkdirSync(made, { recursive: true });
  const notebook = await startSandbox(join(folder, 'notebook'));
  const others = `  logger: { watch: "${long}", ready: { quiet: 50ms }${parse ? `, parse: ${parse}` : ''} }\n`;
  const daemon = startDaemon(makeSite(folder, { watch: small, notebook, existing: 'ingest', others }));
  await daemon.wrote('"ready"');
  const idleMb = daemon.rssBytes() / 2 ** 20;
  renameSync(path, join(long, 'long.csv'));
  let isTaken = false;
  const taken = daemon.wrote('long.csv","msg":"run queued"', 1, LONGEST_MS).then(() => {
    isTaken = true;
  });
  const waitsMs = [];
  for (let n = 1; !isTaken; n++) {
    writeFileSync(join(small, `small-${n}.csv`), csv(3, n));
    const droppedMs = performance.now();
    await daemon.wrote('"balance"', 2 * n);
    waitsMs.push(performance.now() - droppedMs);
  }
  await taken;
  const peakMb = daemon.peakRssBytes() / 2 ** 20;
  await daemon.stop();
  await notebook.stop();
  renameSync(join(long, 'long.csv'), path);
  return [
    {
      ...{ what: `memory of the daemon with it${which}`, baseline: `${MOST_MB} MB`, target: 1 },
      ratios: [peakMb / MOST_MB],
      raw: `${peakMb.toFixed(0)} MB at most, ${idleMb.toFixed(0)} MB before`,
    },
    {
      ...{ what: `a small file meanwhile${which}`, baseline: '2 s', target: 1 },
      ratios: waitsMs.map((waitMs) => waitMs / 2000),
      raw: `${waitsMs.length} files, the slowest in ${Math.max(...waitsMs).toFixed(0)} ms`,
    },
  ];
}
