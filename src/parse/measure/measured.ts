import type { ParseMapping } from '../../config/vocabulary.js';
import type { FileError } from '../../errors.js';
import type { FileRecord } from '../../model.js';
import type { Pace, Refuse } from '../lines.js';

/** How a file is to be read, in the words of a mapping, as far as the file itself tells. */
export interface Measured {
  readonly mapping: ParseMapping;
  /** The same with the likelier answer to each question that the file leaves open. */
  readonly likely: ParseMapping;
  /** Those questions, in words. */
  readonly doubts: readonly string[];
  /** Why the file cannot be read without a person's word. */
  readonly refusal: FileError | undefined;
}

/** What measuring needs beside what it measures. */
export interface Measuring {
  readonly name: string;
  readonly refuse: Refuse;
  readonly pace: Pace;
  /** Reads the file as a mapping says: what is measured is tried before it is believed. */
  read(mapping: ParseMapping): Promise<FileRecord>;
}
