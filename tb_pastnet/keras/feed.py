"""What a Recorder asks of the masks: which changed, what they hold, and what of it moved."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from tb_pastnet.core.selection import Mask
from tb_pastnet.core.violation import Violation
from tb_pastnet.keras.log.changes import MaskOffer
from tb_pastnet.keras.log.notes import Notes
from tb_pastnet.keras.model.variables import Recorded
from tb_pastnet.record.audit.audit import Audit
from tb_pastnet.record.masks.table import MaskTable, version_of

Floats = npt.NDArray[np.float32]
_WORDS = ("kept", "trainable")
_BELOW_ONE = np.nextafter(np.float32(1), np.float32(0))


class Feed:
    """Follows the masks of a model, also those that it gets while it is recorded.

    Args:
        records: the recorded variables.
        masks: gives the masks of now, None where there are none.
        audit: compares held weights with what they were; None: nothing does.
        origin: gives a fingerprint of the values at the beginning; that of the masks goes before.
        notes: what is wrong with a training goes there.
    """

    def __init__(
        self,
        records: Sequence[Recorded],
        masks: Callable[[], MaskTable | None],
        audit: Audit | None,
        origin: Callable[[], str],
        notes: Notes,
    ) -> None:
        self._records = tuple(records)
        self._masks = masks
        self._audit = audit
        self._own_origin = origin
        self._notes = notes
        self._noted = 0
        self._told_of: dict[tuple[str, int, int], Violation] = {}
        self._missed = False
        self._looked = False
        self._earlier: set[tuple[str, int, int]] = set()
        own = (record.masks() for record in self._records)
        self._owned = [masks for masks in own if masks is not None]
        self._version: tuple[int, ...] | None = None
        self._seen: tuple[int, ...] | None = None
        self._told: dict[tuple[str, str], bytes] = {}
        starts = np.cumsum([0, *(record.axis.channels for record in self._records)])
        self._spans = [slice(a, b) for a, b in pairwise(starts.tolist())]
        self._kept = np.ones(starts[-1], np.float32)
        self._through = np.ones(starts[-1], np.float32)

    @property
    def origin(self) -> str:
        """The origin of the weights."""
        state = self._masks()
        return (state.origin if state is not None else "") or self._own_origin()

    @property
    def audited(self) -> bool:
        """Whether held weights are compared with what they were."""
        return self._audit is not None

    def begin(self) -> None:
        """Tells all masks again, and violations that last, for a new lineage."""
        self._version = None
        self._told.clear()
        self._told_of.clear()
        self._missed = False
        if self._audit is not None:
            self._audit.restart()
            self._earlier = {_key(one) for one in self._audit.violations}

    def observe(self, *, quick: bool = False) -> None:
        """Sees what is held before the next update moves it, where `violations` hasn't just.

        Args:
            quick: as `Audit.observe` has it.
        """
        looked, self._looked = self._looked, False
        try:
            if self._audit is not None and not looked:
                self._audit.observe(quick=quick)
        except Exception as error:
            self._notes.add("Could not see what is held", error)

    def violations(self, step: int) -> list[Violation]:
        """Held weights that moved, as far as that is new; `told` says that they were handed on.

        Args:
            step: of the record.
        """
        if self._audit is None:
            return []
        try:
            found = self._audit.check(step)
            self._looked = True
        except Exception as error:
            self._notes.add("Could not audit held weights", error)
            self._missed = True
            return []
        if self._missed:
            # Also what a check that failed had found.
            found, self._missed = self._of_this_lineage(), False
        for text in self._audit.notes[self._noted :]:
            self._notes.add(text)
        self._noted = len(self._audit.notes)
        return [one for one in found if self._worth_telling(one)]

    def late_violations(self) -> list[Violation]:
        """Those that have grown since they were told, or couldn't be told."""
        return [one for one in self._of_this_lineage() if self._told_of.get(_key(one)) != one]

    def told(self, masks: Sequence[MaskOffer] = (), violations: Sequence[Violation] = ()) -> None:
        """Takes note of what was handed on; anything else is told again.

        Args:
            masks: all that `changes` gave.
            violations: of those that `violations` or `late_violations` gave.
        """
        self._told.update({(one.variable, one.mask): one.packed.tobytes() for one in masks})
        self._told_of.update({_key(one): one for one in violations})
        if masks:
            self._version = self._seen

    def changes(self, *, due: bool = False) -> list[MaskOffer]:
        """The masks that changed since they were told; quick where none did.

        Args:
            due: whether to look also for those that came by loading weights into layers that own
                their masks.
        """
        state = self._masks()
        version = version_of(state, self._owned)
        if version == self._version and not (due and self._owned):
            return []
        if state is not None:
            state.origin = state.origin or self._own_origin()
        offers = []
        for record, span in zip(self._records, self._spans, strict=True):
            masks = _masks_of(record, state)
            if masks is not None:
                offers += self._follow(record, span, *masks)
        self._seen = version
        if not offers:
            self._version = version
        return offers

    def shares(self) -> tuple[Floats, Floats]:
        """Share of each channel that is kept, and that masks let an update change."""
        return self._kept, self._through

    def _of_this_lineage(self) -> list[Violation]:
        found = [] if self._audit is None else self._audit.violations
        earlier = self._earlier - self._told_of.keys()
        return [one for one in found if _key(one) not in earlier]

    def _worth_telling(self, violation: Violation) -> bool:
        """One that goes on is told again when it is twice as long, or twice as far."""
        told = self._told_of.get(_key(violation))
        if told is not None:
            longer = _duration(violation) >= 2 * _duration(told)
            farther = violation.largest >= 2 * told.largest
            return longer or farther or violation.cause != told.cause
        return True

    def _follow(
        self, record: Recorded, span: slice, kept: Mask, trainable: Mask
    ) -> list[MaskOffer]:
        self._kept[span] = _share(record.axis.split(kept))
        self._through[span] = _share(record.axis.split(kept & trainable))
        name = record.text.id
        offers = []
        for word, mask in zip(_WORDS, (kept, trainable), strict=True):
            offer = _offer(name, word, mask)
            before = self._told.get((name, word))
            # What was never held is let through without a word.
            if before is None and mask.all():
                continue
            if before != offer.packed.tobytes():
                offers.append(offer)
        return offers


def _masks_of(record: Recorded, state: MaskTable | None) -> tuple[Mask, Mask] | None:
    own = record.masks()
    if own is not None:
        return own.kept, own.trainable
    masks = None if state is None else state.masks_of(record.variable)
    return None if masks is None else masks.read()


def _share(through: Mask) -> Floats:
    """Share of each row; 1 only where it is exactly that."""
    share = through.mean(axis=1)
    result: Floats = np.where(share < 1, np.minimum(share, _BELOW_ONE), share).astype(np.float32)
    return result


def _offer(name: str, word: str, mask: Mask) -> MaskOffer:
    return MaskOffer(name, word, np.packbits(mask), mask.size, int(mask.sum()))


def _key(violation: Violation) -> tuple[str, int, int]:
    return violation.variable, violation.channel, violation.first_step


def _duration(violation: Violation) -> int:
    return violation.last_step - violation.first_step + 1
