import { readdirSync, readFileSync } from 'node:fs';

/** The processes that a process has started and that have not ended. */
export const childrenOf = (pid: number): number[] =>
  readdirSync(`/proc/${pid}/task`)
    .flatMap((thread) => readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8').split(' '))
    .filter((child) => child !== '' && !/^State:\s+Z/m.test(statusOf(Number(child))))
    .map(Number);

/** The most memory that a process has had, in bytes. */
export const peakMemoryOf = (pid: number): number =>
  1024 * Number(/^VmHWM:\s+(\d+) kB$/m.exec(statusOf(pid))?.[1] ?? 0);

function statusOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/status`, 'utf8');
  } catch {
    return 'State: Z (it has ended meanwhile)';
  }
}
