import type { Refuse } from '../../refuse.js';

const [STX, ETX, EOT, ENQ, ACK, VT, NAK, ETB, FS] = [0x02, 0x03, 0x04, 0x05, 0x06, 0x0b, 0x15, 0x17, 0x1c];
const [CR, LF] = [0x0d, 0x0a];

/**
 * Takes away what carried records over a wire: ASTM frames (STX, a number, text, ETX or ETB, a checksum),
 * the handshake around them, and the two marks of HL7's MLLP. A frame that its checksum does not fit is refused:
 * who received it should have asked for it again.
 */
export function unframe(bytes: Uint8Array, refuse: Refuse): Uint8Array {
  const isWide = (bytes[0] === 0xff && bytes[1] === 0xfe) || (bytes[0] === 0xfe && bytes[1] === 0xff);
  if (isWide || ![STX, VT, ENQ].some((mark) => bytes.includes(mark))) return bytes;
  const kept = new Uint8Array(bytes.byteLength);
  let length = 0;
  let frame: { from: number; keptBefore: number } | undefined;
  const end = (at: number): number => {
    const checksum = checksumAt(bytes, at + 1);
    if (frame && checksum !== undefined && !fits(bytes.subarray(frame.from, at + 1), checksum)) {
      const line = linesIn(kept.subarray(0, frame.keptBefore)) + 1;
      throw refuse('the frame that begins here does not fit its checksum: it was damaged on its way', {
        at: { line },
        hint: 'have the instrument send it again, or mend the file',
      });
    }
    frame = undefined;
    return checksum === undefined ? 0 : 2;
  };
  for (let at = 0; at < bytes.byteLength; at++) {
    const byte = bytes[at];
    switch (byte) {
      case STX:
        frame = { from: at + 1, keptBefore: length };
        if (isFrameNumber(bytes[at + 1])) at++;
        break;
      case ETX:
        at += end(at);
        break;
      case ETB:
        // The record goes on in the next frame, so its line does not end here.
        at += end(at);
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

function checksumAt(bytes: Uint8Array, at: number): number | undefined {
  const text = String.fromCharCode(bytes[at] ?? 0, bytes[at + 1] ?? 0);
  return /^[0-9A-F]{2}$/i.test(text) ? Number.parseInt(text, 16) : undefined;
}

/** The sum of all from the frame's number to its end; also where a program has since written CR as CR LF, or as LF. */
function fits(frame: Uint8Array, checksum: number): boolean {
  let [sum, feeds] = [0, 0];
  for (const byte of frame) {
    sum += byte;
    if (byte === LF) feeds++;
  }
  return [sum, sum - feeds * LF, sum + feeds * (CR - LF)].some((total) => total % 256 === checksum);
}

const linesIn = (bytes: Uint8Array): number =>
  Buffer.from(bytes)
    .toString('latin1')
    .split(/\r\r\n|\r\n|\n|\r/).length - 1;
