import { type Comparable, type ComparableResult, Drop, toValue } from 'liquidjs';
import type { Value } from '../model.js';

/**
 * A value as templates see it: prints as it was written (`2.100`), compares and computes as what it is (2.1).
 * Not a Drop, since Liquid would then print its value.
 */
export class Written implements Comparable {
  readonly value: string | number | true;
  readonly text: string;
  readonly unit: string | null;

  constructor(value: string | number | true, { text, unit }: Value) {
    this.value = value;
    this.text = text;
    this.unit = unit ?? null;
  }

  toString(): string {
    return this.text;
  }

  valueOf(): string | number | true {
    return this.value;
  }

  toJSON(): string | number | true {
    return this.value;
  }

  get length(): number {
    return this.text.length;
  }

  get size(): number {
    return this.text.length;
  }

  /** What Liquid's `contains` asks for. */
  indexOf(part: unknown): number {
    return this.text.indexOf(String(part));
  }

  equals(other: unknown): ComparableResult {
    // `empty`, `blank` and `nil` know what equals them.
    if (other instanceof Drop && typeof other['equals'] === 'function') return other['equals'](this.text);
    const that = plain(other);
    return that === this.value || that === this.text;
  }

  gt(other: unknown): boolean {
    return this.value > plain(other);
  }

  geq(other: unknown): boolean {
    return this.value >= plain(other);
  }

  lt(other: unknown): boolean {
    return this.value < plain(other);
  }

  leq(other: unknown): boolean {
    return this.value <= plain(other);
  }
}

/** The value false. A Drop, since Liquid takes every other object for true. */
export class WrittenFalse extends Drop {
  readonly text: string;

  constructor(text: string) {
    super();
    this.text = text;
  }

  override valueOf(): false {
    return false;
  }

  override toString(): string {
    return this.text;
  }

  toJSON(): false {
    return false;
  }
}

/** Compared with anything but a number or a text, a value is neither more nor less. */
function plain(other: unknown): string | number | true {
  if (other instanceof Written) return other.value;
  return typeof other === 'string' || typeof other === 'number' || other === true ? other : Number.NaN;
}

export type Seen = Written | WrittenFalse | '' | null;

/** Nothing stays nothing, so that `if` and `default` see it. */
export function showValue(value: Value): Seen {
  const meaning = value.value;
  if (meaning === null || meaning === '') return meaning;
  return meaning === false ? new WrittenFalse(value.text) : new Written(meaning, value);
}

/** What tells two values apart that Liquid would tell apart as objects. */
export const identityOf = (seen: unknown): unknown =>
  seen instanceof Written ? `${typeof seen.value} ${seen.text} ${seen.unit}` : toValue(seen);

/** A value as a text, whatever it is. */
export function textIn(value: unknown): string {
  const inside: unknown = toValue(value);
  return inside == null ? '' : String(inside);
}
