"""What tb_pastnet does, for TF1-style graphs: `tf.compat.v1`, sessions and name scopes.

Ops are built when a function is called or an object is made, before the graph is finalized; they
run in the session of the user. The names are loaded when they are first used.

Example:
    >>> import tb_pastnet as pastnet
    >>> dir(pastnet.v1)
    []
"""

from __future__ import annotations

from tb_pastnet import lazy

_HOMES: dict[str, str] = {}

__all__: list[str] = []

__getattr__ = lazy.names(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted(__all__)
