import type { Expectation, Scalar } from '../config/expectations.js';
import type { Draft, FileRecord, Value } from '../model.js';
import { spokenCount } from '../text.js';
import { hasText, isText, isValue } from './agree.js';
import { quote, quoteAll, quoteDifference, quoteInstead, showDifference } from './differences.js';
import { type Found, findCell, findColumn, findFact, findTable, type Lack } from './find.js';

/** What the mapping made of a file. */
export interface Made {
  readonly record: FileRecord;
  readonly draft: Draft;
  readonly dateFrom: 'template' | 'fact' | 'modified';
}

/** An expectation that was not met, in words for a scientist. */
export interface Mismatch {
  readonly key: string;
  readonly message: string;
  readonly hint?: string;
}

/** Holds what was made of a file against what was expected of it. */
export const compare = (expectations: readonly Expectation[], made: Made): Mismatch[] =>
  expectations.flatMap((expectation) => {
    const lack = differenceIn(expectation, made);
    return lack ? [{ key: expectation.key, ...lack }] : [];
  });

function differenceIn(expectation: Expectation, { record, draft, dateFrom }: Made): Lack | undefined {
  switch (expectation.of) {
    case 'title':
      return text(expectation.wanted, draft.title);
    case 'date':
      return date(expectation.wanted, draft.date, dateFrom);
    case 'body':
      return part(expectation.wanted, draft.body);
    case 'tags':
      return tags(expectation.wanted, draft.tags);
    case 'comments':
      return comments(expectation.wanted, draft.comments);
    case 'quarantined':
      return { message: `expected to be refused, but it is read, as ${quote(draft.title)}` };
    case 'fact':
      return inside(findFact(record, expectation.name), (fact) => value(expectation.wanted, fact));
    case 'factUnit':
      return inside(findFact(record, expectation.name), (fact) => unit(expectation.wanted, fact.unit));
    case 'rows':
      return rows(expectation.wanted, record, expectation.table);
    case 'columns':
      return inside(findTable(record, expectation.table), ({ columns }) =>
        columnNames(
          expectation.wanted,
          columns.map(({ name }) => name),
        ),
      );
    case 'columnUnit':
      return inside(findTable(record, expectation.table), (table) =>
        inside(findColumn(table, expectation.column), ({ column }) => unit(expectation.wanted, column.unit)),
      );
    case 'cell':
      return inside(findTable(record, expectation.table), (table) =>
        inside(findCell(table, expectation.row, expectation.column), (cell) =>
          value(expectation.wanted, cell),
        ),
      );
  }
}

const inside = <T>(found: Found<T>, differs: (it: T) => Lack | undefined): Lack | undefined =>
  'lack' in found ? found.lack : differs(found.it);

const DIFFERENT = 'not as expected';

const different = (expected: string, came: string, more: Record<string, string> = {}): Lack => ({
  message: DIFFERENT + showDifference(expected, came, more),
});

function text(wanted: string, came: string): Lack | undefined {
  if (isText(wanted, came)) return undefined;
  const shown = quoteDifference(wanted, came);
  return different(shown.expected, shown.came);
}

function date(wanted: string, came: string, from: Made['dateFrom']): Lack | undefined {
  const lack = text(wanted, came);
  if (!lack || from !== 'modified') return lack;
  const hint = 'it is the day on which the sample was modified: neither a template nor a fact says the date';
  return { ...lack, hint };
}

const part = (wanted: string, came: string): Lack | undefined =>
  hasText(wanted, came) ? undefined : different(quote(wanted.trim()), quoteInstead(wanted.trim(), came));

/** The notebook keeps tags in an order of its own. */
function tags(wanted: readonly string[], came: readonly string[]): Lack | undefined {
  const missing = wanted.filter((one) => !came.some((tag) => isText(one, tag)));
  const extra = came.filter((tag) => !wanted.some((one) => isText(one, tag)));
  if (missing.length + extra.length === 0) return undefined;
  return different(quoteAll(wanted), quoteAll(came), {
    ...(missing.length > 0 && { missing: quoteAll(missing) }),
    ...(extra.length > 0 && { extra: quoteAll(extra) }),
  });
}

function comments(wanted: number | readonly string[], came: readonly string[]): Lack | undefined {
  const count = typeof wanted === 'number' ? wanted : wanted.length;
  if (count !== came.length)
    return different(spokenCount(count, 'comment'), spokenCount(came.length, 'comment'));
  if (typeof wanted === 'number') return undefined;
  for (const [index, one] of wanted.entries()) {
    const lack = part(one, came[index] ?? '');
    if (lack) return { message: `comment ${index + 1} is ${lack.message}` };
  }
  return undefined;
}

function rows(wanted: number, record: FileRecord, name: string | undefined): Lack | undefined {
  const found = findTable(record, name);
  // A file with facts alone has no readings; a table that somebody names must be there.
  if ('lack' in found && name !== undefined) return found.lack;
  const came = 'lack' in found ? 0 : found.it.count;
  return came === wanted ? undefined : different(spokenCount(wanted, 'row'), spokenCount(came, 'row'));
}

function columnNames(wanted: readonly string[], came: readonly string[]): Lack | undefined {
  if (wanted.length === came.length && wanted.every((name, n) => name === came[n])) return undefined;
  const missing = wanted.filter((name) => !came.includes(name));
  const extra = came.filter((name) => !wanted.includes(name));
  const isOrder = missing.length + extra.length === 0;
  return {
    ...different(quoteAll(wanted), quoteAll(came), {
      ...(missing.length > 0 && { missing: quoteAll(missing) }),
      ...(extra.length > 0 && { extra: quoteAll(extra) }),
    }),
    ...(isOrder && { hint: 'they are the same names in another order, or a different number of times' }),
  };
}

const unit = (wanted: string | null, came: string | undefined): Lack | undefined =>
  wanted === (came ?? null) ? undefined : different(asUnit(wanted), asUnit(came ?? null));

const asUnit = (name: string | null): string => (name === null ? 'no unit' : quote(name));

function value(wanted: Scalar, came: Value): Lack | undefined {
  if (isValue(wanted, came)) return undefined;
  if (typeof wanted === 'string' && typeof came.value === 'string') {
    const shown = quoteDifference(wanted, came.value);
    return different(shown.expected, `${shown.came}${asWritten(came)}`);
  }
  const lack = different(asValue(wanted), `${asValue(came.value)}${asWritten(came)}`);
  const isTextOfIt = typeof wanted === 'number' && came.text.trim() === String(wanted);
  return isTextOfIt ? { ...lack, hint: `it is a text there: write it in quotes, ${quote(came.text)}` } : lack;
}

const asValue = (it: Scalar): string =>
  typeof it === 'string' ? quote(it) : it === null ? 'no value' : String(it);

const asWritten = ({ value: meant, text: written }: Value): string =>
  String(meant ?? '') === written ? '' : `, written ${quote(written)}`;
