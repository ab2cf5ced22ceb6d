"""All exceptions of tb_pastnet, in one tree.

```
PastNetError
├── InvalidArgument (ValueError)     a wrong value or shape, found at construction
│   ├── UnknownArgument (TypeError)  an argument that a function doesn't have, or that it lacks
│   └── UnknownName (KeyError)       a name that fits no variable, or more than one
├── UnsupportedBackend               Keras runs on a backend that isn't supported
├── UnwritableLog (OSError)          the log directory can't be created or written
├── UnreadableLog (OSError)          the log directory can't be listed, or its files can't be opened
└── UnreadableRecord                 bytes in a log that can't be used; readers count them
    ├── ForeignRecord                not written by tb_pastnet
    ├── UnknownVersion               written by a newer tb_pastnet
    └── DamagedRecord                ours, but its checksum or its layout is broken
```

Only a user's commands raise. Whatever observes a training run raises only at construction; later
failures are counted and logged once per cause.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__all__ = [
    "DamagedRecord",
    "ForeignRecord",
    "InvalidArgument",
    "PastNetError",
    "UnknownArgument",
    "UnknownName",
    "UnknownVersion",
    "UnreadableLog",
    "UnreadableRecord",
    "UnsupportedBackend",
    "UnwritableLog",
]


class PastNetError(Exception):
    """The root of everything that tb_pastnet raises on purpose."""

    if not TYPE_CHECKING:
        # With another constructor, AutoGraph replaces it with its own error in a tf.function.
        __init__ = Exception.__init__


class InvalidArgument(PastNetError, ValueError):
    """A value, a shape or a combination that can't be used."""


class UnknownArgument(InvalidArgument, TypeError):
    """An argument that a function doesn't have, or one that it needs and wasn't given."""


class UnknownName(InvalidArgument, KeyError):
    """A name that fits no variable, or more than one."""

    def __str__(self) -> str:
        # KeyError would print the repr of the text.
        return str(self.args[0]) if self.args else ""


class UnsupportedBackend(PastNetError):
    """Keras runs on a backend that tb_pastnet can't observe."""


class UnwritableLog(PastNetError, OSError):
    """The log directory can't be created or written."""


class UnreadableLog(PastNetError, OSError):
    """The log directory can't be listed, or a file in it can't be opened any more."""


class UnreadableRecord(PastNetError):
    """Bytes in a log that can't be used. Readers count and skip them."""


class ForeignRecord(UnreadableRecord):
    """Bytes under our name that tb_pastnet did not write."""


class UnknownVersion(UnreadableRecord):
    """A record in a format newer than this reader."""


class DamagedRecord(UnreadableRecord):
    """One of our records whose checksum or layout is broken."""
