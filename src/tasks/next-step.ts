import type { Job } from '../journal/reader.js';
import { atTime } from '../text.js';

/** What a person can do about a run, or that there is nothing to do. */
export function nextStep(job: Job): string {
  const { id, state, path } = job;
  switch (state) {
    case 'waiting':
      return 'nothing: it is taken once its file is still';
    case 'queued':
    case 'sending':
      return job.reason === undefined
        ? 'nothing: it is sent as soon as the notebook takes it'
        : `nothing: it is tried again at ${atTime(job.dueAt)}; if the reason stays the same, look after the notebook`;
    case 'done':
      return path === '' ? 'nothing: it was filed, and erased here' : 'nothing: it is filed';
    case 'quarantined':
      return quarantined(job);
    case 'held':
      return held(job);
    case 'ignored':
      return `nothing, unless it is to be filed after all: labfeed ${path === '' ? 'refile' : 'retry'} ${id}`;
  }
}

function quarantined({ id, failure }: Job): string {
  const again = `labfeed retry ${id} reads it anew; a reload that changes the mapping does so by itself`;
  const what =
    failure === 'file' ? 'mend the mapping, or the file' : 'mend the mapping, or ask who runs the notebook';
  return `${what}; then ${again}. If it is not to be filed: labfeed ignore ${id}`;
}

function held({ id, step, failure, experiment }: Job): string {
  const ignore = `If it is not to be filed: labfeed ignore ${id}`;
  if (step === 'done') return `labfeed refile ${id} files it once more. ${ignore}`;
  if (failure === 'drift')
    return `labfeed retry ${id} files it, and takes it as the pattern for those to come; if the mapping is to be changed, it is read anew after a reload. ${ignore}`;
  const own = experiment === undefined ? 'the experiment that is its own' : `experiment ${experiment}`;
  return `decide: labfeed retry ${id} looks again; labfeed adopt ${id} EXPERIMENT fills in ${own}, whatever it holds; labfeed refile ${id} makes another. ${ignore}`;
}
