/**
 * The few things that this page needs of the document. What comes from files, people or servers goes in as text only:
 * nothing here takes markup.
 */

export type Child = Node | string | number | undefined | false;

type Props<K extends keyof HTMLElementTagNameMap> = Omit<
  Partial<HTMLElementTagNameMap[K]>,
  'style' | 'innerHTML' | 'outerHTML' | 'dataset'
> & {
  /** Attributes that are no properties: `aria-…`, `role`, `for`, `datetime`. */
  readonly attrs?: Readonly<Record<string, string>>;
  readonly on?: Readonly<Record<string, (event: Event) => void>>;
};

/** An element with its properties and children. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  props: Props<K> | Record<string, never> = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  const { attrs = {}, on = {}, ...properties } = props;
  Object.assign(element, properties);
  for (const [name, value] of Object.entries(attrs)) element.setAttribute(name, value);
  for (const [name, listener] of Object.entries(on)) element.addEventListener(name, listener);
  element.append(...present(children));
  return element;
}

const present = (children: readonly Child[]): (Node | string)[] =>
  children.flatMap((child) =>
    child === undefined || child === false ? [] : [typeof child === 'number' ? String(child) : child],
  );

/** An element that stands in the page's HTML. */
export function byId<T extends HTMLElement = HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no #${id}`);
  return found as T;
}

/** Text is written only where it differs: nothing is laid out, or read aloud, for nothing. */
export function setText(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

/** As with text: what observes the page is not woken for nothing. */
export function setData(element: HTMLElement, name: string, value: string): void {
  if (element.dataset[name] !== value) element.dataset[name] = value;
}

export type Slot = (shown: unknown, build: () => readonly Child[]) => void;

/** A place whose content is made anew only when what it shows has changed. The focus stays where it was. */
export function createSlot(element: Element): Slot {
  let signature: string | undefined;
  return (shown, build) => {
    const next = JSON.stringify(shown) ?? '';
    if (next === signature) return;
    signature = next;
    const focused = element.contains(document.activeElement) ? focusKey(document.activeElement) : undefined;
    element.replaceChildren(...present(build()));
    if (focused !== undefined) {
      const again = [...element.querySelectorAll<HTMLElement>('a, button, input, select, summary')];
      again.find((candidate) => focusKey(candidate) === focused)?.focus({ preventScroll: true });
    }
  };
}

const focusKey = (element: Element | null): string | undefined =>
  element === null
    ? undefined
    : `${element.tagName} ${element.getAttribute('href') ?? ''} ${element.textContent}`;

export interface Row<T> {
  readonly element: HTMLElement;
  update(item: T): void;
}

/** A list of which only those rows are touched that came, went or changed place. */
export function createList<T>(
  container: Element,
  { key, create }: { key: (item: T) => string; create: (item: T) => Row<T> },
): (items: readonly T[]) => void {
  let rows = new Map<string, Row<T>>();
  return (items) => {
    const next = new Map<string, Row<T>>();
    for (const item of items) {
      const row = rows.get(key(item)) ?? create(item);
      next.set(key(item), row);
      row.update(item);
    }
    for (const [name, { element }] of rows) if (!next.has(name)) element.remove();
    let place = container.firstElementChild;
    for (const { element } of next.values()) {
      if (element === place) place = place.nextElementSibling;
      else container.insertBefore(element, place);
    }
    rows = next;
  };
}
