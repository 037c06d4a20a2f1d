import { execFile } from 'node:child_process';
import { CLI } from './daemon-process.js';
import { tempFolder } from './temp-folder.js';

export interface Ended {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a command in a child process until it exits. */
export const labfeed = (args: readonly string[], cwd = tempFolder(), env: NodeJS.ProcessEnv = {}): Promise<Ended> =>
  new Promise((resolve) => {
    execFile(
      process.execPath,
      [CLI, ...args],
      { cwd, timeout: 30_000, env: { ...process.env, ...env } },
      (error, stdout, stderr) => {
        resolve({ status: error ? Number(error.code ?? -1) : 0, stdout, stderr });
      },
    );
  });
