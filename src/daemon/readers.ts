import { Worker } from 'node:worker_threads';
import { NO_MAPPING } from '../config/vocabulary.js';
import { bugWith, FileError, LabfeedError, systemCode } from '../errors.js';
import type { MappingOptions } from '../mapping/mapping.js';
import { type ReadRun, receiveError, sendError } from '../mapping/reading.js';
import type { Failure, TestTask } from '../mapping/tests.js';
import { maxMsFor, raiseSeconds } from '../parse/lines.js';
import type { Reader } from '../pipeline.js';
import type { Preview } from '../status/api.js';
import { keepHeapSmall } from '../system/process.js';
import { MAX_SMALL_BYTES } from '../watch/identify.js';
import type { PreviewTask } from './preview.js';
import type { Answer, Message } from './reader-thread.js';

/**
 * Files are read in threads: they are untrusted, may be large or absurd, and must not block the event loop. A thread
 * that takes too long or too much memory is ended and replaced. Only the file that it was reading fails.
 */
export interface Readers {
  /** For the files of one instrument. */
  open(mapping: MappingOptions, journal: string): Reader;
  /** Throws a FileError if it takes too long. */
  preview(task: PreviewTask, signal: AbortSignal): Promise<Preview>;
  /** Runs a golden test. One that takes too long has failed. */
  test(task: TestTask, signal: AbortSignal): Promise<Failure[]>;
  stop(): Promise<void>;
}

export function createReaders(limits: Partial<Limits> = {}): Readers {
  // Small files do not wait for large ones. Several are sent ahead, so that the thread need not wait for the next.
  const onThreads = () => keepHeapSmall(large.isRunning || tests.isRunning);
  const large: Lane = new Lane(1, { ...LIMITS, ...limits }, onThreads);
  const small = new Lane(16, { ...LIMITS, ...limits }, onThreads, large);
  // A reload must not fail because a golden test had to wait for a large file.
  const tests: Lane = new Lane(1, { ...LIMITS, ...limits }, onThreads);
  const lanes = [small, large, tests];
  const laneFor = (bytes: number) => (bytes <= MAX_SMALL_BYTES ? small : large);
  const close = (reader: number): void => {
    for (const lane of lanes) lane.close(reader);
  };
  let last = 0;
  /** For a task of its own reader, abandoned when the signal is aborted. */
  async function once(lane: Lane, task: Omit<Task, 'reader'>, signal: AbortSignal): Promise<Answer> {
    const reader = ++last;
    const onAbort = () => close(reader);
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      return await lane.add({ ...task, reader });
    } finally {
      signal.removeEventListener('abort', onAbort);
    }
  }
  return {
    open(mapping, journal) {
      const reader = ++last;
      const opening: Message = { kind: 'open', reader, mapping: plain(mapping), journal };
      const ask = (message: Message, path: string, bytes: number): Promise<Answer> =>
        laneFor(bytes).add({ reader, opening, message, path, maxMs: maxMsOf(mapping, bytes) });
      return {
        async read(file, nowMs, options) {
          return (await ask({ kind: 'read', reader, file, nowMs, options }, file.path, file.size)) as ReadRun;
        },
        async findHeader(task) {
          const answer = await ask({ kind: 'header', reader, task }, task.path, task.lead.byteLength);
          return 'found' in answer ? answer.found : { reason: sendError(errorOf(answer)) };
        },
        async readGrowth(task) {
          const answer = await ask({ kind: 'growth', reader, task }, task.path, task.lines.byteLength);
          return 'growth' in answer ? answer.growth : { kind: 'failed', error: sendError(errorOf(answer)) };
        },
        close: () => close(reader),
      };
    },
    async preview(task, signal) {
      const { name, content } = task.sample;
      const maxMs = maxMsFor(NO_MAPPING, content.byteLength);
      const message: Message = { kind: 'preview', task };
      const answer = await once(laneFor(content.byteLength), { message, path: name, maxMs }, signal);
      if ('preview' in answer) return answer.preview;
      throw errorOf(answer);
    },
    async test(task, signal) {
      try {
        const message: Message = { kind: 'test', task };
        const maxMs = maxMsOf(task.instrument);
        const answer = await once(tests, { message, path: task.test.file, maxMs }, signal);
        if ('failures' in answer) return [...answer.failures];
        throw errorOf(answer);
      } catch (error) {
        if (signal.aborted) return [];
        if (error instanceof LabfeedError) return [{ message: error.message, hint: error.hint }];
        throw error;
      }
    },
    stop: async () => void (await Promise.all(lanes.map((lane) => lane.stop()))),
  };
}

const errorOf = (answer: Answer): Error =>
  receiveError(('error' in answer && answer.error) || sendError('unexpected answer of the thread'));

/** Without what cannot be sent, such as functions. */
const plain = ({ name, parse, unread, experiment, comments, access, attach }: MappingOptions): MappingOptions => ({
  ...{ name, parse, unread, experiment, comments, ...(access && { access }), ...(attach && { attach }) },
});

/** `limits.seconds`: the longest of all the ways to read a file. */
function maxMsOf({ parse = [NO_MAPPING] }: MappingOptions, bytes?: number): number {
  const all = parse.flatMap((one) => [one, ...Object.values(one.also ?? {}).flat()]);
  return Math.max(...all.map((one) => maxMsFor(one, bytes)));
}

interface Task {
  readonly reader: number;
  /** What the thread must know about the reader before its first task. */
  readonly opening?: Message;
  readonly message: Message;
  /** For errors. */
  readonly path: string;
  readonly maxMs: number;
}

interface Pending extends Task {
  isClosed: boolean;
  resolve(answer: Answer): void;
  reject(error: Error): void;
}

/** Parsing keeps to its own limits if it can. The thread is ended if it does not. */
interface Limits {
  /** How much longer than `limits.seconds` the thread may take. */
  readonly graceMs: number;
  readonly maxHeapMb: number;
}

const LIMITS: Limits = { graceMs: 5000, maxHeapMb: 1024 };
const CHECK_MS = 250;
/** A small file that takes longer makes way for others, and is read again where large files are. */
const SLOW_MS = 1000;
/** An idle thread keeps 30 MB, more after large files, which are rare; starting it takes tenths of a second. */
const MAX_IDLE_MS = { small: 5 * 60_000, large: 30_000 };

/** The tasks for one thread. It works on them in order, so it is always at the first one that was sent. */
class Lane {
  readonly #maxSent: number;
  readonly #limits: Limits;
  /** Called when the thread has started, and when it ends. */
  readonly #onThread: () => void;
  readonly #slower: Lane | undefined;
  readonly #waiting: Pending[] = [];
  #sent: Pending[] = [];
  #thread: Worker | undefined;
  #isReady = false;
  /** When the thread began with its current task, or became idle. */
  #since = 0;
  /** The readers that the thread knows. */
  #known = new Set<number>();
  #check: NodeJS.Timeout | undefined;

  /** `maxSent`: how many tasks the thread may have. If only one, contents are handed over instead of copied. */
  constructor(maxSent: number, limits: Limits, onThread: () => void, slower?: Lane) {
    this.#maxSent = maxSent;
    this.#limits = limits;
    this.#onThread = onThread;
    this.#slower = slower;
  }

  get isRunning(): boolean {
    return this.#thread !== undefined;
  }

  add(task: Task): Promise<Answer> {
    return new Promise((resolve, reject) => this.#take({ isClosed: false, resolve, reject, ...task }));
  }

  #take(task: Pending): void {
    this.#waiting.push(task);
    this.#send();
  }

  /** Abandons the tasks of a reader. */
  close(reader: number): void {
    for (const task of [...this.#sent, ...this.#waiting]) {
      if (task.reader !== reader) continue;
      task.isClosed = true;
      task.reject(closed());
    }
    const [first] = this.#sent;
    if (first ? first.isClosed : this.#known.has(reader)) this.#replace();
  }

  async stop(): Promise<void> {
    for (const task of [...this.#sent, ...this.#waiting.splice(0)]) task.reject(closed());
    this.#sent = [];
    await this.#end();
  }

  #send(): void {
    while (this.#sent.length < this.#maxSent) {
      const task = this.#waiting.shift();
      if (!task) return;
      if (task.isClosed) continue;
      this.#thread ??= this.#start();
      const { reader, opening, message } = task;
      if (opening && !this.#known.has(reader)) this.#thread.postMessage(opening);
      this.#known.add(reader);
      if (this.#sent.length === 0) this.#since = performance.now();
      this.#sent.push(task);
      this.#thread.postMessage(message, this.#maxSent === 1 ? contentsOf(message) : []);
    }
  }

  #start(): Worker {
    const thread = new Worker(new URL('./reader-thread.js', import.meta.url), {
      // With the default young generation, a thread that reads many small files keeps 30 MB more.
      resourceLimits: { maxOldGenerationSizeMb: this.#limits.maxHeapMb, maxYoungGenerationSizeMb: 6 },
    });
    this.#isReady = false;
    this.#known = new Set();
    thread.on('online', this.#onThread);
    thread.on('message', (answer: Answer | 'ready') => {
      this.#since = performance.now();
      if (answer === 'ready') this.#isReady = true;
      else this.#sent.shift()?.resolve(answer);
      this.#send();
    });
    thread.on('error', (error) => this.#failed(error));
    thread.on('exit', () => this.#failed(new Error('the thread has ended')));
    this.#check = setInterval(() => this.#checkTime(), CHECK_MS).unref();
    return thread;
  }

  #checkTime(): void {
    const ms = performance.now() - this.#since;
    const [first] = this.#sent;
    if (!first && ms > (this.#slower ? MAX_IDLE_MS.small : MAX_IDLE_MS.large)) void this.#end();
    if (!first || !this.#isReady) return;
    if (ms > first.maxMs + this.#limits.graceMs) this.#refuse(tookTooLong(first));
    else if (ms > SLOW_MS && this.#slower && this.#sent.length + this.#waiting.length > 1) {
      this.#sent.shift();
      this.#slower.#take(first);
      this.#replace();
    }
  }

  #failed(error: unknown): void {
    const [first] = this.#sent;
    if (first && this.#isReady) {
      this.#refuse(stoppedAt(first, error, this.#limits));
      return;
    }
    // The file is not to blame if the thread could not start.
    this.#sent.shift()?.reject(new LabfeedError('cannot start a thread to read files', { cause: error }));
    this.#replace();
  }

  /** The file that the thread is reading is refused. Those that were sent after it are sent to the next thread. */
  #refuse(error: FileError): void {
    this.#sent.shift()?.resolve({ error: sendError(error) });
    this.#replace();
  }

  #replace(): void {
    void this.#end();
    this.#waiting.unshift(...this.#sent);
    this.#sent = [];
    this.#send();
  }

  /** Not awaited where others wait: a thread that waits for a hung share ends only when that answers. */
  async #end(): Promise<void> {
    const thread = this.#thread;
    this.#thread = undefined;
    this.#onThread();
    clearInterval(this.#check);
    thread?.removeAllListeners();
    // Without a listener, an error would end the process.
    thread?.on('error', () => undefined);
    await thread?.terminate();
  }
}

const closed = () => new LabfeedError('reading was stopped');

function tookTooLong({ path, maxMs }: Task): FileError {
  const message = `reading the file took longer than ${maxMs / 1000} s`;
  return new FileError(message, { where: { file: path }, hint: raiseSeconds(maxMs) });
}

function stoppedAt({ path }: Task, error: unknown, { maxHeapMb }: Limits): FileError {
  if (systemCode(error) !== 'ERR_WORKER_OUT_OF_MEMORY') return bugWith(path, error);
  const hint = 'split the file, or export less from the instrument';
  return new FileError(`reading the file takes more than ${maxHeapMb} MB of memory`, { where: { file: path }, hint });
}

/** The contents of files, which are large. */
function contentsOf(message: Message): ArrayBuffer[] {
  if (message.kind !== 'read' || !('sha256' in message.file)) return [];
  const { file } = message;
  return [file, ...(file.parts ?? [])].flatMap(({ content }) =>
    content && content.byteLength === content.buffer.byteLength ? [content.buffer as ArrayBuffer] : [],
  );
}
