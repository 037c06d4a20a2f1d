/** A process of `many.mjs`: runs the seeds that it is sent, and reports each. */
const { createSimulation, createFleetSimulation } = await import(process.argv[2]);
const { simulate } = (createFleetSimulation ?? createSimulation)();
const redo = process.env['LABFEED_REDO'];
/** By their names in LABFEED_REDO. */
const KINDS = [{ withRemaps: false }, { withRemaps: true }, { withVersions: true }];
const kindsOf = (seed) =>
  createFleetSimulation ? [0] : redo === 'odd' ? [seed % 2] : redo === undefined ? [0, 1, 2] : [Number(redo)];

// Only the parent decides when to stop, after a whole part.
for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, () => undefined);

process.on('message', async ({ from, to }) => {
  for (let seed = from; seed <= to; seed++) {
    const failures = [];
    const before = process.cpuUsage();
    const kinds = kindsOf(seed);
    for (const kind of kinds) {
      await simulate(seed, undefined, KINDS[kind]).catch((error) => {
        failures.push(`LABFEED_SEED=${seed} LABFEED_REDO=${kind}: ${error.message}`);
      });
    }
    // Let the event loop run between two histories.
    await new Promise(setImmediate);
    const { user, system } = process.cpuUsage(before);
    process.send({ seed, histories: kinds.length, failures, cpuMs: (user + system) / 1000 });
  }
});
