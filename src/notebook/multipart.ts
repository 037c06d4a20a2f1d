import { randomBytes } from 'node:crypto';

/** A file to attach. It is sent as it is read, and never whole in memory. */
export interface FileToSend {
  /** As the notebook shows it. */
  readonly name: string;
  readonly size: number;
  /** The upload of which it is a new version. */
  readonly replaces?: number | undefined;
  /** Called once, when it is the request's turn. If it throws, the request is cut off. */
  open(): AsyncIterable<Uint8Array>;
}

/** The body of a form with one file. */
export interface Form {
  readonly type: string;
  readonly length: number;
  open(): AsyncIterable<Uint8Array>;
}

/** Written here because undici's FormData takes files that are in memory or have a path, not streams. */
export function formOf({ name, size, replaces, open }: FileToSend): Form {
  const boundary = `labfeed-${randomBytes(16).toString('hex')}`;
  const head = Buffer.from(
    `${replaces === undefined ? '' : actionField(boundary)}--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="${uploadName(name)}"\r\nContent-Type: application/octet-stream\r\n\r\n`,
  );
  const tail = Buffer.from(`\r\n--${boundary}--\r\n`);
  return {
    type: `multipart/form-data; boundary=${boundary}`,
    length: head.length + size + tail.length,
    async *open() {
      yield head;
      yield* open();
      yield tail;
    },
  };
}

const actionField = (boundary: string): string =>
  `--${boundary}\r\nContent-Disposition: form-data; name="action"\r\n\r\nreplace\r\n`;

const MAX_CHARACTERS = 200;

/**
 * Without what a header cannot carry or PHP cuts off: quotes, line breaks, folders. Browsers encode some of them, and
 * PHP does not decode them. The end of a long name stays, because of the extension.
 */
export function uploadName(name: string): string {
  const clean = name
    .replace(/"/g, "'")
    .replace(/[/\\]/g, '_')
    .replace(/[\p{Cc}\p{Cf}\u2028\u2029\p{Cs}]+/gu, ' ')
    .trim();
  return [...clean].slice(-MAX_CHARACTERS).join('') || 'file';
}
