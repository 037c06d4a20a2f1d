/** How long a test waits by default. Only what never happens should take so long, on a busy machine, too. */
export const WAIT_MS = process.env['LABFEED_SLOW'] ? 150_000 : 45_000;

/** Waits until a condition holds, and names it if that takes too long. */
export async function until(what: string, holds: () => boolean | Promise<boolean>, withinMs = WAIT_MS): Promise<void> {
  const deadline = Date.now() + withinMs;
  while (!(await holds())) {
    if (Date.now() > deadline) throw new Error(`waited in vain for: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** The processor time of this process so far. Unlike the time of day, it does not depend on what else the machine does. */
export function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}
