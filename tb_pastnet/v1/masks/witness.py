"""Names the likely cause of a violation, from what a graph has to write the variable."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tb_pastnet.keras.audit.watch import Ints, Watch
from tb_pastnet.keras.graphs.nodes import called_functions
from tb_pastnet.keras.masks.table import MaskTable
from tb_pastnet.v1.graph.writes import written
from tb_pastnet.v1.masks.holding import Holding

_SETS = frozenset({"Assign", "AssignVariableOp"})


class GraphWitness:
    """Tells updates that the masks don't go around from values that were loaded.

    Which operations ran a session doesn't tell. But a graph says which there are: where all that
    updates a variable is held, it can only have been set, as by an initializer or a Saver.

    Args:
        graph: the tf.Graph.
        holding: builds the updates that are held.
    """

    def __init__(self, graph: Any, holding: Holding) -> None:
        self._graph = graph
        self._holding = holding
        self._size = -1
        self._updated: set[str] = set()

    def begin(self, watch: Watch, state: MaskTable | None) -> None:
        """Nothing is remembered."""

    def tick(self, watches: Iterable[Watch], state: MaskTable | None) -> None:
        """Nothing is remembered."""

    def bypassed(self, state: MaskTable | None) -> set[str]:
        """None is known of."""
        return set()

    def cause(self, watch: Watch, channels: Ints, state: MaskTable | None) -> str:
        """Names the likely cause of a violation.

        Args:
            watch: the variable.
            channels: where it is violated.
            state: the masks.

        Returns:
            "unmasked_update" where the graph has an update of it that isn't held, else "loaded";
            "unknown" where operations can't be read.
        """
        names = {part.op.name for part in watch.variable.variable.parts}
        try:
            return "unmasked_update" if names & self._beside() else "loaded"
        except Exception:
            return "unknown"

    def _beside(self) -> set[str]:
        """The names of variables that something writes which isn't held."""
        operations = self._graph.get_operations()
        if len(operations) != self._size:
            functions = called_functions(self._graph, operations)
            self._updated = {
                name
                for one in operations
                if one.name not in self._holding.built
                for name in written(one, functions)
                if not _sets(one, name)
            }
            self._size = len(operations)
        return self._updated


def _sets(operation: Any, variable: str) -> bool:
    """Whether it sets a variable to a value that isn't made of its own, as no update does."""
    if operation.type not in _SETS:
        return False
    pending, seen = [operation.inputs[1].op], set()
    while pending:
        source = pending.pop()
        if source.name not in seen:
            seen.add(source.name)
            pending += [tensor.op for tensor in source.inputs]
    return variable not in seen
