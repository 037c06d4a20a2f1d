import { nearest } from '../../text.js';
import { type Condition, type Path, parsePath, type Step } from './path.js';
import type { DeadEnd, Found, Lookup, Row, Tree } from './tree.js';

/** A line whose first cell says what it is. Its parents are the lines above it. */
export interface TypedLine extends Row {
  readonly type: string;
  /** Where it stands among all of them. */
  readonly index: number;
  /** As the standard of the file counts them, from `firstField`. */
  readonly fields: readonly string[];
  readonly dialect: Dialect;
}

/** How fields are counted and taken apart, which the first line of a message says. */
export interface Dialect {
  /** The number of the cell that holds the type: 0 in HL7, 1 in ASTM and everywhere else. */
  readonly firstField: 0 | 1;
  /** The first of repeated values; of that, the component and its part that are asked for. */
  part(field: string, places: readonly number[]): string;
}

/** Records that belong to each other by their order: what an R is a result of is the nearest O above it. */
export function createRecordTree(lines: readonly TypedLine[]): Tree {
  return {
    size: lines.reduce((sum, { fields }) => sum + fields.length, 0),
    rows(path) {
      const found = select(parsePath(path).steps[0], lines);
      return found.length === 0 ? undefined : found;
    },
    lookup: (path) => createLookup(parsePath(path), lines),
    list(path) {
      const parsed = parsePath(path);
      const [type, ...fields] = parsed.steps;
      const found = select(type, lines);
      if (found.length === 0 || !fields.every(isField)) return deadEnd(parsed, lines);
      return { items: found.map((line) => fieldOf(line, fields)) };
    },
    values: (row) => allFields(row as TypedLine),
    deadEnd: (path) => deadEnd(parsePath(path), lines),
  };
}

const isField = (step: Step | undefined): boolean => step?.place !== undefined && !step.isDeep;

/** `3/5` is of the row itself, `/O/3/1` or `O/3/1` of the nearest O at or above it. */
function createLookup({ steps, isAbsolute }: Path, lines: readonly TypedLine[]): Lookup {
  if (!isAbsolute && isField(steps[0])) {
    return (row) => (row ? fieldOf(row as TypedLine, steps) : undefined);
  }
  const found = select(steps[0], lines);
  const rest = steps.slice(1);
  return (row) => {
    const line = row ? lastUpTo((row as TypedLine).index, found) : found[0];
    return line && rest.every(isField) ? fieldOf(line, rest) : undefined;
  };
}

function select(step: Step | undefined, lines: readonly TypedLine[]): TypedLine[] {
  if (!step) return [];
  const { name, conditions } = step;
  return lines.filter(
    (line) => (line.type === name || name === '*') && conditions.every((condition) => holds(condition, line)),
  );
}

const holds = ({ key, value }: Condition, line: TypedLine): boolean => fieldOf(line, key).text === value;

/** Fields that a line leaves out at its end are empty. */
function fieldOf(line: TypedLine, steps: readonly Step[]): Found {
  const [field = line.dialect.firstField, ...places] = steps.map(({ place }) => place ?? 0);
  const cell = line.fields[field - line.dialect.firstField] ?? '';
  return { text: line.dialect.part(cell, places).trim(), unit: undefined, line: line.line };
}

function lastUpTo(index: number, found: readonly TypedLine[]): TypedLine | undefined {
  let low = 0;
  let high = found.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((found[middle]?.index ?? 0) <= index) low = middle + 1;
    else high = middle;
  }
  return found[low - 1];
}

function* allFields(line: TypedLine): Generator<readonly [string, Found]> {
  for (let n = 1; n < line.fields.length; n++) {
    const field = n + line.dialect.firstField;
    const text = line.dialect.part(line.fields[n] ?? '', []).trim();
    yield [`${line.type}/${field}`, { text, unit: undefined, line: line.line }];
  }
}

function deadEnd({ steps, written }: Path, lines: readonly TypedLine[]): DeadEnd {
  const [first, ...rest] = steps;
  const types = [...new Set(lines.map(({ type }) => type))];
  const sameType = lines.find(({ type }) => type === first?.name);
  if (sameType && !rest.every(isField)) {
    return {
      message: `\`${written}\` leads to no field`,
      hint: `fields and their components are numbers: \`/${sameType.type}/3/1\``,
      line: sameType.line,
    };
  }
  const near = nearest(first?.name ?? '', types);
  const isFound = sameType !== undefined;
  const types20 = types.slice(0, 20).join(', ');
  return {
    message: isFound
      ? `no ${sameType.type} record fits \`${written}\`, or none at or above the rows`
      : `there is no ${first?.name ?? ''} record`,
    hint:
      isFound || near === undefined ? `the records are: ${types20}` : `did you mean ${JSON.stringify(near)}?`,
    line: undefined,
  };
}
