import { readFileSync } from 'node:fs';

/*
 * Preloaded into a daemon (`NODE_OPTIONS=--import=…`), its worker threads included: shifts the wall clock by the
 * milliseconds in the file LABFEED_TEST_CLOCK, also while the process runs. Monotonic time and timers are left alone, as
 * when somebody sets the clock of a PC.
 */
const file = process.env.LABFEED_TEST_CLOCK;
const SystemDate = globalThis.Date;
const systemNow = SystemDate.now.bind(SystemDate);
let offsetMs = 0;

function read() {
  try {
    const offset = Number(readFileSync(file, 'utf8'));
    if (Number.isFinite(offset)) offsetMs = offset;
  } catch {
    // Not written yet: the clock is right.
  }
}

if (file !== undefined) {
  read();
  setInterval(read, 100).unref();
  const now = () => systemNow() + offsetMs;
  SystemDate.now = now;
  globalThis.Date = new Proxy(SystemDate, {
    construct: (target, args, newTarget) => Reflect.construct(target, args.length === 0 ? [now()] : args, newTarget),
    apply: () => new SystemDate(now()).toString(),
  });
}
