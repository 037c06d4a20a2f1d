import type { PageState, Preview } from '../api.js';
import { type Ask, AskError } from './ask.js';
import { byId, createSlot, h } from './dom.js';
import { previewOf, refusalOf } from './preview.js';
import { bytes } from './words.js';

/** What the server takes. */
const MOST_BYTES = 20_000_000;

export interface TryView {
  refresh(state: PageState): void;
}

/** A place for a sample file: shows the experiment that it would become. Nothing is sent or kept. */
export function createTry(ask: Pick<Ask, 'preview'>): TryView {
  const input = h('input', { type: 'file', id: 'sample', className: 'unseen' });
  const choice = h('select', { id: 'sample-instrument' });
  const drop = dropPlace(input);
  const result = h('div', { className: 'result', attrs: { 'aria-live': 'polite' } });
  byId('view-try').append(
    h('h1', { tabIndex: -1 }, 'Try a file'),
    h('p', {}, 'See the experiment that a file would become, before anything is filed.'),
    h(
      'div',
      { className: 'filters' },
      h('label', { attrs: { for: 'sample-instrument' } }, 'Read it as', choice),
    ),
    drop,
    result,
  );
  const options = createSlot(choice);
  let file: File | undefined;
  /** Of two questions the later one counts; the server is spared the other. */
  let asking = new AbortController();

  async function show(tried: File): Promise<void> {
    asking.abort();
    asking = new AbortController();
    const { signal } = asking;
    file = tried;
    result.replaceChildren(h('p', { className: 'soft' }, `Reading ${tried.name} …`));
    const preview = await read(ask, tried, choice.value, signal);
    if (signal.aborted) return;
    const heading = preview.ok ? `${tried.name} would become` : `${tried.name} would not be filed`;
    result.replaceChildren(
      h('h2', {}, heading),
      ...(preview.ok ? previewOf(preview) : refusalOf(preview, tried.name)),
    );
  }

  input.addEventListener('change', () => {
    const chosen = input.files?.[0];
    // The same file, changed meanwhile, can be chosen again.
    input.value = '';
    if (chosen) void show(chosen);
  });
  choice.addEventListener('change', () => file && void show(file));
  listenForDrops(drop, (dropped) => void show(dropped));

  return {
    refresh({ live }) {
      const names = live.instruments.map(({ name }) => name);
      const chosen = choice.value;
      options(names, () => [
        h('option', { value: '' }, 'the instrument that its name fits'),
        h('option', { value: LEARN }, 'new: learn how to read it'),
        ...names.map((name) => h('option', { value: `=${name}` }, name)),
      ]);
      if ([...choice.options].some(({ value }) => value === chosen)) choice.value = chosen;
    },
  };
}

/** No instrument's own value: those begin with `=`. */
const LEARN = 'learn';

const dropPlace = (input: HTMLInputElement): HTMLElement =>
  h(
    'div',
    { className: 'drop' },
    h('p', { className: 'big' }, 'Drop a file here'),
    h('p', {}, input, h('label', { className: 'button primary', attrs: { for: input.id } }, 'Choose a file')),
    h(
      'p',
      { className: 'soft' },
      'Up to 20 MB. It is read and shown, then forgotten: nothing is sent or kept.',
    ),
  );

/** The server looks at one file at a time: somebody else's, or the one that was just given up. */
const AGAIN_MS = 500;
const MOST_TRIES = 20;

async function read(
  ask: Pick<Ask, 'preview'>,
  file: File,
  choice: string,
  signal: AbortSignal,
  tries = 1,
): Promise<Preview> {
  if (file.size > MOST_BYTES)
    return { ok: false, reason: `it has ${bytes(file.size)}, and a preview takes 20 MB` };
  const instrument = choice.startsWith('=') ? choice.slice(1) : undefined;
  try {
    return await ask.preview(file, { instrument, learn: choice === LEARN, signal });
  } catch (error) {
    const isBusy = error instanceof AskError && error.status === 429;
    if (!isBusy || signal.aborted || tries === MOST_TRIES)
      return { ok: false, reason: error instanceof Error ? error.message : String(error) };
    await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
    return read(ask, file, choice, signal, tries + 1);
  }
}

function listenForDrops(drop: HTMLElement, take: (file: File) => void): void {
  const over = (is: boolean) => (event: Event) => {
    event.preventDefault();
    drop.classList.toggle('over', is);
  };
  drop.addEventListener('dragenter', over(true));
  drop.addEventListener('dragover', over(true));
  drop.addEventListener('dragleave', over(false));
  drop.addEventListener('drop', (event) => {
    over(false)(event);
    const dropped = event.dataTransfer?.files[0];
    if (dropped) take(dropped);
  });
  // Beside the place, a browser would leave the page and open the file.
  for (const name of ['dragover', 'drop']) document.addEventListener(name, (event) => event.preventDefault());
}
