"""Whether a training ends normally, as far as is known."""

from __future__ import annotations

import sys
from itertools import count
from types import FrameType

_MARK = "_tb_pastnet_handled"
"""The attribute of an exception that was being handled when a training began."""

_NUMBERS = count(1)

_ENDS_OF_DATA = ("StopIteration", "StopAsyncIteration", "OutOfRangeError")
"""By name, because the last is TensorFlow's: loops of iterators and of sessions end by them."""

_OWN = f"{__package__}."
"""The modules by which each call of a Recorder comes."""


class TrainingEnd:
    """Knows of what ends a training: an exception, or the loop of a trainer.

    Attributes:
        failed: whether an exception ends it, or the program; None: that isn't known yet.
    """

    def __init__(self) -> None:
        self.failed: bool | None = None
        # Whether a trainer is within its loop; None: no trainer says.
        self._within: bool | None = None
        self.begin()

    @property
    def normal(self) -> bool:
        """Whether it is normal if training ends here."""
        return not (self.failed if self._within is None else self._within)

    def begin(self) -> None:
        """Training begins, or begins again, maybe because of an exception that is handled now."""
        self.failed, self._handled = None, 0
        error = sys.exc_info()[1]
        if error is not None:
            # A reference would keep what its frames hold, which may be a whole network, and its id
            # may be that of a later one.
            self._handled = vars(error).setdefault(_MARK, next(_NUMBERS))

    def enter(self) -> None:
        """The loop of a trainer begins: what ends it is an exception, unless `leave` is called."""
        self.begin()
        self._within = True

    def leave(self) -> None:
        """The loop of a trainer has ended: what is raised later doesn't end the training."""
        self._within = self._raised()

    def look(self) -> None:
        """Training ends now, as in a `finally`, which may run because of an exception."""
        if self.failed is None:
            self.failed = self._raised()

    def _raised(self) -> bool:
        """Whether an exception is being handled that wasn't yet when training began."""
        error = sys.exc_info()[1]
        if error is None or type(error).__name__ in _ENDS_OF_DATA:
            return False
        return vars(error).get(_MARK, -1) != self._handled and not _is_ours(error)


def _is_ours(error: BaseException) -> bool:
    """Whether it is handled within a call of a Recorder, which a signal handler interrupts."""
    traceback = error.__traceback__
    frame: FrameType | None = None if traceback is None else traceback.tb_frame
    while frame is not None:
        if str(frame.f_globals.get("__name__")).startswith(_OWN):
            return True
        frame = frame.f_back
    return False


def program_failed() -> bool:
    """Whether an exception that nothing handled ends the program."""
    # In a notebook it may be one of any earlier cell.
    return getattr(sys, "last_type", None) is not None and not hasattr(sys, "ps1")
