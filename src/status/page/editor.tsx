import { useEffect, useId, useRef, useState } from 'preact/hooks';
import type { DecisionAnswer, Preview } from '../api.js';
import { fetchInstrument, fetchSchema, postInstrument } from './client.js';
import { type Completion, complete, type Schema } from './completion.js';
import { Lines, Reason } from './parts.js';

/** A mapping that is being edited. */
export interface EditedMapping {
  readonly text: string;
  /** The hash of the file that it replaces; undefined for a new instrument. */
  readonly replaces: string | undefined;
}

type Previewed = Extract<Preview, { ok: true }>;

/** Opens the file of the instrument if it has one, else begins with what was learned. */
export async function openMapping(instrument: string | undefined, mapping: string): Promise<EditedMapping> {
  const file = instrument === undefined ? undefined : await fetchInstrument(instrument).catch(() => undefined);
  return file ? { text: file.text, replaces: file.hash } : { text: `${mapping.trimEnd()}\n`, replaces: undefined };
}

/** The name of the first instrument in the text. */
const nameIn = (text: string): string | undefined =>
  /^instruments:[^\n]*\n(?:\s*#[^\n]*\n)*\s+["']?([^"':\n]+)["']?\s*:/m.exec(text)?.[1];

interface EditorProps {
  draft: EditedMapping;
  sample: File;
  preview: Preview | undefined;
  onChange: (draft: EditedMapping) => void;
  /** Called with the hash of the file. What was typed meanwhile stays. */
  onSaved: (hash: string) => void;
  onClose: () => void;
}

export function MappingEditor({ draft, sample, preview, onChange, onSaved, onClose }: EditorProps) {
  const [outcome, setOutcome] = useState<DecisionAnswer>();
  const [isBusy, setBusy] = useState(false);
  const name = nameIn(draft.text);
  async function save(): Promise<void> {
    if (isBusy) return;
    setBusy(true);
    const answer = await postInstrument(sample, draft.text, draft.replaces).catch(
      (error: Error): DecisionAnswer => ({ done: false, text: error.message }),
    );
    setOutcome(answer);
    if (answer.done && name !== undefined) onSaved((await fetchInstrument(name)).hash);
    setBusy(false);
  }
  return (
    <section class="editor" aria-labelledby="editor-title">
      <h2 id="editor-title">Mapping</h2>
      <p class="soft">
        For <code>watch</code>, write the folder that the instrument writes to. The preview follows what you type.
      </p>
      <CompletingText text={draft.text} onInput={(text) => onChange({ ...draft, text })} />
      <div class="actions">
        <button type="button" class="primary" aria-disabled={isBusy} onClick={save}>
          Save {name === undefined ? 'instrument' : name}
        </button>
        <button
          type="button"
          aria-disabled={!preview?.ok}
          onClick={() => preview?.ok && onChange({ ...draft, text: withTest(draft.text, sample.name, preview) })}
        >
          Add a test
        </button>
        <button type="button" onClick={onClose}>
          Close the editor
        </button>
      </div>
      <div role="status">
        {outcome && (
          <div class={`panel item ${outcome.done ? '' : 'bad'}`}>
            <h3>{outcome.done ? 'Saved' : 'Not saved'}</h3>
            <Reason reason={outcome.text} path="" />
          </div>
        )}
      </div>
      {preview?.ok && <TestResults tests={preview.tests} />}
    </section>
  );
}

const TestResults = ({ tests }: Pick<Previewed, 'tests'>) => (
  <>
    {tests.map(({ file, failures }) => (
      <div class={`panel item ${failures.length === 0 ? '' : 'bad'}`}>
        <h3>{failures.length === 0 ? `The test of ${file} passes` : `The test of ${file} fails`}</h3>
        <Lines lines={failures} class="doubts" />
      </div>
    ))}
  </>
);

/**
 * A test that expects what the preview shows. The sample is kept beside the mapping when it is saved, in a folder of the
 * instrument: another one may have a sample of the same name.
 */
function withTest(text: string, sample: string, { draft: { title, date }, tables }: Previewed): string {
  const readings = tables[0] ? `, readings: ${tables[0].count}` : '';
  const quote = JSON.stringify;
  const test = [
    `      - file: ${quote(['samples', nameIn(text) ?? [], sample].flat().join('/'))}`,
    `        expect: { title: ${quote(title)}, date: ${quote(date)}${readings} }`,
  ].join('\n');
  const list = /^ {4}tests:[ ]*\n/m;
  return list.test(text)
    ? text.replace(list, (line) => `${line}${test}\n`)
    : `${text.trimEnd()}\n    tests:\n${test}\n`;
}

/** A text field that completes keys and values: arrow keys choose, Enter or Tab accepts, Escape closes the list. */
function CompletingText({ text, onInput }: { text: string; onInput: (text: string) => void }) {
  const area = useRef<HTMLTextAreaElement>(null);
  const list = useId();
  const [schema, setSchema] = useState<Schema>({});
  const [completion, setCompletion] = useState<Completion>();
  const [chosen, setChosen] = useState(0);
  /** Where the cursor goes once the text has changed. */
  const cursor = useRef<number | undefined>(undefined);
  useEffect(() => {
    fetchSchema().then(setSchema, () => undefined);
  }, []);
  useEffect(() => {
    if (cursor.current === undefined) return;
    area.current?.setSelectionRange(cursor.current, cursor.current);
    cursor.current = undefined;
  }, [text]);
  useEffect(() => {
    // Somebody may type before the schema is there.
    if (area.current && document.activeElement === area.current) open(text, area.current.selectionEnd, false);
  }, [schema]);
  const suggestions = completion?.suggestions ?? [];

  function open(value: string, at: number, isAsked: boolean): void {
    const found = complete(schema, value, at);
    setChosen(0);
    setCompletion(isAsked || found.from < at ? found : undefined);
  }
  function accept(index: number): void {
    const word = suggestions[index]?.text;
    if (completion === undefined || word === undefined || !area.current) return;
    const end = area.current.selectionEnd;
    cursor.current = completion.from + word.length;
    onInput(text.slice(0, completion.from) + word + text.slice(end));
    setCompletion(undefined);
    area.current.focus();
  }
  function press(event: KeyboardEvent): void {
    if (event.key === ' ' && event.ctrlKey && area.current) {
      event.preventDefault();
      open(text, area.current.selectionEnd, true);
      return;
    }
    if (suggestions.length === 0) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) setChosen((chosen + step + suggestions.length) % suggestions.length);
    else if (event.key === 'Enter' || event.key === 'Tab') accept(chosen);
    else if (event.key === 'Escape') setCompletion(undefined);
    else return;
    event.preventDefault();
  }
  return (
    <div class="completing">
      <label for="mapping-text">Mapping as YAML (press Ctrl+Space for suggestions)</label>
      <textarea
        ref={area}
        id="mapping-text"
        value={text}
        rows={22}
        spellcheck={false}
        wrap="off"
        aria-controls={list}
        aria-autocomplete="list"
        {...(suggestions.length > 0 && { 'aria-activedescendant': `${list}-${chosen}` })}
        onKeyDown={press}
        onBlur={() => setCompletion(undefined)}
        onInput={({ currentTarget: { value, selectionEnd } }) => {
          onInput(value);
          open(value, selectionEnd, false);
        }}
      />
      <div
        id={list}
        role="listbox"
        aria-label="Suggestions"
        class="panel suggestions"
        hidden={suggestions.length === 0}
      >
        {suggestions.map(({ text: word, meaning }, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the text field handles the keys
          // biome-ignore lint/a11y/useFocusableInteractive: the focus stays in the text field
          <div
            key={word}
            id={`${list}-${index}`}
            role="option"
            aria-selected={index === chosen}
            onMouseDown={(event) => event.preventDefault()}
            onClick={() => accept(index)}
          >
            <b>{word}</b> <span class="soft">{meaning}</span>
          </div>
        ))}
      </div>
    </div>
  );
}
