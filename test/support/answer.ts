import type { Dispatcher } from 'undici';

/** A complete response. */
export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
  // Each test says what it expects of the JSON.
  readonly json: unknown;
}

export async function answerOf({ statusCode, headers, body }: Dispatcher.ResponseData): Promise<Answer> {
  const text = await body.text();
  const isJson = String(headers['content-type']).startsWith('application/json');
  return { status: statusCode, headers, text, json: isJson && text ? JSON.parse(text) : undefined };
}
