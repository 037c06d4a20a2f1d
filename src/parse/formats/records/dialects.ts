import type { Dialect } from '../../trees/record-tree.js';

/** The signs that the header of a message declares. */
export interface Delimiters {
  readonly standard: 'astm' | 'hl7';
  readonly field: string;
  readonly repeat: string;
  readonly component: string;
  readonly release: string;
  /** Of a component; HL7 only. */
  readonly part: string | undefined;
}

const ASTM = /^H([^\w\s])([^\w\s])([^\w\s])([^\w\s])(?:\1|$)/;
const HL7 = /^(?:MSH|FHS|BHS)([^\w\s])([^\w\s])([^\w\s])([^\w\s])?([^\w\s])?/;

/** The delimiters that a line declares, where it is the header of a message. */
export function delimitersIn(text: string): Delimiters | undefined {
  const [, field = '', repeat = '', component = '', release = ''] = ASTM.exec(text) ?? [];
  if (areDistinct([field, repeat, component, release])) {
    return { standard: 'astm', field, repeat, component, release, part: undefined };
  }
  const [, separator = '', ...signs] = HL7.exec(text) ?? [];
  const [first = '', second = '', third = '\\', fourth = '&'] = signs;
  if (!areDistinct([separator, first, second])) return undefined;
  return {
    standard: 'hl7',
    field: separator,
    component: first,
    repeat: second,
    release: third,
    part: fourth,
  };
}

const areDistinct = (signs: readonly string[]): boolean =>
  signs.every((sign, n) => sign !== '' && signs.indexOf(sign) === n);

/** Without a header, a field is all that there is. */
export const PLAIN_DIALECT: Dialect = {
  firstField: 1,
  part: (field, places) => (places.every((place) => place === 1) ? field : ''),
};

export function dialectOf(delimiters: Delimiters): Dialect {
  const { standard, repeat, component, part } = delimiters;
  const declared = declaration(delimiters);
  const plain = createPlain(delimiters);
  return {
    firstField: standard === 'hl7' ? 0 : 1,
    part(field, [wanted, wantedPart]) {
      if (field === declared || field === delimiters.field) return field;
      // Two quotes mean: there is no value any more.
      if (field === '""' && standard === 'hl7') return '';
      const [first = ''] = field.split(repeat);
      if (wanted === undefined) return plain(first);
      const piece = first.split(component)[wanted - 1] ?? '';
      if (wantedPart === undefined) return plain(piece);
      const pieces = part === undefined ? [piece] : piece.split(part);
      return plain(pieces[wantedPart - 1] ?? '');
    },
  };
}

/** What the header itself holds: signs, and nothing that they would take apart. */
const declaration = ({ standard, repeat, component, release, part = '' }: Delimiters): string =>
  standard === 'hl7' ? component + repeat + release + part : repeat + component + release;

/** `\F\` in HL7, `&F&` in ASTM: a sign that is meant as a mere character. */
function createPlain(delimiters: Delimiters): (text: string) => string {
  const { field, component, repeat, release, part = '' } = delimiters;
  const signs: Readonly<Record<string, string>> = {
    ...{ F: field, S: component, R: repeat, T: part, E: release },
    ...{ H: '', N: '', '.br': '\n' },
  };
  const sign = release.replace(/\W/g, '\\$&');
  const pattern = new RegExp(`${sign}(F|S|R|T|E|H|N|\\.br|X(?:[0-9A-Fa-f]{2})+)${sign}`, 'g');
  return (text) =>
    release !== '' && text.includes(release)
      ? text.replace(
          pattern,
          (_, code: string) => signs[code] ?? Buffer.from(code.slice(1), 'hex').toString('latin1'),
        )
      : text;
}
