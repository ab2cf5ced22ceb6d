"""The freeze audit of a graph: ops that compare held weights, built once, and likely causes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from tb_pastnet.keras.audit.held_weight import HeldWeight, which_moved
from tb_pastnet.keras.graphs.nodes import called_functions, reach
from tb_pastnet.keras.model.tf_weights import TFWeight
from tb_pastnet.record.audit.causes import ENFORCED, Facts
from tb_pastnet.record.audit.comparison import Comparison, Ints
from tb_pastnet.record.audit.freeze_audit import AuditSource, CauseFinder
from tb_pastnet.record.weight import Array
from tb_pastnet.v1.graph.session import GraphSession
from tb_pastnet.v1.graph.writes import written
from tb_pastnet.v1.masks.session_masks import GraphVariableMasks, Holding, SessionMasks

_SETS = frozenset({"Assign", "AssignVariableOp"})


class GraphAudit(AuditSource):
    """Compares the masked variables of a graph."""

    def __init__(
        self, weights: Sequence[TFWeight], state: SessionMasks, causes: GraphCauses
    ) -> None:
        self.causes = causes
        # For all that have masks, even if these hold nothing.
        made = {masks.variable: masks for masks in state.made.values()}
        self.weights = [weight for weight in weights if weight.variable in made]
        held = [_GraphHeldWeight(each, made[each.variable], state.site) for each in self.weights]
        self._held = {weight.name: weight for weight in held}
        self._moved = state.site.fetch(lambda: which_moved(held)) if held else list

    def held(self, weight: TFWeight) -> HeldWeight:
        """See `AuditSource`."""
        return self._held[weight.name]

    def moved(self, held: Sequence[HeldWeight]) -> Sequence[bool]:
        """See `AuditSource`."""
        moved = dict(zip(self._held, self._moved(), strict=True)) if held else {}
        return [moved[weight.name] for weight in held]


class _GraphHeldWeight(HeldWeight):
    """A variable with masks, compared by ops of its graph."""

    def __init__(self, weight: TFWeight, masks: GraphVariableMasks, site: GraphSession) -> None:
        super().__init__(weight)
        self.masks = masks
        self._site = site
        with site.building():
            self._tensors = super().value(), super().expected(), super().held()

    def value(self) -> Any:
        return self._tensors[0]

    def expected(self) -> Any:
        return self._tensors[1]

    def held(self) -> Any:
        return self._tensors[2]

    def compared(self, value: Array | None = None) -> Comparison:
        return Comparison(*self._site.run(list(self._tensors)))


class GraphCauses(CauseFinder):
    """Distinguishes updates outside the masks from loaded values.

    A graph shows which updates exist, not which ran: if all updates of a variable are masked, it
    can only have been set, for example by an initializer or a Saver.
    """

    def __init__(self, graph: tf.Graph, holding: Holding) -> None:
        self._graph = graph
        self._holding = holding
        self._size = -1
        self._updated: set[str] = set()

    def facts(self, held: HeldWeight, channels: Ints) -> Facts:
        """See `CauseFinder`."""
        unmasked = not self._unmasked().isdisjoint(held.variable.variable.holders)
        return Facts(held_by=ENFORCED, unmasked=unmasked, assigned=not unmasked)

    def _unmasked(self) -> set[str]:
        """The names of variables with an update outside the masks."""
        operations = self._graph.get_operations()
        if len(operations) != self._size:
            functions = called_functions(self._graph, operations)
            self._updated = {
                name
                for operation in operations
                if operation.name not in self._holding.built
                for name in written(operation, functions)
                if not _sets(operation, name)
            }
            self._size = len(operations)
        return self._updated


def _sets(operation: tf.Operation, variable: str) -> bool:
    """Whether it sets a variable independently of its current value, as no update does."""
    if operation.type not in _SETS:
        return False
    sources = reach(
        [operation.inputs[1].op],
        lambda source: [tensor.op for tensor in source.inputs],
        key=lambda source: source.name,
    )
    return variable not in sources
