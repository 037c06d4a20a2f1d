import { Drop } from 'liquidjs';

const SPECIAL = /[&<>"']/;
const SPECIAL_OR_BREAK = /[&<>"'\r\n]/;
const ENTITIES: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** Text that cannot become markup, neither between tags nor in a quoted attribute. */
export function escapeHtml(text: string): string {
  return SPECIAL.test(text) ? text.replace(/[&<>"']/g, (sign) => ENTITIES[sign] ?? sign) : text;
}

/** Line breaks of a text stay visible. */
export function escapeLines(text: string): string {
  return SPECIAL_OR_BREAK.test(text) ? escapeHtml(text).replace(/\r\n?|\n/g, '<br>') : text;
}

/** Markup that the program or the template's author wrote, with every value in it escaped: printed as it is. */
export class Markup extends Drop {
  readonly html: string;

  constructor(html: string) {
    super();
    this.html = html;
  }

  override valueOf(): string {
    return this.html;
  }

  override toString(): string {
    return this.html;
  }
}
