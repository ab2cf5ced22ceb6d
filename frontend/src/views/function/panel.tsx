/** A panel of the Function view: its head, and its picture or its table. */

import type { ComponentChildren } from "preact";
import { TableButton } from "../../parts/widgets";
import { tables } from "../../state/store";

interface Props {
  /** Part of its class, and the name of its table. */
  name: string;
  title: string;
  /** Beside the title. */
  head: ComponentChildren;
  table: () => ComponentChildren;
  children: ComponentChildren;
}

export function FunctionPanel({ name, title, head, table, children }: Props) {
  const panel = `function-${name}`;
  return (
    <section class={`panel fn-panel fn-${name}`} aria-label={title}>
      <header>
        <h2>{title}</h2>
        {head}
        <TableButton panel={panel} what={`“${title}”`} />
      </header>
      {tables.value.has(panel) ? table() : children}
    </section>
  );
}
