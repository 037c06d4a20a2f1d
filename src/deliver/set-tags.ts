import type { OpenRun } from '../model.js';
import type { DeliverDeps } from './deps.js';
import { edit } from './edit.js';
import { hasTag } from './shown.js';

/** eLabFTW's way: tags are put on and taken off one by one. Only those that labfeed has set are taken off. */
export async function setTags(run: OpenRun, experiment: number, deps: DeliverDeps): Promise<void> {
  const { draft, earlier } = run;
  const { notebook, goOn } = deps;
  const present = earlier.length > 0 ? await notebook.listTags(experiment) : [];
  const names = present.map(({ tag }) => tag);
  for (const tag of draft.tags) {
    if (hasTag(names, tag)) continue;
    goOn();
    await edit(run, deps, () => notebook.addTag(experiment, tag));
  }
  for (const { id, tag } of present) {
    if (hasTag(draft.tags, tag) || !earlier.some(({ tags }) => hasTag(tags, tag))) continue;
    goOn();
    await edit(run, deps, () => notebook.removeTag(experiment, id));
  }
}
