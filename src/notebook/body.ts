import { z } from 'zod';
import type { Answer } from './exchange.js';

/** What an answer's body is made of, as far as that can be told without knowing the operation. */
export type Form = 'json' | 'page' | 'text' | 'empty';

/** A refusal's body, read. */
export interface Body {
  readonly form: Form;
  /** The sentences in which the server says what is wrong. */
  readonly words: readonly string[];
  /** Data that came instead of sentences, in full: records may stand in it. */
  readonly data?: string;
  /** The number in eLabFTW's error body, which may differ from the status. */
  readonly code?: number;
}

const errorBody = z.looseObject({
  code: z.number().optional().catch(undefined),
  message: z.string().optional().catch(undefined),
  description: z.string().optional().catch(undefined),
});

/** A web page where JSON belongs: from a proxy, a login form or a maintenance notice, not from the API. */
export const isPage = ({ headers, text }: Answer): boolean =>
  /^(?:text\/html|application\/xhtml)/i.test(headers['content-type'] ?? '') || /^\s*</.test(text);

/** Undefined where it is not JSON, which no JSON text can say. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export function readBody(answer: Answer): Body {
  const text = answer.text.trim();
  const json = parseJson(text);
  if (json !== undefined) return readError(json, text);
  if (isPage(answer)) return { form: 'page', words: titleOf(text) };
  if (text === '') return { form: 'empty', words: [] };
  // JSON that broke off is still data.
  return /^[[{]/.test(text) ? { form: 'text', words: [], data: text } : { form: 'text', words: [text] };
}

function readError(json: unknown, text: string): Body {
  const { message, description, code } = errorBody.safeParse(json).data ?? {};
  const words = [message, description].filter((said) => said !== undefined).filter((said) => said.trim());
  return {
    form: 'json',
    words: [...new Set(words)],
    ...(words.length === 0 ? { data: text } : {}),
    ...(code === undefined ? {} : { code }),
  };
}

/** Looked for in the beginning only: on a long page without one, the search would take quadratic time. */
function titleOf(html: string): string[] {
  const title = /<title[^>]*>([^<]*)</i.exec(html.slice(0, 4096))?.[1]?.trim();
  return title ? [title] : [];
}
