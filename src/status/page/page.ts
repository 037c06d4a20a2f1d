import type { PageState } from '../api.js';

const events = new EventSource('/api/events');
events.addEventListener('state', ({ data }: MessageEvent<string>) => {
  const state = JSON.parse(data) as PageState;
  const shown = document.getElementById('state');
  if (shown) shown.textContent = `labfeed ${state.version}`;
});
