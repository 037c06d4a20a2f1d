import { expect, test } from 'vitest';
import { expectEachOnce, type Scene, setUp, withOneFiled } from '../daemon/scene.js';
import {
  type CrashPoint,
  type DaemonProcess,
  startCrashing,
  startDaemon,
  weighing,
} from '../support/daemon-process.js';
import type { Decide } from '../support/faults.js';
import type { SeenRequest } from '../support/request-log.js';
import { until } from '../support/until.js';

interface Step extends CrashPoint {
  readonly name: string;
  /** The request before this point. */
  readonly request: (sent: SeenRequest) => boolean;
}

const creation = ({ method, path }: SeenRequest): boolean => method === 'POST' && path.endsWith('/experiments');
const patch = ({ method }: SeenRequest): boolean => method === 'PATCH';
const comment = ({ method, path }: SeenRequest): boolean => method === 'POST' && path.endsWith('/comments');

/** The steps of one run. After a response, the crash comes before the next record. */
const STEPS: readonly Step[] = [
  { name: 'intent recorded', when: 'after', kind: 'intended', request: creation },
  { name: 'POST answered', when: 'before', kind: 'created', request: creation },
  { name: 'created recorded', when: 'after', kind: 'created', request: creation },
  { name: 'PATCH answered', when: 'before', kind: 'described', request: patch },
  { name: 'described recorded', when: 'after', kind: 'described', request: patch },
  { name: 'comment intended', when: 'after', kind: 'commentIntended', request: comment },
  { name: 'comment answered', when: 'before', kind: 'commented', request: comment },
  { name: 'commented recorded', when: 'after', kind: 'commented', request: comment },
  { name: 'finished', when: 'after', kind: 'finished', request: comment },
];

test('a daemon killed at any step of a run continues there after a restart', async () => {
  await crashAtEach(await setUp(), 0, () => () => 'pass');
});

test('a daemon killed at any step after a lost response continues there after a restart', async () => {
  const scene = await setUp();
  await (await withOneFiled(scene)).stop();
  await crashAtEach(scene, 1, losingOnce);
});

/** The first such request is carried out, and its response is lost. */
function losingOnce({ request }: Step): Decide {
  let isLost = false;
  return (sent) => {
    if (isLost || !request(sent)) return 'pass';
    isLost = true;
    return 'cutAfter';
  };
}

/**
 * One run per step: the daemon is killed at the step, and the next process finishes that run before it is killed at
 * the next step.
 */
async function crashAtEach(scene: Scene, filed: number, decide: (step: Step) => Decide): Promise<void> {
  const { site, sandbox } = scene;
  const start = (index: number): DaemonProcess => {
    const step = STEPS[index];
    return step ? startCrashing(site.config, filed + index + 1, step) : startDaemon(site.config);
  };
  let daemon = start(0);
  for (const [index, step] of STEPS.entries()) {
    const n = filed + index;
    sandbox.control.decide = decide(step);
    site.drop(`w${n}.csv`, weighing(n));
    await daemon.ended;
    if (daemon.child.signalCode !== 'SIGKILL') fail(step, `the step was not reached:\n${daemon.output()}`);
    daemon = start(index + 1);
    // After the last steps, nothing is left to do.
    await daemon.logged('ready');
    const isFiled = () => sandbox.experiments().filter(({ comments }) => comments.length > 0).length > n;
    await until('the run is filed', isFiled, 90_000).catch((error: Error) => fail(step, error.message));
    expectEachOnce(scene, n + 1);
  }
  expect(await daemon.stop()).toBe(0);
}

function fail({ name }: Step, what: string): never {
  throw new Error(`after a crash at "${name}": ${what}`);
}
