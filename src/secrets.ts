import { FileError } from './errors.js';
import type { PlotPicture } from './model.js';
import type { Reading } from './outbox.js';

/** Shorter texts occur by chance once they are encoded. */
const MIN_ENCODED_LENGTH = 8;

/**
 * Matches these secrets in every spelling in which a server or a program may repeat them: in any case, escaped for
 * JSON, URLs or HTML, and in Base64 wherever they start in the encoded bytes. Undefined if there are none.
 */
export function secretPattern(secrets: Iterable<string>): RegExp | undefined {
  const spellings = new Set([...secrets].filter(Boolean).flatMap(spellingsOf));
  if (spellings.size === 0) return undefined;
  // The longest first, so that no part of a longer one remains.
  const alternatives = [...spellings].sort((a, b) => b.length - a.length).map(literal);
  return new RegExp(alternatives.join('|'), 'gi');
}

function spellingsOf(secret: string): string[] {
  const escaped = [
    secret,
    encodeURIComponent(secret),
    JSON.stringify(secret).slice(1, -1),
    secret.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`),
    secret.replace(/[&<>"']/g, (character) => ENTITIES[character] ?? character),
  ];
  if (secret.length < MIN_ENCODED_LENGTH) return escaped;
  const encoded = [0, 1, 2].map((offset) => base64Of(secret, offset));
  const hex = Buffer.from(secret).toString('hex');
  return [...escaped, hex, ...encoded, ...encoded.map((text) => text.replaceAll('+', '-').replaceAll('/', '_'))];
}

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

/** Without the characters at both ends that depend on the bytes around the secret. */
function base64Of(secret: string, offset: number): string {
  const bytes = Buffer.concat([Buffer.alloc(offset), Buffer.from(secret)]);
  return bytes.toString('base64').slice(Math.ceil((offset * 8) / 6), Math.floor((bytes.length * 8) / 6));
}

const literal = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');

/** A secret that somebody copied into a file reaches neither the journal nor the notebook. */
export function withoutSecrets(
  reading: Reading & { readonly plot?: PlotPicture | undefined },
  file: string,
  isSecretIn: (text: string) => boolean,
): Reading {
  const { draft, omits = [], plot } = reading;
  if (!draft) return reading;
  const texts = [draft.title, draft.body, ...draft.tags, ...draft.comments, ...omits, plot?.png ? plot.texts : ''];
  if (!isSecretIn(texts.join('\n'))) return reading;
  return { problem: containsSecret(file) };
}

export const containsSecret = (file: string): FileError =>
  new FileError('the file contains the API key or the token of labfeed', {
    where: { file },
    hint: 'remove it from the file. If others could read the file, replace the key with `labfeed keys rotate`',
  });
