/** A process of `many.mjs`: runs the seeds that it is sent, and reports each. */
const { createSimulation } = await import(process.argv[2]);
const { simulate } = createSimulation();
const redo = process.env['LABFEED_REDO'];
const kindsOf = (seed) => (redo === 'odd' ? [seed % 2 === 1] : redo === undefined ? [false, true] : [redo === '1']);

// Only the parent decides when to stop, after a whole part.
for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, () => undefined);

process.on('message', async ({ from, to }) => {
  for (let seed = from; seed <= to; seed++) {
    const failures = [];
    const before = process.cpuUsage();
    const kinds = kindsOf(seed);
    for (const withRemaps of kinds) {
      await simulate(seed, undefined, { withRemaps }).catch((error) => {
        failures.push(`LABFEED_SEED=${seed} LABFEED_REDO=${Number(withRemaps)}: ${error.message}`);
      });
    }
    // Let the event loop run between two histories.
    await new Promise(setImmediate);
    const { user, system } = process.cpuUsage(before);
    process.send({ seed, histories: kinds.length, failures, cpuMs: (user + system) / 1000 });
  }
});
