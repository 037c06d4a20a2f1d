import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import type { Preview } from './api.js';
import type { StatusDeps } from './deps.js';
import { Refusal } from './refusal.js';

/** No date is later. */
const LATEST_MS = 8.64e15;

const MOST_BYTES = 20 * 1024 * 1024;
/** Beyond what any mapping allows itself: somebody waits for the answer. */
const LONGEST_MS = 60_000;

const query = z.object({
  name: z.string().min(1).max(1000),
  instrument: z.string().max(200).optional(),
  /** Whatever is configured: how would it be read if nothing were? */
  learn: z.literal('1').optional(),
  /** When the file was last changed, as the browser knows it: some experiments have their date from it. */
  modified: z.coerce.number().pipe(z.int().nonnegative().max(LATEST_MS)).optional(),
});

/** Shows what would be filed for a file. Its bytes are in memory until the answer has left, and never elsewhere. */
export function servePreview(
  app: FastifyInstance,
  { preview, clock, stopping }: Pick<StatusDeps, 'preview' | 'clock'> & { readonly stopping: AbortSignal },
): void {
  let isBusy = false;
  app.addContentTypeParser('application/octet-stream', { parseAs: 'buffer' }, (_request, body, done) =>
    done(null, body),
  );

  app.post('/api/preview', {
    bodyLimit: MOST_BYTES,
    // Before the body is read: of those who wait, nothing is in memory.
    async onRequest(_request, reply) {
      if (isBusy) throw new Refusal(429, 'another file is being looked at; try again in a moment', 1);
      isBusy = true;
      reply.raw.once('close', () => {
        isBusy = false;
      });
    },
    async handler(request, reply) {
      const { success, data } = query.safeParse(request.query);
      if (!success) throw new Refusal(400, 'expected ?name=, the name of the file');
      if (!Buffer.isBuffer(request.body))
        throw new Refusal(415, "expected the file's bytes as application/octet-stream");
      const left = new AbortController();
      reply.raw.once('close', () => left.abort());
      const sample = {
        name: baseName(data.name),
        content: request.body,
        modifiedMs: data.modified ?? clock.now(),
        instrument: data.instrument || undefined,
        ...(data.learn !== undefined && { learn: true }),
      };
      return withinTime((signal) => preview(sample, signal), AbortSignal.any([left.signal, stopping]));
    },
  });
}

async function withinTime(
  act: (signal: AbortSignal) => Promise<Preview>,
  signal: AbortSignal,
): Promise<Preview> {
  const timeout = AbortSignal.timeout(LONGEST_MS);
  try {
    return await act(AbortSignal.any([signal, timeout]));
  } catch (error) {
    if (timeout.aborted) return { ok: false, reason: `reading it took longer than ${LONGEST_MS / 1000} s` };
    if (signal.aborted) throw new Refusal(503, 'given up: nobody waits for it any more');
    throw error;
  }
}

/** A name is no path, from whatever system the browser is. */
function baseName(name: string): string {
  const last = name.split(/[/\\]/).at(-1) ?? '';
  return ['', '.', '..'].includes(last) ? 'sample' : last.slice(0, 255);
}
