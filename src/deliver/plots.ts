import { NotebookError } from '../errors.js';
import { escapeHtml } from '../text.js';
import type { PlannedUpload } from '../uploads.js';
import { checkComments } from './comments.js';
import type { ExperimentRecord, Filing, UploadRecord } from './context.js';
import { confirmForbidden, isEntryStatus, sendEdit } from './failures.js';
import { gracePeriod } from './reconcile.js';
import { checkUnedited } from './revise.js';

/** The draft's body with the plot, and the markup that shows it. */
interface ShownPlot {
  readonly body?: string;
  /** What the body was before. */
  readonly was?: string;
  readonly image?: string;
}

/**
 * Shows an attached plot in the draft's body. Nothing of that if a person changed the experiment, or locked or deleted
 * it: then the plot is attached only. One request tells all of it.
 */
export async function showPlot(file: PlannedUpload, upload: number, filing: Filing): Promise<ShownPlot> {
  try {
    return await show(file, upload, filing);
  } catch (error) {
    if (error instanceof NotebookError && !error.retryable) return {};
    throw error;
  }
}

async function show(file: PlannedUpload, upload: number, filing: Filing): Promise<ShownPlot> {
  const { notebook, experiment, server, run, unknown, clock } = filing;
  const { draft, stored, earlier } = run;
  const record = await confirmForbidden(notebook, () => notebook.readExperiment(experiment));
  const image = imageOf(file, await findRecord(record, upload, filing));
  if (image === undefined) return {};
  const plain = file.image === undefined ? draft.body : draft.body.replace(file.image, '');
  const at = Math.min(file.at ?? plain.length, plain.length);
  const body = plain.slice(0, at) + image + plain.slice(at);
  if (body === draft.body) return { image };
  const written = {
    ...filing,
    run: { ...run, draft: { ...draft, body }, earlier: [...earlier, { ...draft, stored, written: true }] },
  };
  checkUnedited(record, written, (await server.facts()).dialect);
  await checkComments(written, record);
  unknown.window.noteChecked(run.id, clock.monotonic());
  return { body, was: draft.body, image };
}

/** eLabFTW shows files with the experiment. */
async function findRecord(
  { uploads }: ExperimentRecord,
  upload: number,
  { notebook, experiment }: Filing,
): Promise<UploadRecord | undefined> {
  const shown = Array.isArray(uploads) ? (uploads as readonly (UploadRecord | null)[]) : [];
  const isIt = (one: UploadRecord | null): boolean => one?.id === upload;
  return shown.find(isIt) ?? (await notebook.listUploads(experiment)).find(isIt) ?? undefined;
}

/** The width of the drawing: the picture has more pixels, for paper. */
const WIDTH = 800;

function imageOf({ name, description = '' }: PlannedUpload, record: UploadRecord | undefined): string | undefined {
  const { long_name: longName, storage } = record ?? {};
  if (typeof longName !== 'string' || longName === '') return undefined;
  // eLabFTW looks for the name as it is before it deletes a file.
  const file = encodeURIComponent(longName).replaceAll('%2F', '/');
  const source = `app/download.php?name=${encodeURIComponent(name)}&f=${file}&storage=${Number(storage ?? 1)}`;
  return `<p><img src="${escapeHtml(source)}" alt="${escapeHtml(description)}" width="${WIDTH}"></p>\n`;
}

const DELETED = 3;

/**
 * Deletes the plot of an earlier reading, which the body no longer shows, or a raw file that the run no longer has. Only
 * if it still is what was uploaded: after the notebook was restored, another file may have its id.
 */
export async function removeSurplus(
  { sha256, upload }: PlannedUpload,
  files: readonly PlannedUpload[],
  filing: Filing,
): Promise<void> {
  const { notebook, experiment, run } = filing;
  const pending = 'an upload with an unknown outcome may still take effect';
  const checkGrace = upload === undefined ? await gracePeriod(run, pending, filing) : undefined;
  const listed = await notebook.listUploads(experiment);
  const isOther = (id: number): boolean => files.some((file) => file.upload === id);
  const found = listed.find(({ id, hash }) => hash === sha256 && (upload === undefined ? !isOther(id) : id === upload));
  if (!found) return checkGrace?.();
  if (found.state === DELETED) return;
  await sendEdit(filing, () => notebook.deleteUpload(experiment, found.id)).catch((error: unknown) => {
    if (!isEntryStatus(error, 404)) throw error;
  });
}
