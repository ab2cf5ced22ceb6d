"""Where commands on masks are looked up, checked and put in force."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

from tb_pastnet.core.names import resolve
from tb_pastnet.core.rules import Values
from tb_pastnet.core.selection import Mask
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.record.masks.mask_table import MaskTable
from tb_pastnet.record.masks.weight_masks import WeightMasks
from tb_pastnet.record.weight import Weight


class Enforcer(Protocol):
    """Puts changes of masks in force."""

    def enforce_now(self, masks: Any, *, first: bool) -> None:
        """After a storage of masks has changed; `first` where it was made just now."""

    def clear_slots(self, variable: Any, where: Mask) -> None:
        """Sets what optimizers keep of some elements to what it is of new weights."""


class MaskEditor:
    """Reads and writes the masks of one model.

    Args:
        table: the masks.
        enforcer: puts changes in force.
        refuse: raises where a framework can't hold a weight; None: it holds all.
        at_once: makes a context around a command in which nothing else changes variables.
    """

    def __init__(
        self,
        table: MaskTable,
        enforcer: Enforcer,
        refuse: Callable[[Any], None] | None = None,
        at_once: Callable[[], AbstractContextManager[Any]] = nullcontext,
    ) -> None:
        self.table = table
        self.enforcer = enforcer
        self.at_once = at_once
        self._refuse = refuse

    def weight(self, name: str) -> EditedWeight:
        """The weight that a name means; raises UnknownName."""
        return EditedWeight(self, self.table.weights[resolve(name, self.table.weights)])

    def prunable(self, names: Iterable[str] | None) -> list[EditedWeight]:
        """The named weights, each once; None: all kernels of layers that own no masks.

        Raises before any of them is changed, where a mask could not hold one.
        """
        if names is None:
            weights = [
                EditedWeight(self, weight)
                for weight in self.table.weights.values()
                if weight.role == "kernel" and weight.masks() is None
            ]
        else:
            names = [names] if isinstance(names, str) else names
            weights = list({each.label: each for each in map(self.weight, names)}.values())
        for edited in weights:
            self.refuse(edited.weight)
        return weights

    def counted(self, name: str | None) -> list[EditedWeight]:
        """What sparsity is counted over: one weight, or all kernels and what else is pruned."""
        if name is not None:
            return [self.weight(name)]
        weights = [EditedWeight(self, weight) for weight in self.table.weights.values()]
        return [each for each in weights if each.role == "kernel" or each.pruned]

    def refuse(self, weight: Weight) -> None:
        """Raises where a mask would not hold what a layer computes with.

        Raises:
            InvalidArgument: it is a statistic, has masks of its own, or the framework can't hold
                it.
        """
        if weight.statistic:
            expected, got = "a weight that an optimizer trains", "a statistic that its layer writes"
            raise unmaskable(weight.name, expected, got, "Choose another one.")
        if weight.masks() is not None:
            expected, got = "a weight without masks", "one of a layer that owns its masks"
            raise unmaskable(weight.name, expected, got, "Call the layer's own prune and freeze.")
        if self._refuse is not None:
            self._refuse(weight)


class EditedWeight(WeightMasks):
    """A weight of a model, with the masks that stand beside it."""

    def __init__(self, editor: MaskEditor, weight: Weight) -> None:
        self.weight = weight
        self.label = weight.name
        self.role = weight.role
        self.axis = weight.axis
        self._editor = editor

    @property
    def pruned(self) -> bool:
        """Whether something of it is pruned."""
        masked = self.label in self._editor.table.masked or self.weight.masks() is not None
        return masked and not self.kept.all()

    def read(self) -> tuple[Mask, Mask]:
        """See `WeightMasks`."""
        return self._editor.table.read(self.label)

    def values(self) -> Values:
        """See `WeightMasks`."""
        values: Values = self.weight.effective()
        return values

    def renew(self, elements: Mask) -> None:
        """See `WeightMasks`."""
        self._editor.enforcer.clear_slots(self.weight.variable, elements)

    def write(self, kept: Mask, trainable: Mask) -> None:
        """See `WeightMasks`."""
        table, name = self._editor.table, self.label
        first = name not in table.masked
        if not (kept & trainable).all():
            self._editor.refuse(self.weight)
        elif first:
            return
        table.write(name, kept, trainable)
        self._editor.enforcer.enforce_now(table.masked[name], first=first)


def unmaskable(name: str, expected: str, got: str, mend: str) -> InvalidArgument:
    """The error of a weight or layer that masks can't hold."""
    return InvalidArgument(f"Could not mask {name!r}: expected {expected}, got {got}. {mend}")
