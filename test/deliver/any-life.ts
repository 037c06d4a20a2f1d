import fc from 'fast-check';
import type { Life } from './lives.js';

const outcome = fc.oneof(
  { weight: 3, arbitrary: fc.constant('answered' as const) },
  { weight: 2, arbitrary: fc.constantFrom('refused' as const, 'lost', 'never', 'late') },
);

export const anyLife: fc.Arbitrary<Life> = fc.record({
  outcomes: fc.array(outcome, { maxLength: 12 }),
  records: fc.nat(14),
  atDeath: fc.constantFrom('lost', 'never', 'late'),
  lateness: fc.nat(20),
});
