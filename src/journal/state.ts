/**
 * A run's state in the words that people see, as SQL over the row of that name. It is part of a released step of the
 * journal's tables: other words need a step of their own.
 */
export const stateOf = (row: 'runs' | 'old' | 'new'): string =>
  `CASE WHEN ${row}.resting IS NOT NULL THEN ${row}.resting WHEN ${row}.step = 'done' THEN 'done'
        WHEN ${row}.step = 'pending' THEN 'queued' ELSE 'sending' END`;
