/** How the notebook answers: by the contract to the letter, or as eLabFTW does. */
export const DIALECTS = ['v2', 'elabftw'] as const;

export type Dialect = (typeof DIALECTS)[number];
