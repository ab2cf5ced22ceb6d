"""What tb_pastnet does, for TF1-style graphs: `tf.compat.v1`, sessions and name scopes.

Ops are built when a function is called or an object is made, before the graph is finalized; they
run in the session of the user. The names are loaded when they are first used.

Example:
    >>> import tb_pastnet as pastnet
    >>> "sync_op" in dir(pastnet.v1)
    True
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tb_pastnet import lazy

if TYPE_CHECKING:
    from tb_pastnet.v1.hooks import SyncHook as SyncHook
    from tb_pastnet.v1.sync import sync_op as sync_op

_HOMES = {
    "SyncHook": "tb_pastnet.v1.hooks",
    "sync_op": "tb_pastnet.v1.sync",
}

__all__ = [
    "SyncHook",
    "sync_op",
]

__getattr__ = lazy.names(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted(__all__)
