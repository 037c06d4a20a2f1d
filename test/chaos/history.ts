import type { Dialect } from '../../src/model.js';
import { type Random, seeded } from '../support/random.js';
import { actAsPeople, EVENTS, planFault, type Spell, standing } from './events.js';
import { copyEverything, HALTS } from './halts.js';
import { type Lab, openLab } from './lab.js';
import { lastRequests, settle, verify } from './verify.js';

/** LABFEED_SEED=n repeats the random choices, but not the timing of the machine. */
const SEED = Number(process.env['LABFEED_SEED'] ?? Date.now() % 1_000_000);

export const KILLS = Number(process.env['LABFEED_KILLS'] ?? 120);

/** LABFEED_EVENTS=poison,lostJournal: only these happen. */
const named = process.env['LABFEED_EVENTS']?.split(',');

/** Real daemons on two PCs are killed again and again while everything else goes wrong. In the end every run is filed once. */
export async function survive(dialect: Dialect): Promise<void> {
  const random = seeded(SEED);
  console.log(`chaos on ${dialect}: LABFEED_SEED=${SEED} LABFEED_KILLS=${KILLS}`);
  const lab = await openLab(dialect, random);
  try {
    await live(lab);
    await settle(lab);
    for (const pc of lab.pcs) await pc.stop();
    await verify(lab);
  } catch (error) {
    await report(lab);
    throw error;
  }
}

async function report({ dialect, control, pcs, story }: Lab): Promise<void> {
  const entries = control
    .experiments()
    .map(({ id, title, state, comments }) => `${id} ${title}, ${state}, ${comments.length} comments`);
  const runs = await Promise.all(pcs.map((pc) => pc.listing().catch((error: unknown) => [String(error)])));
  const title = `chaos on ${dialect} failed: LABFEED_SEED=${SEED} LABFEED_KILLS=${KILLS}`;
  console.log([title, ...story, ...entries, ...runs.flat(), ...lastRequests(control)].join('\n'));
}

/** Every event happens in a random order, as often as the kills allow, and each halt once. */
async function live(lab: Lab): Promise<void> {
  const { random, control, story } = lab;
  control.decide = standing(lab);
  let deck: string[] = [];
  const copyAt = Math.floor(KILLS / 8);
  const halts = shuffled(names(HALTS), random);
  const haltAt = new Map(halts.map((halt, n) => [Math.floor(((n + 1) * KILLS) / (halts.length + 1)), halt]));
  const lastHalt = Math.max(-1, ...haltAt.keys());
  let from: readonly number[] = [];
  let spells: (Spell & { readonly until: number })[] = [];
  const end = (before: number): void => {
    for (const spell of spells) if (spell.until < before) spell.end();
    spells = spells.filter(({ until }) => until >= before);
  };
  for (let kill = 0; kill < KILLS; kill++) {
    end(kill);
    const halt = haltAt.get(kill);
    if (halt || kill === copyAt) end(Number.POSITIVE_INFINITY);
    if (kill === copyAt) await copyEverything(lab);
    if (halt) {
      story.push(`${kill}:${halt}`);
      await HALTS[halt]?.(lab);
    }
    if (kill % 3 === 0) {
      if (deck.length === 0) deck = shuffled(names(EVENTS), random);
      const event = deck.pop() ?? '';
      story.push(`${kill}:${event}`);
      const spell = EVENTS[event]?.(lab);
      if (spell) spells.push({ ...spell, until: kill + random.below(5) });
    }
    for (let n = random.below(3); n > 0; n--) spells.push({ ...planFault(lab), until: Number.MAX_VALUE });
    actAsPeople(lab);
    // After a journal or a server was restored, the next version of an earlier file needs a person.
    if (kill === lastHalt) from = lab.pcs.map(({ titles }) => titles.length);
    if (kill > lastHalt)
      for (const [pc, first] of lab.pcs.map((one, n) => [one, from[n] ?? 0] as const))
        if (random.chance(0.5)) pc.revise(first, random);
    await killOne(lab);
  }
  for (const pc of lab.pcs) {
    pc.start();
    pc.drop();
  }
  // What still lasts ends while the last daemons run.
  await new Promise((resolve) => setTimeout(resolve, 3000));
  end(Number.POSITIVE_INFINITY);
}

/** Starts both PCs and kills one of them, some during start-up, most while they send. */
async function killOne({ pcs, random }: Lab): Promise<void> {
  for (const pc of pcs) {
    pc.start();
    for (let n = random.below(3); n > 0; n--) pc.drop();
  }
  await new Promise((resolve) => setTimeout(resolve, 300 + random.below(900)));
  await pcs[random.chance(0.6) ? 0 : 1].kill();
}

const names = (events: Readonly<Record<string, unknown>>): string[] =>
  Object.keys(events).filter((name) => named === undefined || named.includes(name));

function shuffled<T>(items: readonly T[], random: Random): T[] {
  const left = [...items];
  return items.flatMap(() => left.splice(random.below(left.length), 1));
}
