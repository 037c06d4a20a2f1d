import type { LiveGate } from '../../live.js';
import { clockTime, duration, sentence } from './words.js';

/** Why requests leave, or why they wait, in words. */
export function gateInWords(gate: LiveGate, now: number): { readonly what: string; readonly why: string } {
  switch (gate.kind) {
    case 'open':
      return { what: 'The notebook takes runs.', why: `At most ${rate(gate.perSecond)}.` };
    case 'slowed':
      return {
        what: 'The notebook takes runs, slowly.',
        why: `It asked for less: ${rate(gate.perSecond)} for now.`,
      };
    case 'slow start':
      return {
        what: 'The notebook is back.',
        why: `Sending begins slowly, so as not to overwhelm it: ${rate(gate.perSecond)} for now.`,
      };
    case 'held':
      return {
        what: `The notebook asked for a pause until ${clockTime(gate.until, now)}.`,
        why: sentence(gate.reason),
      };
    case 'down':
      return gate.failure === 'auth' ? refusedKey(gate) : away(gate, now);
  }
}

type Down = Extract<LiveGate, { kind: 'down' }>;

const refusedKey = ({ reason }: Down) => ({
  what: 'The notebook refuses the key.',
  why: `${sentence(reason)} Runs are taken and kept meanwhile; a new key in the same place is picked up by itself.`,
});

const away = ({ since, probeAt, reason }: Down, now: number) => ({
  what: `The notebook has been away for ${duration(now - since)}.`,
  why: `${sentence(reason)} ${
    probeAt > now ? `The next attempt is at ${clockTime(probeAt, now)}.` : 'It is being tried now.'
  } Runs are taken and kept meanwhile.`,
});

function rate(perSecond: number): string {
  if (perSecond < 1) return `a request every ${duration(1000 / perSecond)}`;
  const rounded = perSecond < 10 ? Math.round(perSecond * 10) / 10 : Math.round(perSecond);
  return `${rounded} ${rounded === 1 ? 'request' : 'requests'} a second`;
}
