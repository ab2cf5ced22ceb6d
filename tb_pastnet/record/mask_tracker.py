"""The masks for a Recorder: which changed, what they hold, and which held weights moved."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from tb_pastnet.core.axes import ChannelAxis
from tb_pastnet.core.mask_input import by_channel
from tb_pastnet.core.verified import ComparedLineage, RecordedWeight, Verified, verified
from tb_pastnet.core.violation import Violation
from tb_pastnet.format.fitting import MOST_MASKED
from tb_pastnet.format.tags import MASKS
from tb_pastnet.record.audit.compared_account import ComparedAccount
from tb_pastnet.record.audit.freeze_audit import Audit
from tb_pastnet.record.batch import spans_of
from tb_pastnet.record.changes import MaskUpdate
from tb_pastnet.record.failures import Failures, noted
from tb_pastnet.record.masks.mask_table import MaskTable, masks_of, version_of
from tb_pastnet.record.sink import Sink
from tb_pastnet.record.weight import Mask, Weight

Floats = npt.NDArray[np.float32]
Flags = npt.NDArray[np.bool_]
_BELOW_ONE = np.nextafter(np.float32(1), np.float32(0))


class MaskTracker:
    """Follows the masks of a model, including those set during recording.

    Attributes:
        accounts: what was compared in each lineage; the last one continues.
        version: another one after each change of masks that was handed over.
    """

    def __init__(
        self,
        weights: Sequence[Weight],
        store: Callable[[], MaskTable | None],
        audit: Audit | None,
        origin: Callable[[], str],
        failures: Failures,
    ) -> None:
        self._weights = tuple(weights)
        self._layers = {weight.name: weight.layer for weight in weights}
        self._recorded = [
            RecordedWeight(
                each.name,
                each.layer,
                each.axis.channels * each.axis.elements,
                each.statistic,
                each.role == "kernel",
                each.text.also,
            )
            for each in weights
        ]
        self._store = store
        self._audit = audit
        # A fingerprint of the values at the beginning; that of the masks has precedence.
        self._own_origin = origin
        self._failures = failures
        self._noted = 0
        self._handed_violations: dict[tuple[str, int, int], Violation] = {}
        self._missed = False
        self._looked = False
        self._earlier: set[tuple[str, int, int]] = set()
        self._owned = [own for weight in weights if (own := weight.masks()) is not None]
        self.version: tuple[int, ...] | None = None
        self._handed_masks: dict[tuple[str, str], bytes] = {}
        self._spans = [slice(span.start, span.stop) for span in spans_of(self._weights)]
        self._kept = np.ones(self._spans[-1].stop, np.float32)
        self._free = np.ones_like(self._kept)
        self.accounts: list[ComparedAccount] = []
        self._open_account()

    @property
    def origin(self) -> str:
        """The origin of the weights."""
        store = self._store()
        return (store.origin if store is not None else "") or self._own_origin()

    @property
    def audited(self) -> bool:
        """Whether held weights are audited."""
        return self._audit is not None

    def begin(self) -> None:
        """Hands over all masks and lasting violations again, for a new lineage."""
        self.version = None
        self._handed_masks.clear()
        self._handed_violations.clear()
        self._missed = False
        self._open_account()
        if self._audit is not None:
            self._audit.restart()
            self._earlier = {violation.key for violation in self._audit.violations}

    def _open_account(self) -> None:
        self.accounts.append(ComparedAccount(self._weights))
        if self._audit is not None:
            self._audit.report_to(self.accounts[-1])

    @noted("Could not end the audit")
    def close(self) -> None:
        """Removes what the audit set on the framework's objects."""
        if self._audit is not None:
            self._audit.close()

    @noted("Could not look at held weights")
    def observe(self, *, quick: bool = False) -> None:
        """Looks at held weights before the next update."""
        if self._audit is not None:
            self._audit.observe(quick=quick)

    def has_looked(self) -> bool:
        """Whether a record has looked at held weights since the last call of this."""
        looked, self._looked = self._looked, False
        return looked

    def unchanged(self, *, flags: bool = True) -> bool:
        """Whether masks, and `flags` of held weights, are as before: read at each step."""
        version = self.version
        if version is None or version_of(self._store(), self._owned) != version:
            return False
        return not (flags and self.flags_changed)

    @property
    def flags_changed(self) -> bool:
        """Whether something may be held that wasn't at the last look, or the reverse."""
        return self._audit is not None and self._audit.changed

    @property
    def nbytes(self) -> int:
        """Bytes of what held weights are compared with."""
        return 0 if self._audit is None else self._audit.nbytes

    @property
    def lineages(self) -> list[ComparedLineage]:
        """What was compared so far, lineage by lineage."""
        compared = [(account.snapshot(), account.steps) for account in self.accounts]
        return [
            ComparedLineage(self._recorded, each, each.first_step, steps, self.audited)
            for each, steps in compared
        ]

    @property
    def verified(self) -> Verified:
        """What these comparisons prove."""
        return verified(self.lineages)

    @property
    def violations(self) -> int:
        """Channels of layers that have changed while they were held."""
        audited = () if self._audit is None else self._audit.violations
        return len({(self._layers[each.variable], each.channel) for each in audited})

    @property
    def sparsity(self) -> float:
        """The share of pruned weights, over all kernels and all other weights with pruned ones."""
        kept = total = 0
        for weight, span in zip(self._weights, self._spans, strict=True):
            through = round(float(self._kept[span].sum()) * weight.axis.elements)
            size = weight.axis.channels * weight.axis.elements
            if weight.role == "kernel" or through < size:
                kept, total = kept + through, total + size
        return 1 - kept / total if total else 0.0

    def make(self) -> None:
        """A record is made from now on, until `hand_violations`."""
        self.accounts[-1].making = True

    def hand_violations(
        self, sink: Sink, step: int, moved: Flags | None = None, *, due: bool = True
    ) -> list[Violation]:
        """Hands new violations to a sink.

        Args:
            sink: takes them.
            step: of the record that shows them.
            moved: which weights have changed at it; None: it isn't known.
            due: whether there is such a record, kept or not.

        Returns:
            Those that were never handed over before.
        """
        try:
            violations = [] if self._audit is None else self._audit.check(step)
            self._looked = self._audit is not None
        except Exception as error:
            self._failures.add("Could not audit held weights", error)
            self._missed = True
            self.accounts[-1].failed()
            return []
        if due:
            self.accounts[-1].compared(step, moved)
        if self._audit is None:
            return []
        notes = self._audit.notes
        for text in notes[self._noted :]:
            self._failures.add(text)
        self._noted = len(notes)
        if self._missed:
            # Including the findings of a check that failed.
            violations, self._missed = self._of_this_lineage(), False
        if not violations:
            return violations
        first = [each for each in violations if each.key not in self._handed_violations]
        self._hand(sink, step, [violation for violation in violations if self._is_news(violation)])
        return first

    def hand_late_violations(self, sink: Sink, step: int) -> None:
        """Hands over violations that have grown since, or couldn't be handed over."""
        handed = self._handed_violations
        late = [each for each in self._of_this_lineage() if handed.get(each.key) != each]
        self._hand(sink, step, late)

    def hand_masks(self, sink: Sink, step: int, *, due: bool = False) -> None:
        """Hands changed masks to a sink; `due` also looks at owned masks, and behind versions.

        If the sink doesn't take them, they are handed over again.
        """
        store = self._store()
        if due and store is not None:
            store.registry.settle()
        version = version_of(store, self._owned)
        if version == self.version and not (due and self._owned):
            return
        if store is not None:
            store.keep_origin(self._own_origin)
        updates = []
        for weight, span in zip(self._weights, self._spans, strict=True):
            masks = masks_of(weight, store)
            if masks is not None:
                updates += self._follow(weight, span, *masks)
        sink.masks(step, updates)
        self._handed_masks.update({(m.variable, m.mask): _digest(m.packed) for m in updates})
        self.version = version

    def shares(self) -> tuple[Floats, Floats]:
        """Share of each channel that is kept, and that masks let an update change."""
        return self._kept, self._free

    def _hand(self, sink: Sink, step: int, violations: Sequence[Violation]) -> None:
        sink.violations(step, violations)
        self._handed_violations.update({each.key: each for each in violations})

    def _of_this_lineage(self) -> list[Violation]:
        violations = [] if self._audit is None else self._audit.violations
        earlier = self._earlier - self._handed_violations.keys()
        return [violation for violation in violations if violation.key not in earlier]

    def _is_news(self, violation: Violation) -> bool:
        """Whether it is new, or has become twice as long or twice as large."""
        handed = self._handed_violations.get(violation.key)
        if handed is not None:
            longer = _duration(violation) >= 2 * _duration(handed)
            farther = violation.largest >= 2 * handed.largest
            return longer or farther or violation.cause != handed.cause
        return True

    def _follow(self, weight: Weight, span: slice, kept: Mask, trainable: Mask) -> list[MaskUpdate]:
        self._kept[span] = _share(kept, weight.axis)
        # What isn't an array of its own lets all through, or nothing.
        free = trainable if not any(kept.strides) and kept[(0,) * kept.ndim] else kept & trainable
        self._free[span] = _share(free, weight.axis)
        self.accounts[-1].prune(weight.name, kept.size - int(kept.sum()))
        updates: list[MaskUpdate] = []
        if kept.size > MOST_MASKED:
            self._failures.add(
                f"Could not record the masks of {weight.name!r}: expected at most {MOST_MASKED} "
                f"elements, got {kept.size}"
            )
            return updates
        for word, mask in zip(MASKS, (kept, trainable), strict=True):
            packed, passing = np.packbits(mask), int(mask.sum())
            handed = self._handed_masks.get((weight.name, word))
            # Masks that never held anything aren't mentioned.
            if handed is None and passing == mask.size:
                continue
            if handed != _digest(packed):
                updates.append(MaskUpdate(weight.name, word, packed, mask.size, passing))
        return updates


def _share(mask: Mask, axis: ChannelAxis) -> Floats:
    """Share of each channel; 1 only if it is exactly that."""
    flags = by_channel(mask, axis)
    if flags is not None:
        return flags.astype(np.float32)
    share = axis.split(mask).mean(axis=1)
    result: Floats = np.where(share < 1, np.minimum(share, _BELOW_ONE), share).astype(np.float32)
    return result


def _digest(packed: npt.NDArray[np.uint8]) -> bytes:
    """The digest of a mask, whose bits may be many."""
    return hashlib.blake2b(packed.data, digest_size=16).digest()


def _duration(violation: Violation) -> int:
    return violation.last_step - violation.first_step + 1
