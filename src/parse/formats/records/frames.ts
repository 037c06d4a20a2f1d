const [STX, ETX, EOT, ENQ, ACK, VT, NAK, ETB, FS] = [0x02, 0x03, 0x04, 0x05, 0x06, 0x0b, 0x15, 0x17, 0x1c];
const [CR, LF] = [0x0d, 0x0a];

/**
 * Takes away what carried records over a wire: ASTM frames (STX, a number, text, ETX or ETB, a checksum),
 * the handshake around them, and the two marks of HL7's MLLP.
 */
export function unframe(bytes: Uint8Array): Uint8Array {
  const isWide = (bytes[0] === 0xff && bytes[1] === 0xfe) || (bytes[0] === 0xfe && bytes[1] === 0xff);
  if (isWide || ![STX, VT, ENQ].some((mark) => bytes.includes(mark))) return bytes;
  const kept = new Uint8Array(bytes.byteLength);
  let length = 0;
  for (let at = 0; at < bytes.byteLength; at++) {
    const byte = bytes[at];
    switch (byte) {
      case STX:
        if (isFrameNumber(bytes[at + 1])) at++;
        break;
      case ETX:
        at += checksumLength(bytes, at + 1);
        break;
      case ETB:
        // The record goes on in the next frame, so its line does not end here.
        at += checksumLength(bytes, at + 1);
        while (bytes[at + 1] === CR || bytes[at + 1] === LF) at++;
        break;
      case ENQ:
      case ACK:
      case NAK:
      case EOT:
      case VT:
      case FS:
        break;
      default:
        kept[length++] = byte ?? 0;
    }
  }
  return kept.subarray(0, length);
}

const isFrameNumber = (byte: number | undefined): boolean =>
  byte !== undefined && byte >= 0x30 && byte <= 0x37;

function checksumLength(bytes: Uint8Array, at: number): number {
  const text = String.fromCharCode(bytes[at] ?? 0, bytes[at + 1] ?? 0);
  return /^[0-9A-F]{2}$/i.test(text) ? 2 : 0;
}
