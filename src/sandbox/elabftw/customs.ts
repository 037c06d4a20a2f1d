/** In what eLabFTW servers differ from each other. Unless told otherwise: 5.6, and an ordinary user. */
export interface ElabftwOptions {
  /** Whether the keys' user is the team's administrator. */
  readonly administrator?: boolean;
  /** Whether that user writes markdown unless told otherwise. */
  readonly markdown?: boolean;
  /** Whether users may make tags that their team does not have yet. */
  readonly createsTags?: boolean;
  /** How many a list holds where nobody says: 15 before 5.4; 0 for all. */
  readonly listLimit?: number;
  /** What a key that is not known is refused with: 400 and plain text from 4.9 to 5.1. */
  readonly badKey?: 400 | 401;
}

export interface Customs extends Required<ElabftwOptions> {
  /** Whether a creation heeds its body. Versions before 5.3 made blank experiments. */
  readonly keepsTitle: boolean;
}

export const customsOf = (options: ElabftwOptions, keepsTitle: boolean): Customs => ({
  administrator: false,
  markdown: false,
  createsTags: true,
  listLimit: 0,
  badKey: 401,
  ...options,
  keepsTitle,
});
