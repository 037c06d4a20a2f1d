import { expect, test } from 'vitest';
import { describeStatus } from '../../src/daemon/service.js';
import { someLive } from '../support/live.js';

test('the line for systemctl status says what is watched, why nothing is sent, and that there are alarms', () => {
  const { notebook } = someLive();
  expect(describeStatus(someLive())).toBe('watching 1 folder');
  const gate = { kind: 'halted', reason: 'the notebook was restored' } as const;
  const alarms = [{ kind: 'journal', instrument: undefined, since: 0, text: 'nothing is sent' }] as const;
  expect(describeStatus(someLive({ notebook: { ...notebook, gate }, alarms }))).toBe(
    'watching 1 folder; nothing is sent until `labfeed recover` has run; 1 alarm: labfeed status',
  );
});
