import { createHash } from 'node:crypto';
import type { Draft } from '../../src/model.js';
import type { NewRun } from '../../src/outbox.js';

export const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

/** A run of the given content, with whatever else the test cares about. */
export function newRun(content: string, changes: Partial<NewRun> & { path?: string } = {}): NewRun {
  const { path = `/data/${content}.csv`, ...rest } = changes;
  return {
    instrument: 'balance',
    file: {
      path,
      location: path,
      size: content.length,
      mtimeNs: 1_700_000_000_000_000_123n,
      inode: 2n ** 63n + 5n,
      sha256: sha256(content),
    },
    copy: '',
    backlog: false,
    mapping: 'm1',
    ...rest,
  };
}

export const someDraft = (title: string, comments: readonly string[] = ['readings']): Draft => ({
  title,
  date: '2026-01-02',
  body: `<p>${title}</p>\n<p>labfeed balance ${title}.csv sha256:${sha256(title)}</p>`,
  tags: ['balance'],
  comments,
});
