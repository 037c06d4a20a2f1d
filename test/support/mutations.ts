import fc from 'fast-check';

/** Copies of some bytes with a few of them changed, some of them truncated. */
export function mutations(base: Uint8Array): fc.Arbitrary<Uint8Array> {
  const change = fc.record({ at: fc.nat({ max: base.length - 1 }), byte: fc.nat({ max: 255 }) });
  const length = fc.oneof({ weight: 4, arbitrary: fc.constant(base.length) }, fc.nat({ max: base.length }));
  return fc.tuple(fc.array(change, { maxLength: 6 }), length).map(([changes, end]) => {
    const bytes = Buffer.from(base);
    for (const { at, byte } of changes) bytes[at] = byte;
    return bytes.subarray(0, end);
  });
}
