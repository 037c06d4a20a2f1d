import { type ExecFileOptions, execFile } from 'node:child_process';
import { CLI } from './daemon-process.js';
import { tempFolder } from './temp-folder.js';

export interface Ended {
  readonly status: number;
  /** The signal that ended it. */
  readonly signal?: string | undefined;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a command in a child process until it exits. */
export const labfeed = (args: readonly string[], cwd = tempFolder(), env: NodeJS.ProcessEnv = {}): Promise<Ended> =>
  runNode([CLI, ...args], { cwd, timeout: 120_000, env: { ...process.env, ...env } });

/** The same for any script. */
export const runNode = (args: readonly string[], options: ExecFileOptions = {}): Promise<Ended> =>
  new Promise((resolve) => {
    execFile(process.execPath, args, { ...options, encoding: 'utf8' }, (error, stdout, stderr) =>
      resolve({ status: error ? Number(error.code ?? -1) : 0, signal: error?.signal ?? undefined, stdout, stderr }),
    );
  });
