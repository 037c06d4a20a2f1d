import { parentPort } from 'node:worker_threads';
import { type Growth, type GrowthTask, readGrowth } from '../mapping/growth.js';
import { type FoundHeader, findHeader, type HeaderTask } from '../mapping/header.js';
import { createMapping, type Mapping, type MappingOptions } from '../mapping/mapping.js';
import { type ReadOptions, type ReadRun, readRun, type SentError, sendError } from '../mapping/reading.js';
import type { Failure, TestTask } from '../mapping/tests.js';
import type { FoundFile, IdentifiedFile } from '../model.js';
import type { Preview } from '../status/api.js';
import type { PreviewTask } from './preview.js';

/** The thread in which `readers.ts` has files read. It works on one message after the other, and answers in order. */

export type Message =
  /** Not answered. */
  | { readonly kind: 'open'; readonly reader: number; readonly mapping: MappingOptions; readonly journal: string }
  | {
      readonly kind: 'read';
      readonly reader: number;
      readonly file: FoundFile | IdentifiedFile;
      readonly nowMs: number;
      readonly options: ReadOptions | undefined;
    }
  | { readonly kind: 'header'; readonly reader: number; readonly task: HeaderTask }
  | { readonly kind: 'growth'; readonly reader: number; readonly task: GrowthTask }
  | { readonly kind: 'preview'; readonly task: PreviewTask }
  | { readonly kind: 'test'; readonly task: TestTask };

export type Answer =
  | ReadRun
  | { readonly found: FoundHeader }
  | { readonly growth: Growth }
  | { readonly preview: Preview }
  | { readonly failures: readonly Failure[] }
  | { readonly error: SentError };

const mappings = new Map<number, Mapping>();
/** A caller that no longer waits for the answer ends the thread. */
const NEVER = new AbortController().signal;

function mappingOf(reader: number): Mapping {
  const mapping = mappings.get(reader);
  if (!mapping) throw new Error('the reader was not opened');
  return mapping;
}

async function work(message: Message): Promise<Answer | undefined> {
  switch (message.kind) {
    case 'open':
      mappings.set(message.reader, createMapping(message.mapping, message.journal));
      return undefined;
    case 'read':
      return readRun(message.file, mappingOf(message.reader), message.nowMs, message.options);
    case 'header':
      return { found: await findHeader(message.task, mappingOf(message.reader)) };
    case 'growth':
      return { growth: await readGrowth(message.task, mappingOf(message.reader)) };
    case 'preview': {
      // Loaded on demand: learning a mapping needs code that reading does not.
      const { makePreview } = await import('./preview.js');
      return { preview: await makePreview(message.task) };
    }
    case 'test': {
      const { runTest } = await import('../mapping/tests.js');
      return { failures: await runTest(message.task, NEVER) };
    }
  }
}

async function answer(message: Message): Promise<void> {
  const result = await work(message).catch((error: unknown): Answer => ({ error: sendError(error) }));
  // Pictures are copied: since Node 22, the memory of a native module cannot be handed over.
  if (result) parentPort?.postMessage(result);
}

let last = Promise.resolve();
parentPort?.on('message', (message: Message) => {
  last = last.then(() => answer(message));
});
parentPort?.postMessage('ready');
