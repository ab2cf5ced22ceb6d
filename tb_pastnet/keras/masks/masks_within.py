"""The masks that a model's parts carry, as one table by the names of the whole.

A backbone that has masks of its own may lie in another model, which is the one that is recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import keras

from tb_pastnet.keras.masks.enforcer import attached
from tb_pastnet.keras.masks.mask_state import MaskState
from tb_pastnet.keras.model.weights import TFWeight
from tb_pastnet.record.masks.mask_table import MaskTable


class MasksWithin(MaskTable):
    """Several tables, of which each holds some of the weights."""

    def __init__(self, tables: Sequence[MaskTable], weights: Sequence[TFWeight]) -> None:
        self.tables = tuple(tables)
        self._names = {id(weight.variable): weight.name for weight in weights}
        self._weights = {weight.name: weight for weight in weights}

    @property
    def version(self) -> int:  # type: ignore[override]  # read alone, as all of these
        """See `MaskTable`."""
        return sum(table.version for table in self.tables)

    @property
    def generation(self) -> int:  # type: ignore[override]
        """See `MaskTable`."""
        return sum(table.generation for table in self.tables)

    @property
    def origin(self) -> str:  # type: ignore[override]
        """Of the whole it is found from its own values."""
        return ""

    @property  # type: ignore[misc]
    def keeper(self) -> Any:
        """See `MaskTable`: the first that holds."""
        keepers = [table.keeper for table in self.tables]
        return next((each for each in keepers if each is not None and each.enforces), keepers[0])

    @property
    def weights(self) -> Mapping[str, Any]:
        """See `MaskTable`."""
        return self._weights

    @property
    def masked(self) -> Mapping[str, Any]:
        """See `MaskTable`."""
        storages = (each for table in self.tables for each in table.masked.values())
        return {
            self._names[id(each.variable)]: each
            for each in storages
            if id(each.variable) in self._names
        }

    def storage_of(self, variable: Any) -> Any:
        """See `MaskTable`."""
        found = (table.storage_of(variable) for table in self.tables)
        return next((storage for storage in found if storage is not None), None)

    def keep_origin(self, find: Callable[[], str]) -> None:
        """Nothing: it is that of the whole, and the parts have theirs."""

    def settle(self) -> None:
        """See `MaskTable`."""
        for table in self.tables:
            table.settle()

    def observed_by(self, observe: Callable[[], None]) -> None:
        """See `MaskTable`."""
        for table in self.tables:
            table.observed_by(observe)


def masks_within(model: Any, weights: Sequence[TFWeight]) -> Callable[[], MaskTable | None]:
    """Gives the masks of a model and of its parts; quick, as it is asked at each step."""
    seen: tuple[int, MaskTable | None] = -1, None

    def find() -> MaskTable | None:
        nonlocal seen
        if seen[0] != MaskState.attached:
            seen = MaskState.attached, _tables(model, weights)
        return seen[1]

    return find


def _tables(model: Any, weights: Sequence[TFWeight]) -> MaskTable | None:
    own = attached(model)
    layers = model._flatten_layers() if isinstance(model, keras.layers.Layer) else ()
    carried = (own, *map(attached, layers))
    tables = list({id(table): table for table in carried if table is not None}.values())
    return own if tables in ([], [own]) else MasksWithin(tables, weights)
