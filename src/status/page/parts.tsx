import { type ComponentChildren, createContext } from 'preact';
import { useContext, useEffect, useRef } from 'preact/hooks';
import { splitHint } from '../../errors.js';
import type { RunState } from '../../model.js';
import { asSentence, formatTime, relativeTime, withoutPath } from '../../text.js';
import type { Job } from '../api.js';
import { runHref } from './route.js';
import { fileName } from './summary.js';

/** Components used by several views. Text from files, people and servers is only ever rendered as text. */

/** The time by the server's clock; the clock of this machine may be wrong. */
export const Now = createContext(0);

/** The address that somebody navigated to; undefined until then. */
export const Navigation = createContext<string | undefined>(undefined);

/** Whether the notebook is not available, so that nothing is being sent. */
export const IsAway = createContext(false);

/** The heading of a view. Navigating to the view moves the focus here, for keyboards and screen readers. */
export function ViewTitle({ children }: { children: ComponentChildren }) {
  const heading = useRef<HTMLHeadingElement>(null);
  const address = useContext(Navigation);
  useEffect(() => {
    // A filter that was just changed keeps the focus, so that it can be changed again.
    const { activeElement } = document;
    const isFilter = activeElement instanceof HTMLSelectElement || activeElement instanceof HTMLInputElement;
    if (address !== undefined && !isFilter) heading.current?.focus({ preventScroll: true });
  }, [address]);
  return (
    <h1 ref={heading} tabIndex={-1}>
      {children}
    </h1>
  );
}

/** A sign beside the word, for people who cannot tell the colours apart; and what the word means. */
const STATES: Readonly<Record<RunState, readonly [sign: string, meaning: string]>> = {
  waiting: ['•', 'the file is not ready yet'],
  queued: ['•', 'waiting to be sent'],
  sending: ['→', 'delivery has started'],
  done: ['✓', 'filed in the notebook'],
  quarantined: ['!', 'cannot be filed as it is'],
  held: ['?', 'needs a decision'],
  ignored: ['–', 'set aside'],
};

/** The word for a state. Nothing is being sent while the notebook is away. */
export const labelOf = (state: RunState, isAway: boolean): string =>
  state === 'sending' && isAway ? 'waiting for the notebook' : state;

export function StateChip({ state, label }: { state: RunState; label?: string }) {
  const isAway = useContext(IsAway);
  const shown = label ?? labelOf(state, isAway);
  const [sign, meaning] = STATES[state === 'sending' && isAway ? 'queued' : state];
  return (
    <span class={`chip ${state}`} title={`${shown}: ${meaning}`}>
      <span class="sign" aria-hidden="true">
        {sign}
      </span>
      {shown}
    </span>
  );
}

export function Ago({ at }: { at: number }) {
  const now = useContext(Now);
  return (
    <time dateTime={new Date(at).toISOString()} title={formatTime(at)}>
      {relativeTime(Math.min(at, now), now)}
    </time>
  );
}

/** The title in the notebook, else the name of the file. */
export const nameOf = ({ id, title, path }: Job): string => title || (path && fileName(path)) || `Run ${id}`;

export const RunLink = ({ job }: { job: Job }) => (
  <a href={runHref(job.id)} class="run">
    {nameOf(job)}
  </a>
);

/** A link to a server, if the address is one that a browser opens as a page. */
export function ServerLink({ url, children }: { url: string; children: string }) {
  if (!/^https?:\/\//i.test(url)) return children;
  return (
    <a href={url} target="_blank" rel="noreferrer">
      {children}
    </a>
  );
}

/** Opens the experiment in the notebook. */
export function ExperimentLink({ job: { experiment, server } }: { job: Job }) {
  if (experiment === undefined) return null;
  const url = `${server?.replace(/\/$/, '')}/experiments.php?mode=view&id=${experiment}`;
  return <ServerLink url={url}>{`Experiment ${experiment}`}</ServerLink>;
}

export const Hint = ({ children }: { children: string }) => (
  <p class="todo">
    <b>What to do: </b>
    {children}
  </p>
);

/** A reason in one line, without what to do about it. */
export const shortReason = (reason: string, path: string): string =>
  asSentence(withoutPath(splitHint(reason).what, path).split('\n')[0] ?? '');

/** A reason and what to do about it. The file is named beside it, so the reason gives only the place in it. */
export function Reason({ reason, path }: { reason: string; path: string }) {
  const { what, hint } = splitHint(reason);
  return (
    <div class="reason">
      <p>{asSentence(withoutPath(what, path))}</p>
      {hint !== undefined && <Hint>{hint}</Hint>}
    </div>
  );
}

/** Names and values; facts without a value are left out. */
export const Facts = ({ facts }: { facts: readonly (readonly [string, ComponentChildren])[] }) => (
  <dl class="facts">
    {facts
      .filter(([, value]) => value !== undefined && value !== '')
      .map(([name, value]) => (
        <div>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
  </dl>
);

export const Lines = ({ lines, class: name = 'plain' }: { lines: readonly string[]; class?: string }) => (
  <ul class={name}>
    {lines.map((line) => (
      <li>{line}</li>
    ))}
  </ul>
);

interface TableProps {
  caption?: ComponentChildren;
  columns: readonly string[];
  rows: readonly (readonly string[])[];
}

export const Table = ({ caption, columns, rows }: TableProps) => (
  <table>
    {caption && <caption>{caption}</caption>}
    <thead>
      <tr>
        {columns.map((name) => (
          <th scope="col">{name}</th>
        ))}
      </tr>
    </thead>
    <tbody>
      {rows.map((row) => (
        <tr>
          {row.map((cell) => (
            <td>{cell}</td>
          ))}
        </tr>
      ))}
    </tbody>
  </table>
);

interface SelectProps {
  id: string;
  label: string;
  value: string;
  options: readonly (readonly [value: string, label: string])[];
  onSelect: (value: string) => void;
}

export const Select = ({ id, label, value, options, onSelect }: SelectProps) => (
  <label for={id}>
    {label}
    <select id={id} value={value} onChange={({ currentTarget }) => onSelect(currentTarget.value)}>
      {options.map(([value, label]) => (
        <option key={value} value={value}>
          {label}
        </option>
      ))}
    </select>
  </label>
);

interface DraftProps {
  title: string;
  details: string;
  tags: readonly string[];
  body: string;
  frame: { src: string } | { srcdoc: string };
}

/** An experiment. Its body is in a sandboxed frame, which runs no scripts and loads nothing from elsewhere. */
export function Draft({ title, details, tags, body, frame }: DraftProps) {
  // A sandboxed frame cannot be measured, so its height is estimated; people can resize it.
  const lines = body.match(/<(?:p|tr|h\d|li|br|pre|div)\b/gi)?.length ?? 0;
  const height = `${Math.min(Math.max(9, 3 + 2.3 * lines), 32)}rem`;
  return (
    <div class="panel draft">
      <h3>{title}</h3>
      <p class="soft">
        {details}
        {tags.map((tag) => (
          <span class="tag">{tag}</span>
        ))}
      </p>
      <iframe class="body" title={`Body of ${title}`} sandbox="" style={{ height }} {...frame} />
    </div>
  );
}

export const TextPanel = ({ head, text }: { head: ComponentChildren; text: string }) => (
  <figure class="panel comment">
    <figcaption>{head}</figcaption>
    {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable with the keyboard */}
    <pre tabIndex={0}>{text}</pre>
  </figure>
);
