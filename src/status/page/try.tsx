import { useEffect, useRef, useState } from 'preact/hooks';
import { formatBytes, formatCount, headingOf, plural } from '../../text.js';
import type { PageState, Preview, PreviewTable } from '../api.js';
import { postPreview, RequestError, role } from './client.js';
import { type EditedMapping, MappingEditor, openMapping } from './editor.js';
import { Draft, Facts, Lines, Reason, Select, Table, TextPanel, ViewTitle } from './parts.js';

/** The limit of the server. */
const MAX_BYTES = 20_000_000;

/** The other values of the select start with `=`, so no instrument name can be mistaken for this one. */
const LEARN = 'learn';

interface Shown {
  readonly file: File;
  /** Undefined while the file is being read. */
  readonly preview?: Preview;
}

interface TryProps {
  state: PageState | undefined;
  /** The file that was last dropped on the page, in whatever view. */
  dropped: { readonly file: File } | undefined;
  isOver: boolean;
}

/** Takes a sample file and shows the experiment it would become. Nothing is sent to the notebook or stored. */
export function TryFile({ state, dropped, isOver }: TryProps) {
  const instruments = state?.live.instruments ?? [];
  const [choice, setChoice] = useState('');
  const [shown, setShown] = useState<Shown>();
  const [draft, setDraft] = useState<EditedMapping>();
  const running = useRef(new AbortController());

  async function show(file: File, readAs: string, mapping = draft?.text): Promise<void> {
    running.current.abort();
    running.current = new AbortController();
    const { signal } = running.current;
    // While somebody edits the mapping, the preview before stays until there is a new one.
    if (mapping === undefined || file !== shown?.file) setShown({ file });
    const preview = await requestPreview(file, { readAs, mapping: mapping ?? '' }, signal);
    if (!signal.aborted) setShown({ file, preview });
  }
  useEffect(() => {
    if (dropped) void show(dropped.file, choice);
  }, [dropped]);
  useEffect(() => {
    if (!draft || !shown) return undefined;
    const timer = setTimeout(() => void show(shown.file, choice, draft.text), EDIT_PAUSE_MS);
    return () => clearTimeout(timer);
  }, [draft?.text]);
  function choose(readAs: string): void {
    setChoice(readAs);
    setDraft(undefined);
    if (shown) void show(shown.file, readAs, '');
  }
  async function edit(mapping: string): Promise<void> {
    const isLearned = !shown?.preview?.ok || choice === LEARN;
    setDraft(await openMapping(isLearned ? undefined : shown.preview.instrument, mapping));
  }
  function close(): void {
    setDraft(undefined);
    if (shown) void show(shown.file, choice, '');
  }
  return (
    <>
      <ViewTitle>Try a file</ViewTitle>
      <p>See the experiment that a file would become, before anything is filed.</p>
      <div class="filters">
        <Select
          id="sample-instrument"
          label="Read it as"
          value={choice}
          options={[
            ['', 'the instrument that matches its name'],
            [LEARN, 'a new instrument (learn the format)'],
            ...instruments.map(({ name }) => [`=${name}`, name] as const),
          ]}
          onSelect={choose}
        />
      </div>
      <DropZone onFile={(file) => void show(file, choice)} isOver={isOver} />
      <div class={draft && 'setup'}>
        {draft && shown && (
          <MappingEditor
            draft={draft}
            sample={shown.file}
            preview={shown.preview}
            onChange={setDraft}
            onSaved={(hash) => setDraft((now) => now && { ...now, replaces: hash })}
            onClose={close}
          />
        )}
        <div class="result">
          {/* Screen readers announce this line only. */}
          <div role="status">{shown && <Outcome {...shown} />}</div>
          {shown?.preview && <Result file={shown.file} preview={shown.preview} onEdit={draft ? undefined : edit} />}
        </div>
      </div>
    </>
  );
}

/** Takes files that are dropped anywhere on the page. `isOver`: while one is dragged over it. */
export function useFileDrop(onFile: (file: File) => void): boolean {
  const [isOver, setOver] = useState(false);
  const receive = useRef(onFile);
  receive.current = onFile;
  useEffect(() => {
    const drag = (event: DragEvent): void => {
      // Otherwise the browser would leave the page to open the file.
      event.preventDefault();
      setOver(event.type === 'dragover' && event.dataTransfer?.types.includes('Files') === true);
      const file = event.type === 'drop' ? event.dataTransfer?.files[0] : undefined;
      if (file) receive.current(file);
    };
    for (const name of ['dragover', 'dragleave', 'drop'] as const) document.addEventListener(name, drag);
  }, []);
  return isOver;
}

function DropZone({ onFile, isOver }: { onFile: (file: File) => void; isOver: boolean }) {
  function choose({ currentTarget }: { currentTarget: HTMLInputElement }): void {
    const file = currentTarget.files?.[0];
    // So that the same file can be chosen again after it was changed.
    currentTarget.value = '';
    if (file) onFile(file);
  }
  return (
    <div class={`drop ${isOver ? 'over' : ''}`}>
      <p class="big">Drop a file anywhere on this page</p>
      <p>
        <input type="file" id="sample" class="unseen" onChange={choose} />
        <label class="button primary" for="sample">
          Choose a file
        </label>
      </p>
      <p class="soft">Up to 20 MB. The file is only previewed: nothing is sent or stored.</p>
    </div>
  );
}

/** How long somebody must not type before the preview is made. */
const EDIT_PAUSE_MS = 400;

/** The server previews one file at a time; it may be busy with another one, or with the one just abandoned. */
const BUSY_RETRY_MS = 500;
const MAX_TRIES = 20;

interface Reading {
  readonly readAs: string;
  /** Empty if it is not edited here. */
  readonly mapping: string;
}

async function requestPreview(file: File, reading: Reading, signal: AbortSignal, attempt = 1): Promise<Preview> {
  const { readAs, mapping } = reading;
  if (file.size > MAX_BYTES)
    return { ok: false, reason: `the file is ${formatBytes(file.size)}; previews are limited to 20 MB` };
  const instrument = readAs.startsWith('=') ? readAs.slice(1) : undefined;
  try {
    return await postPreview(file, mapping, { instrument, learn: readAs === LEARN ? 1 : undefined }, signal);
  } catch (error) {
    const isBusy = error instanceof RequestError && error.status === 429;
    if (!isBusy || signal.aborted || attempt === MAX_TRIES)
      return { ok: false, reason: error instanceof Error ? error.message : String(error) };
    await new Promise((resolve) => setTimeout(resolve, BUSY_RETRY_MS));
    return requestPreview(file, reading, signal, attempt + 1);
  }
}

type Edit = ((mapping: string) => void) | undefined;

function Outcome({ file: { name }, preview }: Shown) {
  if (!preview) return <p class="soft">Reading {name}…</p>;
  if (preview.ok) return <h2>Preview of {name}</h2>;
  return <h2>{preview.isMistake ? 'The mapping has a mistake' : `${name} would not be filed`}</h2>;
}

function Result({ file, preview, onEdit }: Required<Shown> & { onEdit: Edit }) {
  if (preview.ok) return <ExperimentPreview preview={preview} onEdit={onEdit} />;
  return (
    <>
      <div class="panel item bad">
        <Reason reason={preview.reason} path={preview.isMistake ? 'mapping' : file.name} />
      </div>
      <Findings title="Please check" lines={preview.doubts ?? []} />
      {preview.mapping !== undefined && onEdit && <Mapping mapping={preview.mapping} onEdit={onEdit} />}
    </>
  );
}

type Filed = Extract<Preview, { ok: true }>;

function ExperimentPreview({ preview, onEdit }: { preview: Filed; onEdit: Edit }) {
  const { instrument, draft, omits, plot, mapping, doubts, tables, meta } = preview;
  return (
    <>
      <Draft
        {...draft}
        details={`${draft.date} (${draft.dateFrom}), instrument ${instrument}`}
        frame={{ srcdoc: asPage(draft.body) }}
      />
      {draft.comments.map((text, index) => (
        <TextPanel head={`Comment ${index + 1} of ${draft.comments.length}`} text={text} />
      ))}
      <PlotPanel plot={plot} />
      <Findings title="In the file, but not in the notebook" lines={omits} />
      <Findings title="Please check" lines={doubts} />
      {onEdit && <Mapping mapping={mapping} onEdit={onEdit} />}
      <h2>Values read from the file</h2>
      {meta.length > 0 && <Facts facts={meta.map(({ name, text, unit }) => [name, withUnit(text, unit)])} />}
      {tables.map((table) => (
        <Readings table={table} />
      ))}
    </>
  );
}

/** As an image, an SVG can neither run scripts nor load anything. */
const PlotPanel = ({ plot }: { plot: Filed['plot'] }) =>
  'svg' in plot ? (
    <div class="panel item">
      <h3>Plot</h3>
      <img class="plot" alt={plot.description} src={`data:image/svg+xml,${encodeURIComponent(plot.svg)}`} />
    </div>
  ) : (
    <Findings title="No plot" lines={[plot.reason]} />
  );

/** The frame inherits the page's policy: no scripts, no other styles, nothing from elsewhere. */
const asPage = (body: string): string => `<!doctype html><link rel="stylesheet" href="/page/paper.css">${body}`;

/** The text of a value may already end with its unit, perhaps in brackets. */
const withUnit = (text: string, unit: string | undefined): string =>
  unit === undefined || text.replace(/[\])]$/, '').endsWith(unit) ? text : `${text} ${unit}`;

const Findings = ({ title, lines }: { title: string; lines: readonly string[] }) =>
  lines.length === 0 ? null : (
    <div class="panel item">
      <h3>{title}</h3>
      <Lines lines={lines} class="doubts" />
    </div>
  );

function Mapping({ mapping, onEdit }: { mapping: string; onEdit: NonNullable<Edit> }) {
  const panel = useRef<HTMLDivElement>(null);
  const [outcome, setOutcome] = useState('');
  async function copy(): Promise<void> {
    try {
      // Browsers allow this on loopback addresses and over TLS only.
      await navigator.clipboard.writeText(mapping);
      setOutcome('Copied');
    } catch {
      const text = panel.current?.querySelector('pre');
      if (text) getSelection()?.selectAllChildren(text);
      setOutcome('Selected: press Ctrl+C to copy it');
    }
  }
  const head = (
    <>
      <button type="button" onClick={copy}>
        Copy mapping
      </button>{' '}
      {role === 'edit' && (
        <button type="button" class="primary" onClick={() => onEdit(mapping)}>
          Edit and save…
        </button>
      )}{' '}
      <span role="status">{outcome}</span>
    </>
  );
  return (
    <div ref={panel} class="mapping">
      <h2>Mapping</h2>
      <TextPanel head={head} text={mapping} />
    </div>
  );
}

function Readings({ table: { name, columns, rows, count } }: { table: PreviewTable }) {
  const shown = rows.length < count ? `, first ${formatCount(rows.length)} shown` : '';
  const caption = [<b>{name}</b>, ` ${plural(count, 'row')}${shown}`];
  const headings = columns.map(headingOf);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable with the keyboard
    <section class="panel table" tabIndex={0} aria-label={`Table ${name}`}>
      <Table caption={caption} columns={headings} rows={rows} />
    </section>
  );
}
