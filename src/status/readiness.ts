import type { Live } from '../live.js';
import type { Overview } from './api.js';

/** Something that keeps runs from being filed. */
export interface Hindrance {
  readonly part: 'journal' | 'notebook' | 'folder' | 'instrument';
  readonly instrument?: string;
  readonly text: string;
}

/** All that keeps runs from being filed at this moment; nothing where labfeed is ready. */
export function findHindrances(
  { notebook, instruments }: Live,
  servers: Overview['servers'],
  journalTrouble: string | undefined,
): Hindrance[] {
  const halted = servers.find(({ url }) => url === notebook.url)?.halted;
  const { gate } = notebook;
  return [
    ...(journalTrouble === undefined ? [] : [{ part: 'journal', text: journalTrouble } as const]),
    ...(halted === undefined ? [] : [{ part: 'notebook', text: halted } as const]),
    ...(gate.kind === 'down' ? [{ part: 'notebook', text: gate.reason } as const] : []),
    ...instruments.flatMap(hindranceOf),
  ];
}

function hindranceOf({ name, line, folder, watch }: Live['instruments'][number]): Hindrance[] {
  if (line === 'stopped')
    return [
      {
        part: 'instrument',
        instrument: name,
        text: `${name} is stopped by a mistake in its configuration, or by a failed test`,
      },
    ];
  if (line === 'starting')
    return [
      {
        part: 'instrument',
        instrument: name,
        text: `${name} is still starting: the first scan of ${watch} goes on`,
      },
    ];
  if (folder.state === 'present') return [];
  const reason = folder.reason === undefined ? '' : ` (${folder.reason})`;
  return [
    { part: 'folder', instrument: name, text: `the folder ${watch} of ${name} is ${folder.state}${reason}` },
  ];
}
