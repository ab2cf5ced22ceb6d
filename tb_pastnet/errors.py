"""All exceptions of tb_pastnet, in one tree.

```
PastNetError
├── InvalidArgument (ValueError)     a wrong value or shape, found at construction
│   ├── UnknownArgument (TypeError)  an argument that a function doesn't have, or that it lacks
│   └── UnknownName (KeyError)       a name that fits no variable, or more than one
├── UnsupportedBackend               Keras runs on a backend that isn't supported
├── UnwritableLog (OSError)          the log directory can't be created or written
├── UnreadableLog (OSError)          the log directory can't be listed, or its files can't be opened
│   └── UnreadableRun                a run of it can't be read; the others can
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
    "UnreadableRun",
    "UnsupportedBackend",
    "UnwritableLog",
]


class PastNetError(Exception):
    """The root of everything that tb_pastnet raises on purpose.

    Example:
        >>> import tb_pastnet as pastnet
        >>> try:
        ...     pastnet.read("nowhere")
        ... except pastnet.errors.PastNetError as error:
        ...     print(error)
        Could not read the log 'nowhere': expected a directory, got ...
    """

    if not TYPE_CHECKING:
        # With another constructor, AutoGraph replaces it with its own error in a tf.function.
        __init__ = Exception.__init__


class InvalidArgument(PastNetError, ValueError):
    """A value, a shape or a combination that can't be used.

    Example:
        >>> import tb_pastnet as pastnet
        >>> pastnet.OneShot(sparsity=2.0, step=1)
        Traceback (most recent call last):
        tb_pastnet.errors.InvalidArgument: Could not make a OneShot: expected sparsity= from 0 ...
    """


class UnknownArgument(InvalidArgument, TypeError):
    """An argument that a function doesn't have, or one that it needs and wasn't given.

    Example:
        >>> import tb_pastnet as pastnet
        >>> pastnet.OneShot(sparsity=0.5, stp=1)
        Traceback (most recent call last):
        tb_pastnet.errors.UnknownArgument: Could not call OneShot: expected step=, got stp=. ...
    """


class UnknownName(InvalidArgument, KeyError):
    """A name that fits no variable, or more than one.

    Example:
        >>> import tempfile
        >>> import tb_pastnet as pastnet
        >>> pastnet.read(tempfile.mkdtemp()).runs["a"]
        Traceback (most recent call last):
        tb_pastnet.errors.UnknownName: Could not find run 'a': ...
    """

    def __str__(self) -> str:
        # KeyError would print the repr of the text.
        return str(self.args[0]) if self.args else ""


class UnsupportedBackend(PastNetError):
    """Keras runs on a backend that tb_pastnet can't observe.

    Example:
        >>> issubclass(UnsupportedBackend, PastNetError)  # where keras.backend.backend() is "jax"
        True
    """


class UnwritableLog(PastNetError, OSError):
    """The log directory can't be created or written.

    Example:
        >>> import tempfile
        >>> import numpy as np
        >>> import tb_pastnet as pastnet
        >>> with tempfile.NamedTemporaryFile() as file:
        ...     pastnet.numpy.Recorder(file.name, {"dense/kernel": lambda: np.ones((2, 3))})
        Traceback (most recent call last):
        tb_pastnet.errors.UnwritableLog: Could not write to log directory ...
    """


class UnreadableLog(PastNetError, OSError):
    """The log directory can't be listed, or a file in it can't be opened any more.

    Example:
        >>> import tb_pastnet as pastnet
        >>> pastnet.read("nowhere")
        Traceback (most recent call last):
        tb_pastnet.errors.UnreadableLog: Could not read the log 'nowhere': ...
    """


class UnreadableRun(UnreadableLog):
    """A run whose data can't be read for an unexpected reason; the other runs can.

    Example:
        >>> issubclass(UnreadableRun, UnreadableLog)
        True
    """


class UnreadableRecord(PastNetError):
    """Bytes in a log that can't be used. Readers count and skip them.

    Example:
        >>> from tb_pastnet.format.block import decode_block
        >>> try:
        ...     decode_block(b"", tag="channels/dense/kernel", step=1, lineage=0)
        ... except UnreadableRecord as error:
        ...     print(type(error).__name__)
        ForeignRecord
    """


class ForeignRecord(UnreadableRecord):
    """Bytes under our name that tb_pastnet did not write.

    Example:
        >>> from tb_pastnet.format.block import decode_block
        >>> decode_block(b"of another program", tag="channels/dense/kernel", step=1, lineage=0)
        Traceback (most recent call last):
        tb_pastnet.errors.ForeignRecord: Could not read a record of ...
    """


class UnknownVersion(UnreadableRecord):
    """A record in a format newer than this reader.

    Example:
        >>> from tb_pastnet.format.block import decode_block
        >>> decode_block(b"PAST" + bytes([255] * 8), tag="channels/dense/kernel", step=1, lineage=0)
        Traceback (most recent call last):
        tb_pastnet.errors.UnknownVersion: Could not read ...: expected format version ...
    """


class DamagedRecord(UnreadableRecord):
    """One of our records whose checksum or layout is broken.

    Example:
        >>> from tb_pastnet.format.block import decode_block
        >>> decode_block(b"PAST" + bytes([1] * 8), tag="channels/dense/kernel", step=1, lineage=0)
        Traceback (most recent call last):
        tb_pastnet.errors.DamagedRecord: Could not read ...: expected its checksum to match ...
    """
