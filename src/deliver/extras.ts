import { NotebookError } from '../errors.js';
import type { ExtraField, Extras } from '../model.js';
import type { OpenRun } from '../outbox.js';
import type { ExperimentExtras, ExperimentRecord, Filing, Named } from './context.js';
import { sendEdit } from './failures.js';

/** eLabFTW's numbers. */
const PERMISSIONS: Readonly<Record<string, number>> = {
  public: 50,
  organization: 40,
  team: 30,
  user: 20,
  useronly: 10,
};

/** Extras with the ids of this server. */
export interface ResolvedExtras {
  readonly fields: Readonly<Record<string, ExtraField>>;
  readonly template?: number;
  readonly link?: number;
  /** What a creation or a PATCH sets. */
  readonly attributes: Omit<ExperimentExtras, 'metadata'>;
}

export async function resolveExtras(
  extras: Extras,
  { notebook, unknown, clock }: Pick<Filing, 'notebook' | 'unknown' | 'clock'>,
): Promise<ResolvedExtras> {
  const resolve = async (kind: Named): Promise<number | undefined> => {
    const wanted = extras[kind];
    return wanted === undefined
      ? undefined
      : unknown.window.directory.idOf(kind, wanted, notebook.listNamed, clock.monotonic());
  };
  const [category, status, template, link] = [
    await resolve('category'),
    await resolve('status'),
    await resolve('template'),
    await resolve('link'),
  ];
  const base = (permission: string | undefined) => (permission === undefined ? undefined : PERMISSIONS[permission]);
  const [canread_base, canwrite_base] = [base(extras.canread), base(extras.canwrite)];
  return {
    fields: extras.fields ?? {},
    ...(template !== undefined && { template }),
    ...(link !== undefined && { link }),
    attributes: definedOf({ category, status, canread_base, canwrite_base }),
  };
}

const definedOf = <T extends object>(values: T): { [K in keyof T]?: Exclude<T[K], undefined> } =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as never;

/** The metadata of a new experiment. */
export const metadataOf = (fields: ResolvedExtras['fields']): object | undefined =>
  Object.keys(fields).length === 0 ? undefined : { extra_fields: toExtraFields(fields) };

const toExtraFields = (fields: ResolvedExtras['fields']): Record<string, object> =>
  Object.fromEntries(
    Object.entries(fields).map(([name, { value, type, unit }]) => [
      name,
      { type, value, ...(unit === undefined ? {} : { unit, units: [unit] }) },
    ]),
  );

/**
 * Gives the experiment its extras, as far as it does not have them. `isFirst`: nothing of the run was written to it
 * before. Otherwise what a person changed stays: only values that an earlier reading wrote are replaced. Idempotent.
 */
export async function setExtras(
  record: ExperimentRecord,
  extras: ResolvedExtras,
  isFirst: boolean,
  filing: Filing,
): Promise<void> {
  const { experiment, notebook, run } = filing;
  // An interrupted update may have written the fields of a version that was never complete.
  const earlier = await Promise.all(run.earlier.map((reading) => resolveEarlier(reading.extras, filing)));
  const isBlank = isFirst && !run.earlier.some(({ written }) => written);
  const changes = {
    ...changedFields(record, extras.fields, isBlank || run.adopted, earlier),
    ...changedAttributes(record, extras.attributes, isBlank, earlier),
  };
  if (Object.keys(changes).length > 0) await sendEdit(filing, () => notebook.patchExtras(experiment, changes));
  const { link } = extras;
  if (link !== undefined) await sendEdit(filing, () => notebook.linkItem(experiment, link));
}

/** A name that the server no longer has was not changed by a person. */
const resolveEarlier = (extras: Extras | undefined, filing: Filing): Promise<ResolvedExtras> =>
  resolveExtras(extras ?? {}, filing).catch((error: unknown) => {
    if (!(error instanceof NotebookError) || error.retryable) throw error;
    return { fields: extras?.fields ?? {}, attributes: {} };
  });

/** A field that only an earlier reading has is emptied: it may belong to a template, so it is not removed. */
function changedFields(
  record: ExperimentRecord,
  fields: ResolvedExtras['fields'],
  isOverwritten: boolean,
  earlier: readonly ResolvedExtras[],
): Pick<ExperimentExtras, 'metadata'> {
  const known = namesOf([fields, ...earlier.map((reading) => reading.fields)]);
  if (known.length === 0) return {};
  const metadata = readMetadata(record['metadata']);
  const present = asRecord(metadata['extra_fields']);
  const isOurs = (name: string): boolean => {
    const value = fieldIn(present, name);
    return isOverwritten || value === '' || earlier.some((reading) => fieldIn(reading.fields, name) === value);
  };
  const names = known.filter((name) => fieldIn(present, name) !== fieldIn(fields, name) && isOurs(name));
  if (names.length === 0) return {};
  const ours = toExtraFields(fields);
  const merged = Object.fromEntries(
    names.map((name) => [name, { ...asRecord(present[name]), ...(ours[name] ?? { value: '' }) }]),
  );
  return { metadata: JSON.stringify({ ...metadata, extra_fields: { ...present, ...merged } }) };
}

const namesOf = (readings: readonly object[]): string[] => [...new Set(readings.flatMap(Object.keys))];

/** Empty if there is no such field. */
const fieldIn = (fields: Readonly<Record<string, unknown>>, name: string): unknown =>
  asRecord(fields[name])['value'] ?? '';

/** A field with a value that labfeed did not write. */
export interface EditedField {
  readonly name: string;
  readonly value: string;
  /** What labfeed wrote. */
  readonly wrote: string;
}

/** The fields that a person changed and the next version of the file changes, too. Others stay as they are. */
export function editedFields(record: ExperimentRecord, { draft, earlier }: OpenRun): EditedField[] {
  const readings = [draft, ...earlier].map(({ extras }) => extras?.fields ?? {});
  const written = earlier.findLast((reading) => reading.written)?.extras?.fields ?? {};
  const names = namesOf(readings).filter(
    (name) => fieldIn(draft.extras?.fields ?? {}, name) !== fieldIn(written, name),
  );
  if (names.length === 0) return [];
  const present = asRecord(readMetadata(record['metadata'])['extra_fields']);
  return names
    .filter((name) => !readings.some((fields) => fieldIn(fields, name) === fieldIn(present, name)))
    .map((name) => ({ name, value: String(fieldIn(present, name)), wrote: String(fieldIn(written, name)) }));
}

type Attributes = ResolvedExtras['attributes'];

function changedAttributes(
  record: ExperimentRecord,
  wanted: Attributes,
  isBlank: boolean,
  earlier: readonly ResolvedExtras[],
): Attributes {
  const names = Object.keys(wanted) as (keyof Attributes)[];
  const changed = names.filter((name) => {
    const now = Number(record[name] ?? 0);
    if (now === wanted[name]) return false;
    if (isBlank) return true;
    if (earlier.length === 0) return now === 0;
    return earlier.some(({ attributes }) => (attributes[name] ?? 0) === now);
  });
  return Object.fromEntries(changed.map((name) => [name, wanted[name]]));
}

/** Metadata that is not JSON is a person's: it is not replaced. */
function readMetadata(metadata: unknown): Readonly<Record<string, unknown>> {
  if (metadata === null || metadata === undefined || metadata === '') return {};
  try {
    return asRecord(typeof metadata === 'string' ? JSON.parse(metadata) : metadata);
  } catch (cause) {
    throw new NotebookError('conflict', 'the metadata of the experiment is not JSON, so labfeed adds no fields to it', {
      hint: 'correct the metadata in the notebook, then retry',
      cause,
    });
  }
}

const asRecord = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
