export interface ExtraField {
  readonly value?: unknown;
  readonly blank_value_on_duplicate?: unknown;
}

type ExtraFields = Readonly<Record<string, ExtraField>>;

/** The extra fields of an experiment's metadata, where it has any. */
export function extraFields(metadata: string | null): ExtraFields {
  const decoded = decode(metadata);
  const fields = isObject(decoded) ? decoded['extra_fields'] : undefined;
  if (!isObject(fields)) return {};
  return Object.fromEntries(
    Object.entries(fields).filter((field): field is [string, ExtraField] => isObject(field[1])),
  );
}

/** The metadata of a copy: the same, without the values of the fields that say so. */
export function blankOnDuplicate(metadata: string | null): string | null {
  const decoded = decode(metadata);
  if (!isObject(decoded)) return metadata;
  const fields = Object.entries(extraFields(metadata)).map(([name, field]) => [
    name,
    field.blank_value_on_duplicate === true ? { ...field, value: '' } : field,
  ]);
  return JSON.stringify({
    ...decoded,
    ...(fields.length > 0 && { extra_fields: Object.fromEntries(fields) }),
  });
}

export function decode(metadata: string | null): unknown {
  return metadata === null ? undefined : JSON.parse(metadata);
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
