/** Markup that may go into a page as it is. Made by `html` below, or by who vouches for it. */
export interface Html {
  readonly markup: string;
}

export const trusted = (markup: string): Html => ({ markup });

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

const escapeText = (text: string) => text.replace(/[&<>"']/g, (character) => ESCAPES[character] ?? '');

export type Part = string | number | Html | readonly Html[];

/** Markup from a template literal. Every text that is put in is escaped: forgetting it is not possible. */
export function html(literals: TemplateStringsArray, ...parts: readonly Part[]): Html {
  const markup = literals.map((literal, index) => literal + render(parts[index] ?? ''));
  return trusted(markup.join(''));
}

function render(part: Part): string {
  if (typeof part === 'string') return escapeText(part);
  if (typeof part === 'number') return String(part);
  return 'markup' in part ? part.markup : part.map(({ markup }) => markup).join('');
}
