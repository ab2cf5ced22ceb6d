"""Masks of all variables as a mapping by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tb_pastnet.core.names import resolve
from tb_pastnet.keras.masks.hold import Mask
from tb_pastnet.keras.masks.table import MaskTable


class MaskView(Mapping[str, Mask]):
    """One mask of every variable, by name or by the end of one."""

    def __init__(self, state: MaskTable, which: int) -> None:
        self._state = state
        self._which = which

    def __getitem__(self, name: str) -> Mask:
        return self._state.read(resolve(name, self._state.variables))[self._which]

    def __iter__(self) -> Iterator[str]:
        return iter(self._state.variables)

    def __len__(self) -> int:
        return len(self._state.variables)
