/** Small parts that several views use. */

import type { ComponentChildren } from "preact";
import { useErrorBoundary, useState } from "preact/hooks";
import type { Labels } from "../data/labels";
import { shapePoints } from "../draw/marker";
import { pageTextWidth } from "../draw/text";
import type { Stops } from "../draw/theme";
import { copyText } from "../host";
import { NOT_LOADED, type Resource, retry } from "../state/resource";
import { layerLabels, runLabels } from "../state/runs";
import { tables, toggleTable } from "../state/store";
import { useSize } from "./canvas";

const PATHS = {
  search: "M15.5 14h-.8l-.3-.3a6.5 6.5 0 1 0-.7.7l.3.3v.8l5 5 1.5-1.5zm-6 0a4.5 4.5 0 1 1 0-9 4.5 4.5 0 0 1 0 9z",
  link: "M3.9 12A3.1 3.1 0 0 1 7 8.9h4V7H7a5 5 0 0 0 0 10h4v-1.9H7A3.1 3.1 0 0 1 3.9 12zM8 13h8v-2H8zm9-6h-4v1.9h4a3.1 3.1 0 0 1 0 6.2h-4V17h4a5 5 0 0 0 0-10z",
  download: "M19 9h-4V3H9v6H5l7 7zM5 18v2h14v-2z",
  up: "M7.4 15.4 12 10.8l4.6 4.6L18 14l-6-6-6 6z",
  down: "M7.4 8.6 12 13.2l4.6-4.6L18 10l-6 6-6-6z",
  warning: "M1 21h22L12 2zm12-3h-2v-2h2zm0-4h-2v-4h2z",
  check: "M9 16.2 4.8 12l-1.4 1.4L9 19 21 7l-1.4-1.4z",
  close: "M19 6.4 17.6 5 12 10.6 6.4 5 5 6.4l5.6 5.6L5 17.6 6.4 19l5.6-5.6 5.6 5.6 1.4-1.4-5.6-5.6z",
  table: "M3 4v16h18V4zm8 14H5v-4h6zm0-6H5V8h6zm8 6h-6v-4h6zm0-6h-6V8h6z",
  menu: "M3 18h18v-2H3zm0-5h18v-2H3zm0-7v2h18V6z",
  pin: "M16 9V4h1V2H7v2h1v5l-2 3v2h5v6l1 2 1-2v-6h5v-2z",
  sort: "M3 18h6v-2H3zm0-5h12v-2H3zm0-7v2h18V6z",
  clock: "M12 2a10 10 0 1 0 0 20 10 10 0 0 0 0-20zm0 18a8 8 0 1 1 0-16 8 8 0 0 1 0 16zm1-13h-2v6l5 3 1-1.7-4-2.3z",
  chart: "M5 9h3v11H5zm5.5-5h3v16h-3zM16 13h3v7h-3z",
} as const;

export function Icon({ name, size = 18 }: { name: keyof typeof PATHS; size?: number }) {
  return (
    <svg class={`icon icon-${name}`} width={size} height={size} viewBox="0 0 24 24" aria-hidden="true">
      <path d={PATHS[name]} fill="currentColor" />
    </svg>
  );
}

/** A run's colour and shape. */
export function Marker({ color, shape, size = 11 }: { color: string; shape: number; size?: number }) {
  const points = shapePoints(shape);
  return (
    <svg class="marker" width={size} height={size} viewBox="-1.3 -1.3 2.6 2.6" aria-hidden="true">
      {points ? (
        <polygon points={points.map((point) => point.join(",")).join(" ")} fill={color} />
      ) : (
        <circle r="1.05" fill={color} />
      )}
    </svg>
  );
}

/** Letters of another size, or bold ones, need more or less room than those that labels are measured in. */
function lettersOf(element: Element): number {
  const { fontSize, fontWeight } = getComputedStyle(element);
  return (Number.parseFloat(fontSize) / 13) * (Number(fontWeight) > 550 ? 1.08 : 1);
}

/** A name as long as there is room for; no two of those that are shown together are cut to the same text. */
function Fitted({ name, labels }: { name: string; labels: Labels }) {
  const { ref, size } = useSize<HTMLElement>();
  const full = labels(Number.POSITIVE_INFINITY).get(name) ?? name;
  const room = ref.current && size.width > 0 ? (size.width + 1) / lettersOf(ref.current) : Number.POSITIVE_INFINITY;
  // The box is no wider than its own name, which may be short.
  const fits = pageTextWidth(full, 13) <= room;
  return (
    <bdi ref={ref} class="path" title={name} data-full={full}>
      <span class="name">{fits ? full : (labels(room).get(name) ?? name)}</span>
    </bdi>
  );
}

/** A run's name. */
export const RunName = ({ run }: { run: { name: string } }) => <Fitted name={run.name} labels={runLabels.value} />;

/** A layer's name. */
export const LayerName = ({ id }: { id: string }) => <Fitted name={id} labels={layerLabels.value} />;

/** A run's marker and name. */
export function RunLabel({ run }: { run: { name: string; color: string; shape: number } }) {
  return (
    <span class="run-label" title={run.name}>
      <Marker color={run.color} shape={run.shape} />
      <RunName run={run} />
    </span>
  );
}

interface ButtonProps {
  children: ComponentChildren;
  onClick: (event: MouseEvent) => void;
  pressed?: boolean;
  label?: string;
  title?: string;
  class?: string;
  disabled?: boolean;
}

export function Button({ pressed, label, title = label, class: own = "", ...rest }: ButtonProps) {
  const look = `button ${pressed ? "on" : ""} ${own}`;
  return <button type="button" class={look} aria-pressed={pressed} aria-label={label} title={title} {...rest} />;
}

interface SwitchProps<T extends string> {
  label: string;
  options: readonly T[];
  titles: Record<T, ComponentChildren>;
  value: T | undefined;
  /** Is given what isn't on yet. */
  onPick: (value: T) => void;
  hint?: (value: T) => string | undefined;
  disabled?: (value: T) => boolean;
  class?: string;
}

/** Buttons of which one is on. */
export function Switch<T extends string>({ label, options, titles, value, onPick, ...rest }: SwitchProps<T>) {
  const button = (option: T) => ({
    class: "under",
    pressed: value === option,
    title: rest.hint?.(option),
    disabled: rest.disabled?.(option),
    onClick: () => value !== option && onPick(option),
  });
  return (
    <div class={`joined ${rest.class ?? ""}`} role="group" aria-label={label}>
      {options.map((option) => (
        <Button key={option} {...button(option)}>
          {titles[option]}
        </Button>
      ))}
    </div>
  );
}

interface SelectProps<T extends string> {
  label?: string;
  title?: string;
  value: T;
  /** Values and what they are called. */
  options: readonly (readonly [T, string])[];
  onPick: (value: T) => void;
  class?: string;
  /** More options. */
  children?: ComponentChildren;
}

export function Select<T extends string>({ label, options, onPick, children, ...rest }: SelectProps<T>) {
  return (
    <select {...rest} aria-label={label} onChange={(event) => onPick(event.currentTarget.value as T)}>
      {options.map(([value, text]) => (
        <option key={value} value={value}>
          {text}
        </option>
      ))}
      {children}
    </select>
  );
}

/** Says why something isn't there, with Retry. */
export function Failure({ text, onRetry }: { text: string; onRetry?: () => void }) {
  const again = () => {
    onRetry?.();
    retry();
  };
  return (
    <div class="failure" role="alert">
      <p>{text}</p>
      <Button onClick={again}>Retry</Button>
    </div>
  );
}

/** Keeps the rest of the page when a part of it can't be drawn. */
export function Guard({ children }: { children: ComponentChildren }) {
  const [error, reset] = useErrorBoundary();
  if (!error) return <>{children}</>;
  return <Failure text={`Could not draw this: ${(error as Error).message}`} onRetry={reset} />;
}

/** An answer, and whose it is: "" for that of the whole part; null where none is needed. */
export type Named = readonly [name: string, answer: Resource<unknown> | null];

const clock = (at: number): string => new Date(at).toLocaleTimeString();
const distinct = (texts: readonly (string | null)[]): string => [...new Set(texts)].filter(Boolean).join(" ");

/** "As of 12:03:20. Could not reach TensorBoard's server." */
const oldText = (old: readonly Resource<unknown>[]): string =>
  `As of ${clock(Math.min(...old.map(({ at }) => at)))}. ${distinct(old.map(({ error }) => error))}`;

/** What of a part isn't loaded, and since when what it shows is old, with Retry; nothing where all is fresh. */
export function Status({ of }: { of: readonly Named[] }) {
  const failed = of.flatMap(([name, answer]) => (answer && answer.error !== null ? [{ name, answer }] : []));
  const lacking = failed.filter(({ answer }) => answer.value === null);
  const old = failed.filter(({ answer }) => answer.value !== null);
  const names = lacking.map(({ name }) => name).join(", ");
  return (
    <>
      {lacking.length > 0 ? (
        <Failure
          text={`${names ? `${names}: ${NOT_LOADED}. ` : ""}${distinct(lacking.map(({ answer }) => answer.error))}`}
        />
      ) : null}
      {old.length > 0 ? (
        <p class="old" role="status">
          <Icon name="clock" size={14} /> {oldText(old.map(({ answer }) => answer))}{" "}
          <button type="button" class="plain linked" onClick={retry}>
            Retry
          </button>
        </p>
      ) : null}
    </>
  );
}

/** The same of a whole part, whose place is kept while it loads. */
export function Waiting({ answer, height }: { answer: Resource<unknown>; height: number }) {
  if (!answer.value && !answer.error) return <Skeleton height={height} />;
  return <Status of={[["", answer]]} />;
}

/** The same within a line: what isn't loaded, and Retry. */
export const Lost = ({ why, what = NOT_LOADED }: { why: string; what?: string }) => (
  <span class="lost" title={why}>
    {what}{" "}
    <button type="button" class="plain linked" onClick={retry}>
      Retry
    </button>
  </span>
);

/** The same as a sign: of what is shown there, some is old. Without room, the time is in its title only. */
export function OldSign({ of, small }: { of: readonly (Resource<unknown> | null)[]; small?: boolean }) {
  const old = of.flatMap((answer) => (answer && answer.value !== null && answer.error !== null ? [answer] : []));
  if (old.length === 0) return null;
  return (
    <button type="button" class="plain old" title={`${oldText(old)} Retry.`} onClick={retry}>
      <Icon name="clock" size={12} /> {small ? "" : clock(Math.min(...old.map(({ at }) => at)))}
      <span class="offscreen">{oldText(old)} Retry.</span>
    </button>
  );
}

/** What to keep in mind about a panel: a line each, as far as it applies. */
export const Notes = ({ texts }: { texts: readonly (string | false | null)[] }) => (
  <>{texts.map((text) => text && <p class="note">{text}</p>)}</>
);

/** A scale of colours, from its low to its high end. */
export const Gradient = ({ stops }: { stops: Stops }) => (
  <i class="gradient" style={{ background: `linear-gradient(to right, ${stops.join()})` }} />
);

export function Skeleton({ height }: { height?: number }) {
  return <div class="skeleton" style={height ? { height: `${height}px` } : undefined} aria-hidden="true" />;
}

/** Switches a panel between its picture and its table. */
export function TableButton({ panel, what }: { panel: string; what: string }) {
  const on = tables.value.has(panel);
  return (
    <Button
      class="small"
      pressed={on}
      label={on ? `Show ${what} as a picture` : `View ${what} as a table`}
      onClick={() => toggleTable(panel)}
    >
      <Icon name={on ? "chart" : "table"} size={16} />
    </Button>
  );
}

const MOST_ROWS = 2000;

interface TableProps {
  caption: string;
  columns: readonly string[];
  /** Those of the columns that hold texts. */
  texts: readonly string[];
  rows: (string | number)[][];
}

/** A plain table; numbers are right-aligned, the first column names the row. Very long ones are cut, and say so. */
export function DataTable({ caption, columns, texts, rows }: TableProps) {
  const look = (title: string) => ({ key: title, class: texts.includes(title) ? "text" : "" });
  const cellOf = (cell: string | number, i: number) => {
    const props = { ...look(columns[i]), children: cell };
    return i === 0 ? <th scope="row" {...props} /> : <td {...props} />;
  };
  return (
    <div class="table-scroll" role="region" aria-label={caption} tabIndex={0}>
      <table>
        <caption>
          {caption}
          {rows.length > MOST_ROWS ? ` (the first ${MOST_ROWS} of ${rows.length} rows; the CSV has all)` : ""}
        </caption>
        <thead>
          <tr>
            {columns.map((title) => (
              <th scope="col" {...look(title)}>
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.slice(0, MOST_ROWS).map((row, r) => (
            <tr key={r}>{row.map(cellOf)}</tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Lines of code, and a button that copies them. */
export function CopyLines({ lines, what }: { lines: readonly string[]; what: string }) {
  const [copied, setCopied] = useState(false);
  return (
    <>
      <pre>{lines.join("\n")}</pre>
      <Button onClick={() => void copyText(lines.join("\n")).then(setCopied)}>
        <Icon name={copied ? "check" : "link"} /> {copied ? "Copied" : `Copy the ${what}`}
      </Button>
    </>
  );
}

const effects = new WeakMap<HTMLElement, KeyframeEffect>();

/**
 * Moves the element that it gets as a `ref`, without a new layout, paint or composition of the page. It moves to whole
 * pixels: text and lines stay sharp.
 *
 * It uses a paused animation: if a transform of the style itself changes, Chromium composes all layers again.
 */
export const movedTo = (x: number, y: number) => (element: HTMLElement | null) => {
  if (!element) return;
  const place = `translate(${Math.round(x)}px, ${Math.round(y)}px)`;
  const keyframes = { transform: [place, place] };
  const moving = effects.get(element);
  if (moving) return moving.setKeyframes(keyframes);
  const effect = new KeyframeEffect(element, keyframes, 1);
  new Animation(effect).pause();
  effects.set(element, effect);
};
