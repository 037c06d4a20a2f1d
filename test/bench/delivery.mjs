import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { start } from './processes.mjs';
import { median, ratios, rounds } from './ratios.mjs';
import { csv, fillFolder, makeSite, startDaemon, startSandbox } from './site.mjs';

const BARE_CLIENT = fileURLToPath(new URL('bare-client.mjs', import.meta.url));
const RUNS = 600;
/** Not counted, on either side: start-up, and what V8 has not compiled yet. A daemon lives for months. */
const WARM_UP = 300;
const ROWS = 10;
const ROUNDS = { least: 3, most: 6, withinMs: 30_000 };

/**
 * From the journal to the notebook, without reading files: the runs are in a journal that a daemon filled
 * while no notebook was there, and each round delivers a copy of it to an empty notebook.
 */
export async function measureDelivery(folder, tell) {
  tell('delivery: filling a journal');
  const watch = fillFolder(join(folder, 'files'), RUNS, (n) => csv(ROWS, n));
  const filled = await fillJournal(join(folder, 'filled'), watch);
  const example = join(folder, 'example.json');
  const ours = [];
  const bare = [];
  for (const round of rounds(ROUNDS)) {
    tell(`delivery: round ${round}`);
    const notebook = await startSandbox(join(folder, `labfeed-${round}`));
    const site = makeSite(join(folder, `labfeed-${round}`), {
      watch,
      notebook,
      existing: 'ingest',
      journal: filled,
    });
    const daemon = startDaemon(site);
    ours.push(await phase(daemon, ['run filed', WARM_UP], ['run filed', RUNS]));
    await daemon.stop();
    if (round === 1) writeFileSync(example, JSON.stringify(await readExample(notebook)));
    await notebook.stop();

    const other = await startSandbox(join(folder, `bare-${round}`));
    const client = start(BARE_CLIENT, other.url, other.key, example, String(RUNS), String(WARM_UP));
    bare.push(await phase(client, ['warm', 1], ['done', 1]));
    await client.stop();
    await other.stop();
  }
  return [
    result('delivery, wall time', 'wallMs', 3, ours, bare),
    result('delivery, processor time', 'cpuMs', 3, ours, bare),
  ];
}

function result(what, kind, target, ours, bare) {
  const of = (phases) => phases.map((phase) => phase[kind]);
  return {
    what,
    baseline: 'bare undici',
    ratios: ratios(of(ours), of(bare)),
    target,
    raw: `${median(of(ours)).toFixed(2)} ms a run, bare ${median(of(bare)).toFixed(2)} ms`,
  };
}

/** Between two lines that a process writes, for one run. */
async function phase(process, first, last) {
  const [from, to] = await Promise.all([process.wrote(...first), process.wrote(...last)]);
  // Lines of labfeed's log are counted as they came, perhaps some at once; the bare client writes just the two.
  const runs = last[1] > 1 ? to.lines - from.lines : RUNS - WARM_UP;
  return { wallMs: (to.atMs - from.atMs) / runs, cpuMs: (to.cpuMs - from.cpuMs) / runs };
}

async function fillJournal(folder, watch) {
  const site = makeSite(folder, { watch, existing: 'ingest' });
  const daemon = startDaemon(site);
  await daemon.wrote('run queued', RUNS);
  await daemon.stop();
  return site.journal;
}

/** What labfeed sent for one run, as the notebook has it: the bare client sends the same, so bodies are of one size. */
async function readExample({ url, key }) {
  const read = async (path) => {
    const answer = await fetch(`${url}/api/v2${path}`, {
      headers: { Authorization: key, Accept: 'application/json' },
    });
    if (!answer.ok) throw new Error(`the example run cannot be read: ${answer.status} for ${path}`);
    return answer.json();
  };
  const id = WARM_UP;
  const { title, date, body, tags } = await read(`/experiments/${id}`);
  const [{ comment }, ...others] = await read(`/experiments/${id}/comments`);
  if (others.length > 0) throw new Error('a run of the bench is to have one comment');
  return {
    created: { title: `labfeed ${'0'.repeat(16)}` },
    changes: { title, date, body, tags },
    comment: { comment },
  };
}
