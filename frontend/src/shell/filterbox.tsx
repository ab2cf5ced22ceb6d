/** A regex filter. An invalid pattern is underlined; the last valid one applies. */

import { Icon } from "../parts/widgets";
import { grouping, layerFilter, runFilter, update } from "../state/store";

const FILTERS = { runFilter, layerFilter, grouping };

export function FilterBox({ id, label, field }: { id: string; label: string; field: keyof typeof FILTERS }) {
  const filter = FILTERS[field].value;
  return (
    <div class="filter">
      <Icon name="search" size={20} />
      <input
        id={id}
        type="text"
        spellcheck={false}
        autocomplete="off"
        placeholder={label}
        aria-label={label}
        aria-invalid={!filter.valid}
        aria-describedby={filter.valid ? undefined : `${id}-error`}
        class={filter.valid ? "" : "wrong"}
        value={filter.text}
        onInput={(event) => update({ [field]: event.currentTarget.value })}
        onKeyDown={(event) => {
          if (event.key === "Escape") event.currentTarget.blur();
        }}
      />
      {filter.valid ? null : (
        <span id={`${id}-error`} class="filter-error" role="status">
          Invalid pattern; the last valid one applies
        </span>
      )}
    </div>
  );
}
