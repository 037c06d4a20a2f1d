import { type Clock, every, type Loop } from '../clock.js';
import type { Instrument, UsableConfig } from '../config/load.js';
import type { AttachOptions } from '../deliver/uploads.js';
import { explain } from '../errors.js';
import type { Journal } from '../journal/journal.js';
import type { Log } from '../log.js';
import type { Spool } from '../spool.js';
import { openContent } from '../watch/identify.js';
import { createRawFiles, type RawFiles } from '../watch/raw-files.js';

/** How raw files get from intake to delivery: through the spool, or from where they were read. */
interface AttachDeps {
  readonly config: UsableConfig;
  readonly journal: Pick<Journal, 'outbox'>;
  readonly spool: Spool;
  isSecretIn(text: string): boolean;
}

/** `config` decides about new runs, and about those that are not attached yet. */
export function attachFrom({ config, journal: { outbox }, spool, isSecretIn }: AttachDeps): AttachOptions {
  const named = (wanted: Instrument['attach']) =>
    config.instruments.filter(({ attach }) => attach === wanted).map(({ name }) => name);
  const plotted = new Set(config.instruments.flatMap((one) => (one.experiment.plot === 'never' ? [] : one.name)));
  return {
    isSecretIn,
    instruments: { attached: named('auto'), dropped: named('never') },
    isPlotted: (instrument) => plotted.has(instrument),
    async openSource(file) {
      const copy = await spool.open(file.sha256);
      if (!copy) return file.kind === 'raw' ? openContent(file.path, file) : undefined;
      return {
        read: () => copy.createReadStream({ start: 0, autoClose: false, highWaterMark: UPLOAD_CHUNK_BYTES }),
        close: () => copy.close(),
      };
    },
    uploaded: ({ sha256 }) => spool.remove(sha256, () => outbox.uploads.needs(sha256)),
  };
}

/** Looking for secrets in a chunk takes a few milliseconds. */
const UPLOAD_CHUNK_BYTES = 128 * 1024;

/** Until the dialect is known, files are copied: the notebook may be eLabFTW. */
export function rawFilesOf(
  { attach, experiment }: Instrument,
  { config, journal: { outbox }, spool }: AttachDeps,
): RawFiles | undefined {
  const { url, dialect } = config.notebook;
  if (attach === 'never' || dialect === 'v2') return undefined;
  const server = outbox.server(url);
  return createRawFiles({
    spool,
    maxBytes: config.settings.spool,
    isPlotted: experiment.plot !== 'never',
    isWanted: async () => dialect === 'elabftw' || (await server.facts()).dialect !== 'v2',
    isNeeded: outbox.uploads.needs,
  });
}

const SWEEP_MS = 10 * 60_000;

/** Removes copies of runs that were erased or ignored. */
export const sweepSpool = ({
  journal: { outbox },
  spool,
  clock,
  log,
}: AttachDeps & { readonly clock: Clock; readonly log: Log }): Loop =>
  every(SWEEP_MS, clock, async () => {
    const failed = (error: unknown) => log.warn({ reason: explain(error) }, 'cannot clean the spool, retrying later');
    await spool.sweep(outbox.uploads.needed).catch(failed);
    return undefined;
  });
