import { createHash } from 'node:crypto';

/** What a form brought: its file, told by name, size and hash. */
export class SentFile {
  readonly real_name: string;
  readonly filesize: number;
  readonly hash: string;
  readonly comment: string | null;

  constructor(name: string, bytes: Uint8Array, comment: string | null) {
    this.real_name = name;
    this.filesize = bytes.length;
    this.hash = createHash('sha256').update(bytes).digest('hex');
    this.comment = comment;
  }
}

/** Undefined where the form cannot be read, or has no file. */
export async function readForm(contentType: string, bytes: Buffer): Promise<SentFile | undefined> {
  const sent = new Response(new Uint8Array(bytes), { headers: { 'content-type': contentType } });
  const form = await sent.formData().catch(() => undefined);
  const file = form?.get('file');
  const comment = form?.get('comment');
  if (!file || typeof file === 'string') return undefined;
  const content = new Uint8Array(await file.arrayBuffer());
  return new SentFile(file.name, content, typeof comment === 'string' ? comment : null);
}
