/** Raw files of one instrument that wait to be attached at one notebook. */
export interface WaitingUploads {
  readonly instrument: string;
  readonly server?: string | undefined;
  readonly files: number;
  readonly bytes: number;
  /** When the first of their runs was added. */
  readonly since: number;
}

/** All of them together; undefined if none wait. */
export function totalUploads(waiting: readonly WaitingUploads[] = []) {
  if (waiting.length === 0) return undefined;
  const sum = (key: 'files' | 'bytes'): number => waiting.reduce((total, part) => total + part[key], 0);
  return { files: sum('files'), bytes: sum('bytes'), since: Math.min(...waiting.map(({ since }) => since)) };
}

/** What the configuration says about uploads. */
export interface UploadSettings {
  readonly url: string | undefined;
  /** The instruments without a mistake. */
  readonly instruments: readonly string[];
}

/** Why files wait until the configuration is changed, and what to do; undefined if they are uploaded as it is. */
export function uploadObstacle(
  { instrument, server }: Pick<WaitingUploads, 'instrument' | 'server'>,
  { url, instruments }: UploadSettings,
): { readonly text: string; readonly hint: string } | undefined {
  if (server !== url)
    return {
      text: `the run was filed at ${server}, which is not the configured notebook`,
      hint: 'set `notebook.url` back to attach the file; to give it up, set `attach: never` for the instrument',
    };
  if (instruments.includes(instrument)) return undefined;
  return {
    text: `${instrument} is not in the configuration, or has an error there`,
    hint: 'put the instrument back to attach the file; to give it up, set `attach: never` there',
  };
}
