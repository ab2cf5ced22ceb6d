"""What a run's comparisons prove: how many held values were compared, and how many have changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tb_pastnet.core.compared import BY_FINGERPRINT, Compared, HeldValues
from tb_pastnet.core.counted import counted
from tb_pastnet.core.lineage import first_steps_after


class RecordedWeight(NamedTuple):
    """A recorded weight: its id, that of its layer, how many values it has."""

    id: str
    layer: str
    size: int
    statistic: bool = False  # of a layer such as BatchNorm: training doesn't hold or train it
    kernel: bool = True  # a sparsity counts it though nothing of it is pruned
    also: tuple[str, ...] = ()  # its names in other places


class ComparedLineage(NamedTuple):
    """What a lineage recorded: its weights, in the order of its description.

    Attributes:
        weights: the recorded ones.
        compared: None if the log doesn't have that, as those of earlier versions.
        start: its first step; None if it recorded nothing.
        steps: those of its stored records.
        audited: whether held weights were compared at all.
    """

    weights: Sequence[RecordedWeight]
    compared: Compared | None
    start: int | None
    steps: Sequence[int] = ()
    audited: bool = True


def standing_lineages(lineages: Sequence[ComparedLineage]) -> list[ComparedLineage]:
    """The lineages that count: those superseded as a whole are left out, others are cut off."""
    cuts = first_steps_after([lineage.start for lineage in lineages])
    standing = []
    for lineage, cut in zip(lineages, cuts, strict=True):
        if lineage.start is None or (cut is not None and cut <= lineage.start):
            continue
        rest = lineage.compared
        if cut is not None and rest is not None:
            rest = rest.until(cut, lineage.steps)
        standing.append(lineage._replace(compared=rest))
    return standing


@dataclass(frozen=True)
class Verified:
    """What was frozen or pruned during a run, and compared with its values from then.

    Attributes:
        weights: how many weights were compared, in whole or in part.
        values: how many of their values were held at once, at most.
        records: the number of records at which the one compared most often was,
        fewest_records: and the one compared least often; those the log doesn't store count, too.
        comparisons: values times records.
        changed: how many of the values differed; by fingerprints, at least so many.
        by: "value" or "64-bit fingerprint"; both, joined by " and "; "" if nothing was compared.
        pruned: whether some of the values were pruned rather than frozen.
        audited: whether frozen weights would have been compared.

    Example:
        >>> str(Verified(weights=42, values=22804, records=841, fewest_records=841, by="value"))
        '22,804 frozen values in 42 weights, compared by value at 841 records: 0 changed'
        >>> str(Verified())
        'nothing was frozen'
    """

    weights: int = 0
    values: int = 0
    records: int = 0
    fewest_records: int = 0
    comparisons: int = 0
    changed: int = 0
    by: str = ""
    pruned: bool = False
    audited: bool = True

    def __str__(self) -> str:
        if not self.weights:
            return "nothing was frozen" if self.audited else "nothing was compared"
        state = "frozen or pruned" if self.pruned else "frozen"
        # A fingerprint shows that a channel has changed, not how many of its values.
        least = "at least " if self.changed and BY_FINGERPRINT in self.by else ""
        records = counted(self.records, "record")
        if self.fewest_records < self.records:
            records = f"{self.fewest_records:,} to {records}"
        return (
            f"{counted(self.values, f'{state} value')} in {counted(self.weights, 'weight')}, "
            f"compared by {self.by} at {records}: {least}{self.changed:,} changed"
        )

    def as_json(self) -> dict[str, object]:
        """Its fields and its sentence, as JSON values."""
        return {"text": str(self), **vars(self)}


def verified(lineages: Sequence[ComparedLineage]) -> Verified:
    """What the comparisons in the lineages of a run prove; superseded ones don't count."""
    standing = standing_lineages(lineages)
    weights: dict[str, list[HeldValues]] = {}
    for name, own in _held(standing):
        weights.setdefault(name, []).append(own)
    compared = [lineage.compared for lineage in standing if lineage.compared is not None]
    if not weights:
        return Verified(audited=bool(compared) and all(each.audited for each in standing))
    records = [sum(each.records for each in own) for own in weights.values()]
    every = [each for own in weights.values() for each in own]
    return Verified(
        weights=len(weights),
        values=sum(max(each.most for each in own) for own in weights.values()),
        records=max(records),
        fewest_records=min(records),
        comparisons=sum(span.comparisons for each in every for span in each.spans),
        changed=sum(max(each.changed for each in own) for own in weights.values()),
        by=" and ".join(sorted({each.by for each in every}, reverse=True)),
        pruned=any(each.pruned for each in compared),
    )


def _held(lineages: Sequence[ComparedLineage]) -> Iterator[tuple[str, HeldValues]]:
    for lineage in lineages:
        held: Mapping[int, HeldValues] = lineage.compared.held if lineage.compared else {}
        for number, own in held.items():
            if own.spans:
                yield lineage.weights[number].id, own
