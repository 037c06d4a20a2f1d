import { byId } from './dom.js';
import type { Route } from './route.js';

type View = Route['view'];

const VIEWS: readonly View[] = ['overview', 'runs', 'run', 'try'];

/** Of the page's views only one is to be seen. */
export function showView(shown: View): void {
  for (const view of VIEWS) byId(`view-${view}`).hidden = view !== shown;
  const tab = shown === 'run' ? 'runs' : shown;
  for (const link of document.querySelectorAll<HTMLElement>('.tab')) {
    if (link.dataset['view'] === tab) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
}

/** Who goes to another view begins at its top, with the keyboard and the screen reader too. */
export function focusView(view: View): void {
  scrollTo(0, 0);
  byId(`view-${view}`).querySelector<HTMLElement>('h1')?.focus({ preventScroll: true });
}
