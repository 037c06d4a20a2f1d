import type { ExperimentRecord, UploadRecord } from '../deliver/context.js';
import type { NotebookReader } from '../evidence.js';
import type { FiledRun, Filing } from '../journal/reader.js';
import type { FindingKind, Repair } from './report.js';

/** What the notebook has of the raw files of a run. */
interface VerifiedFiles {
  /** Whether it has all of them, with the content that was read: eLabFTW lists the hash of what it stored. */
  readonly isAttached: boolean;
  readonly findings: readonly { readonly kind: FindingKind; readonly text: string }[];
  readonly uploads: NonNullable<Repair['uploads']>;
}

export const NO_FILES: VerifiedFiles = { isAttached: false, findings: [], uploads: [] };

const DELETED = 3;

type Attachment = Filing['attachments'][number];

/** eLabFTW only. */
export async function verifyFiles(
  run: FiledRun & { readonly experiment: number },
  { attachments: all, draft }: Pick<Filing, 'attachments' | 'draft'>,
  record: ExperimentRecord,
  notebook: Pick<NotebookReader, 'listUploads'>,
): Promise<VerifiedFiles> {
  const shown = embedded(record);
  // Without its plot, a run is complete.
  const attachments = all.filter(({ kind }) => kind === 'raw');
  // The journal was lost. The fingerprint of a run with one file is that of the file.
  if (attachments.length === 0 && !draft) return { ...NO_FILES, isAttached: has(shown ?? [], run.sha256) };
  if (attachments.length === 0) return NO_FILES;
  const expected = attachments.filter(({ upload }) => upload !== undefined);
  const isShown = expected.every(({ sha256 }) => has(shown ?? [], sha256));
  // The experiment does not show archived files.
  const listed = isShown ? (shown ?? []) : await notebook.listUploads(run.experiment);
  const missing = expected.filter(({ sha256 }) => !has(listed, sha256));
  const refused = attachments.filter(({ isRefused }) => isRefused);
  const waiting = attachments.filter(({ upload, isRefused }) => upload === undefined && !isRefused);
  return {
    isAttached: missing.length + refused.length + waiting.length === 0,
    findings: [
      ...missing.map(({ name, upload }) => ({
        kind: 'file missing' as const,
        text: `the raw file ${name} (id ${upload}) was deleted or replaced`,
      })),
      ...refused.map((file) => ({ kind: 'not attached' as const, text: reasonOf(file) })),
      ...waiting.map((file) => ({ kind: 'on its way' as const, text: reasonOf(file) })),
    ],
    // Of an archive that was never written, there is nothing to attach.
    uploads: [...missing, ...refused.filter(({ sha256 }) => sha256 !== '')].map(({ n, upload }) => ({
      n,
      upload: upload ?? null,
    })),
  };
}

const reasonOf = ({ name, reason }: Attachment): string =>
  reason?.split('\n', 1)[0] ?? `the raw file ${name} is not attached yet`;

const has = (listed: readonly UploadRecord[], sha256: string): boolean =>
  listed.some(({ hash, state }) => hash === sha256 && state !== DELETED);

/** eLabFTW shows files with the experiment, except for archived and deleted ones. */
function embedded({ uploads }: ExperimentRecord): UploadRecord[] | undefined {
  if (!Array.isArray(uploads)) return undefined;
  return uploads.filter(
    (one): one is UploadRecord => typeof one === 'object' && one !== null && 'id' in one && 'hash' in one,
  );
}
