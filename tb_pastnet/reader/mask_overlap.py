"""How far the masks of two runs overlap, as `Log.overlap` returns it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from tb_pastnet.core.checks import check_step
from tb_pastnet.core.counted import counted
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.format.tags import MASKS
from tb_pastnet.reader.overlap_sets import UNITS
from tb_pastnet.reader.overlap_views import MaskComparison, overlap_layers_view, overlap_view
from tb_pastnet.reader.store import RunReader

REASONS = {
    "origin": "as far as is known, they didn't start from the same weights",
    "layers": "they have no layer in common that can be compared",
    "no record": "one of them has no record there",
    "unknown": "a mask can't be read, see notes",
}
"""Why two runs can't be compared, in words."""


class LayerOverlap(NamedTuple):
    """The overlap of one layer, and the overlap by chance; NaN where unknown."""

    overlap: float
    chance: float


@dataclass(frozen=True)
class Overlap:
    """How far the masks of two runs overlap, from `Log.overlap`.

    Two random masks overlap too: only an overlap well above chance shows that the runs agree.

    Attributes:
        runs: the names of both runs.
        steps: those of the records that are compared; None before the first one.
        unit: "weights" or "channels".
        kind: "kept" or "trainable".
        overlap: intersection over union of all layers, from 0 to 1; 1 if both sets are empty, NaN
            if the runs aren't comparable.
        chance: the mean overlap of two random sets with the same number of elements in each layer,
            exact or correct to 0.01 %; NaN if the runs aren't comparable.
        layers: `overlap` and `chance` of each layer that both runs have, by id.
        unmatched: layers that only one run has, or that have another shape, or channels along
            another axis, as fused experts in logs of earlier versions.
        reason: None if the runs are comparable, else "origin" (different initial weights, as far as
            is known), "layers" (none in common that can be compared), "no record" (one has none at
            that step), or "unknown" (a mask can't be read).
        notes: what could not be read, and how often.

    Example:
        >>> import tempfile
        >>> import numpy as np
        >>> import tb_pastnet as pastnet
        >>> logdir = tempfile.mkdtemp()
        >>> for name, kept in ("dense", np.ones((3, 4))), ("ticket", np.eye(3, 4)):
        ...     weight = np.ones((3, 4))
        ...     with pastnet.numpy.Recorder(f"{logdir}/{name}", {"dense/kernel": weight.copy}) as r:
        ...         weight *= kept
        ...         r.declare(kept={"dense/kernel": kept})
        ...         r.record(1)
        >>> pair = pastnet.read(logdir).overlap("dense", "ticket")
        >>> pair
        Overlap('dense', 'ticket', kept weights: 0.25, by chance 0.25, 1 layer)
        >>> pair.layers["dense"].overlap
        0.25
    """

    runs: tuple[str, str]
    steps: tuple[int | None, int | None]
    unit: str
    kind: str
    overlap: float
    chance: float
    layers: Mapping[str, LayerOverlap]
    unmatched: tuple[str, ...]
    reason: str | None
    notes: Mapping[str, int]

    @property
    def comparable(self) -> bool:
        """Whether the overlap is known, and means something."""
        return self.reason is None

    def __repr__(self) -> str:
        if self.reason is None:
            layers = counted(len(self.layers), "layer")
            result = f"{self.overlap:.2f}, by chance {self.chance:.2f}, {layers}"
        else:
            result = f"not comparable, {REASONS[self.reason]}"
        first, second = self.runs
        return f"Overlap({first!r}, {second!r}, {self.kind} {self.unit}: {result})"


def overlap_of(
    first: RunReader, second: RunReader, unit: str, kind: str, step: int | None
) -> Overlap:
    """Compares two runs of one store, with the numbers of the routes; see `Log.overlap`."""
    _check(unit, kind, step)
    comparison = MaskComparison((first, second), unit, kind)
    body, lost = overlap_view(comparison, step)
    [pair] = body["pairs"]
    steps = [run["step"] for run in body["runs"]]
    if step is None:
        # Both are at their last record there.
        step = max((own for own in steps if own is not None), default=0)
    header, arrays, _ = overlap_layers_view(comparison, 1, step)
    values = zip(arrays["overlap"][:, 0].tolist(), arrays["chance"][:, 0].tolist(), strict=True)
    comparable = pair["comparable"]
    return Overlap(
        runs=(first.run.name, second.run.name),
        steps=(steps[0], steps[1]),
        unit=unit,
        kind=kind,
        overlap=pair["overlap"] if comparable else float("nan"),
        chance=pair["chance"] if comparable else float("nan"),
        layers=dict(zip(header["layers"], map(LayerOverlap._make, values), strict=True)),
        unmatched=tuple(header["unmatched"]),
        reason=pair["reason"],
        notes=dict(lost.most_common()),
    )


def _check(unit: str, kind: str, step: int | None) -> None:
    for name, value, words in ("unit", unit, UNITS), ("kind", kind, MASKS):
        if value not in words:
            raise InvalidArgument(
                f"Could not compare masks: expected {name}= {words[0]!r} or {words[1]!r}, got "
                f"{value!r:.60}. Leave it out for {words[0]!r}."
            )
    check_step(step, "compare masks")
