import { basename } from 'node:path';
import type { ParseMapping } from '../config/vocabulary.js';
import type { FileError } from '../errors.js';
import type { IdentifiedFile } from '../model.js';
import { measure } from '../parse/parse.js';
import { contentOf } from '../watch/identify.js';

/** What looking at a file suggests about how it is to be read. */
export interface Measured {
  /** With the likelier answer to each question that the file leaves open. */
  readonly mapping: ParseMapping;
  /** Those questions, in words for who reads the mapping. */
  readonly doubts: readonly string[];
}

/** The one place that knows how a file is measured. What cannot be measured is a FileError. */
export async function measureSample(file: IdentifiedFile, signal?: AbortSignal): Promise<Measured> {
  const { path, size } = file;
  const source = { path, name: basename(path), size, content: contentOf(file) };
  const { likely, doubts, refusal } = await measure(source, signal);
  const questions =
    doubts.length > 0 || !refusal ? doubts : [`by itself it would be refused: ${said(refusal)}`];
  return { mapping: likely, doubts: questions };
}

const said = ({ message, where }: FileError): string =>
  where?.line === undefined ? message : `line ${where.line}: ${message}`;
