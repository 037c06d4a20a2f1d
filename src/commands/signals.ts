/**
 * The first SIGTERM or SIGINT asks the command to end in order, through the signal; a second one ends the process
 * at once. The journal is made for that.
 */
export function onStopRequest(): AbortSignal {
  const stop = new AbortController();
  for (const [name, number] of [
    ['SIGTERM', 15],
    ['SIGINT', 2],
  ] as const) {
    process.on(name, () => {
      if (stop.signal.aborted) process.exit(128 + number);
      stop.abort();
    });
  }
  return stop.signal;
}

/** Resolves when a stop was asked for. */
export const stopRequested = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
