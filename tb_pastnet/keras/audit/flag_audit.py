"""The part of an audit that Keras's `trainable` flags decide."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from tb_pastnet.core.violation import MOVING_STATISTICS
from tb_pastnet.keras.model.walk import Found
from tb_pastnet.keras.model.weights import FoundWeight, TrainableFlags
from tb_pastnet.record.audit.freeze_audit import AuditSource, Held
from tb_pastnet.record.weight import Array

_MEND = "set trainable = False on these layers and compile again to stop that"


class FlagAudit(AuditSource):
    """Reads the flags of `weights`, and notes statistics that move in frozen layers.

    Statistics, such as a moving mean, still move in training mode. They are compared with their
    values when the layer was frozen: by its own flag, or because all its weights are held.
    """

    def __init__(
        self,
        weights: Sequence[FoundWeight],
        current: Callable[[], Mapping[str, Array]] = dict,
    ) -> None:
        # Computed weights move with their parts.
        self.weights = [each for each in weights if not (each.statistic or each.found.computed)]
        self._flags = TrainableFlags([weight.found for weight in self.weights])
        self._trained: dict[str, list[str]] = defaultdict(list)
        for each in self.weights:
            self._trained[each.layer].append(each.name)
        self._statistics = [each for each in weights if each.statistic and not each.text.follows]
        self._layer_flags = TrainableFlags([_of_layer(each.found) for each in self._statistics])
        # Values by name if many are read at once; others are read one by one.
        self._current = current
        self._references: dict[str, bytes] = {}
        self._noted: set[str] = set()

    def quick_key(self) -> tuple[bool, ...]:
        """See `AuditSource`."""
        return *self._flags.quick_key(), *self._layer_flags.quick_key()

    def trainable(self) -> list[bool]:
        """See `AuditSource`."""
        return self._flags.read()

    def follow_statistics(self, held: Mapping[str, Held]) -> None:
        """See `AuditSource`."""
        for weight, trains in zip(self._statistics, self._layer_flags.read(), strict=True):
            names = self._trained.get(weight.layer, ())
            if not trains or (names and all(_is_whole(held.get(name)) for name in names)):
                if weight.name not in self._references:
                    self._references[weight.name] = _bits(weight.read())
            else:
                self._references.pop(weight.name, None)

    def notes(self) -> list[str]:
        """See `AuditSource`: on layers whose statistics have moved, each layer once."""
        values = self._current() if self._references else {}
        moved = {
            weight.layer: None
            for weight in self._statistics
            if weight.layer not in self._noted and self._has_moved(weight, values)
        }
        self._noted.update(moved)
        layers = ", ".join(map(repr, [*moved][:3]))
        return [f"{MOVING_STATISTICS}, e.g. {layers}: {_MEND}"] if moved else []

    def _has_moved(self, weight: FoundWeight, values: Mapping[str, Array]) -> bool:
        reference = self._references.get(weight.name)
        if reference is None:
            return False
        value = values.get(weight.name)
        return _bits(weight.read() if value is None else value) != reference


def _of_layer(found: Found) -> Found:
    """With the flags of its layer: its own is never set."""
    return replace(found, statistic=found.owner is None, given=found.owner)


def _is_whole(held: Held | None) -> bool:
    return held is not None and (held.flagged or bool(held.flags().all()))


def _bits(value: Array) -> bytes:
    return np.asarray(value).tobytes()
