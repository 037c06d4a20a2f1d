import { oneLine } from '../text.js';
import { amountOf } from './wording.js';

/** What the draft says of a file beside its content. */
export interface SourceFile {
  readonly name: string;
  /** The name without its extension. */
  readonly stem: string;
  readonly path: string;
  readonly size: number;
  readonly modifiedMs: number;
  readonly sha256: string;
  /** Of a run of several files: all of them, by their names in it. */
  readonly parts?: readonly SourcePart[] | undefined;
}

export type SourcePart = Omit<SourceFile, 'stem' | 'path'>;

/** For people who look for the raw file: what they see of it in a listing. */
export const describeSource = ({ name, size, modifiedMs, parts }: SourcePart): string =>
  [
    oneLine(name),
    ...(parts ? [amountOf(parts.length, 'file')] : []),
    sizeOf(size),
    `modified ${localTime(modifiedMs).replace(/T(.{8})/, ' $1 ')}`,
  ].join(', ');

/** `1,234 bytes`, `12.3 MB (12,345,678 bytes)`. */
function sizeOf(bytes: number): string {
  const exact = amountOf(bytes, 'byte');
  if (bytes < 100_000) return exact;
  const [unit, name] = bytes < 1e6 ? [1e3, 'kB'] : bytes < 1e9 ? [1e6, 'MB'] : [1e9, 'GB'];
  return `${(bytes / unit).toFixed(1)} ${name} (${exact})`;
}

/** In the machine's time zone, with its offset: `2026-03-04T10:11:12+01:00`. */
export function localTime(ms: number): string {
  const offset = -Math.round(new Date(ms).getTimezoneOffset());
  const there = new Date(ms + offset * 60_000).toISOString().slice(0, 19);
  const [hours, minutes] = [Math.floor(Math.abs(offset) / 60), Math.abs(offset) % 60];
  return `${there}${offset < 0 ? '-' : '+'}${two(hours)}:${two(minutes)}`;
}

const two = (n: number): string => String(n).padStart(2, '0');
