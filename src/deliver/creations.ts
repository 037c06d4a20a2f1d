/**
 * Creations go on side by side; a look for a lost one goes alone (recovery rule 4): with another
 * creation unanswered, that one's experiment could be taken for the lost one.
 */
export interface Creations {
  share<T>(create: () => Promise<T>): Promise<T>;
  exclude<T>(look: () => Promise<T>): Promise<T>;
}

export function createCreations(): Creations {
  /** The last look that was asked for; whoever comes later waits for it, so that looks are not starved. */
  let look: Promise<unknown> = Promise.resolve();
  const sharing = new Set<Promise<unknown>>();
  const settled = async (work: Iterable<Promise<unknown>>): Promise<void> =>
    void (await Promise.allSettled(work));

  return {
    async share(create) {
      for (let seen: unknown; seen !== look; ) {
        seen = look;
        await settled([look]);
      }
      const work = create();
      sharing.add(work);
      return work.finally(() => sharing.delete(work));
    },
    exclude(work) {
      const before = look;
      const mine = settled([before])
        .then(() => settled(sharing))
        .then(work);
      look = mine;
      return mine;
    },
  };
}
