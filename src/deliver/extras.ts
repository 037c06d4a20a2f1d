import { NotebookError } from '../errors.js';
import type { ExtraField, Extras } from '../model.js';
import type { ExperimentExtras, ExperimentRecord, Filing } from './context.js';
import type { Named } from './directory.js';
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
  const earlier = await Promise.all(
    run.earlier.filter(({ written }) => written).map((reading) => resolveEarlier(reading.extras, filing)),
  );
  const changes = {
    ...changedFields(record, extras.fields, isFirst, earlier),
    ...changedAttributes(record, extras.attributes, isFirst, earlier),
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

function changedFields(
  record: ExperimentRecord,
  fields: ResolvedExtras['fields'],
  isFirst: boolean,
  earlier: readonly ResolvedExtras[],
): Pick<ExperimentExtras, 'metadata'> {
  if (Object.keys(fields).length === 0) return {};
  const metadata = readMetadata(record['metadata']);
  const present = asRecord(metadata['extra_fields']);
  const isOurs = (name: string): boolean => {
    const value = asRecord(present[name])['value'];
    return (
      (isFirst && earlier.length === 0) ||
      value === undefined ||
      value === '' ||
      earlier.some((reading) => reading.fields[name]?.value === value)
    );
  };
  const isSet = (name: string): boolean => asRecord(present[name])['value'] === fields[name]?.value;
  const names = Object.keys(fields).filter((name) => !isSet(name) && isOurs(name));
  if (names.length === 0) return {};
  const ours = toExtraFields(fields);
  const merged = Object.fromEntries(names.map((name) => [name, { ...asRecord(present[name]), ...ours[name] }]));
  return { metadata: JSON.stringify({ ...metadata, extra_fields: { ...present, ...merged } }) };
}

type Attributes = ResolvedExtras['attributes'];

function changedAttributes(
  record: ExperimentRecord,
  wanted: Attributes,
  isFirst: boolean,
  earlier: readonly ResolvedExtras[],
): Attributes {
  const names = Object.keys(wanted) as (keyof Attributes)[];
  const changed = names.filter((name) => {
    const now = Number(record[name] ?? 0);
    if (now === wanted[name]) return false;
    if (earlier.length === 0) return isFirst || now === 0;
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
