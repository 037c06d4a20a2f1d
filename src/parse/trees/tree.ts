import type { Node } from './node.js';

/** What a tree yields for a path: a value as it is written, and where. */
export interface Found {
  readonly text: string;
  /** The unit that stands with the value: `{ value, unit }`, or an attribute. */
  readonly unit: string | undefined;
  /** Of the file, from 1. */
  readonly line: number;
}

/** Something that can be a row. Only the tree that it came from knows what it is. */
export interface Row {
  readonly line: number;
}

/** Looks a path up from a row, or from the top where there is none; undefined where the file has nothing there. */
export type Lookup = (row?: Row) => Found | undefined;

/** Why a path leads nowhere: for people. */
export interface DeadEnd {
  readonly message: string;
  readonly hint: string;
  readonly line: number | undefined;
}

/** A file that is no table: JSON, XML, or records that belong to each other by their order. */
export interface Tree {
  /** The top, where the file is made of places within places. */
  readonly root?: Node;
  /** How many values the file holds, so that a table is not let grow out of proportion to it. */
  readonly size: number;
  /** Everything that fits; undefined where nothing does, empty where the file has an empty list there. */
  rows(path: string): readonly Row[] | undefined;
  lookup(path: string | number): Lookup;
  /** The list that a path leads to, for columns that stand beside each other, where it is clear which. */
  list(path: string | number): { readonly items: readonly Found[] } | DeadEnd;
  /** The plain values of a row by their names, which may come again. */
  values(row: Row): Iterable<readonly [name: string, found: Found]>;
  /** Asked of a row where the path does not begin at the top. */
  deadEnd(path: string | number, row?: Row): DeadEnd;
}
