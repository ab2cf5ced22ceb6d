/** The order of the channels: by what they did in this run, or in another one. */

import { ORDER_TITLES, ORDERS, type Order } from "../data/sort";
import { orderRun } from "../state/rows";
import { layerIn, type Run, shownRuns } from "../state/runs";
import { order, update } from "../state/store";

const OF = "of ";

export function SortMenu({ run, layer }: { run: Run | null; layer: string | null }) {
  const other = run && layer !== null ? orderRun(run, layer) : null;
  const channels = run && layer !== null ? layerIn(run, layer)?.channels : undefined;
  const others = shownRuns.value.filter(
    (one) => one.name !== run?.name && layer !== null && layerIn(one, layer)?.channels === channels,
  );
  const title = ORDER_TITLES[order.value];
  return (
    <select
      class={`sort ${other ? "long" : ""}`}
      aria-label="Order of the channels"
      value={other ? `${OF}${other.name}` : order.value}
      onChange={(event) => {
        const { value } = event.currentTarget;
        if (value.startsWith(OF)) update({ rowsOf: value.slice(OF.length) });
        else update({ order: value as Order, rowsOf: null });
      }}
    >
      {ORDERS.map((value) => (
        <option key={value} value={value}>
          Sort: {ORDER_TITLES[value]}
        </option>
      ))}
      {others.length > 0 && order.value !== "index" ? (
        <optgroup label={`${title}, as in`}>
          {others.map((one) => (
            <option key={one.name} value={`${OF}${one.name}`}>
              Sort: {title} in {one.name}
            </option>
          ))}
        </optgroup>
      ) : null}
    </select>
  );
}
