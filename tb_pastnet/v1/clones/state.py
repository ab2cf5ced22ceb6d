"""What operations keep state, and which of it can be copied."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tb_pastnet.errors import InvalidArgument

VARIABLES = frozenset({"Variable", "VariableV2", "VarHandleOp"})
"""Types of the operations that hold variables."""

_PLACEHOLDERS = frozenset({"Placeholder", "PlaceholderV2", "PlaceholderWithDefault"})

_PYTHON = frozenset({"EagerPyFunc", "PyFunc", "PyFuncStateless"})


def can_be_copied(node: Any) -> bool:
    """Whether the copy of an operation does the same as its original, beside it.

    Args:
        node: its definition.
    """
    return not (node.op in _PLACEHOLDERS or node.op in _PYTHON or _keeps_state(node))


def refusal(node: Any, doing: str) -> InvalidArgument:
    """The error for an operation that can't be copied.

    Args:
        node: its definition.
        doing: what the copy is for, as in "clone a network".
    """
    if node.op in _PLACEHOLDERS:
        return InvalidArgument(
            f"Could not {doing}: expected inputs that its outputs can be computed from, got none "
            f"for placeholder {node.name!r}. Add it to inputs, or to share for one that feeds both."
        )
    if node.op in _PYTHON:
        return InvalidArgument(
            f"Could not {doing}: expected TensorFlow operations, got Python code in {node.name!r} "
            f"({node.op}), of which nobody can tell what state it uses. Write it with operations "
            f"of TensorFlow, or add it to share for both to use what it gives."
        )
    return InvalidArgument(
        f"Could not {doing}: expected variables as its state, got {node.name!r} ({node.op}), which "
        f"can't be copied. Add it to share for both to use it."
    )


def check_functions(functions: Mapping[str, Any], doing: str) -> None:
    """Refuses functions that hold state or run Python code.

    Args:
        functions: their definitions by name.
        doing: what the copy is for.

    Raises:
        InvalidArgument: one does.
    """
    for name, definition in functions.items():
        for node in definition.node_def:
            if node.op in _PYTHON or _keeps_state(node):
                raise InvalidArgument(
                    f"Could not {doing}: expected functions without Python code or state of their "
                    f"own, got {node.name!r} ({node.op}) in function {name!r}. Build it outside of "
                    f"the loop, branch or tf.function."
                )


def _keeps_state(node: Any) -> bool:
    # What lives longer than a run has a name by which others can share it, or is anonymous.
    return "shared_name" in node.attr or node.op.startswith("Anonymous")
