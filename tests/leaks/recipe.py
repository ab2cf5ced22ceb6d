"""Recipes of freezing, as data, and what each of them moves: computed by NumPy on kept weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import tb_pastnet as pastnet
from tb_pastnet.core.violation import CAUSES
from tests.commands import command

Array = npt.NDArray[Any]
Moved = dict[tuple[str, int], int]
"""By variable and channel: the first step at which a weight isn't what it was."""

_INTS = {2: np.int16, 4: np.int32}


@dataclass
class Watch:
    """What a program is watched by: the folder of its log, and copies of its weights by step."""

    folder: Path
    audit: bool | str = True
    copies: dict[int, dict[str, Array]] = field(default_factory=dict)

    def keep(self, step: int, weights: Mapping[str, Array]) -> None:
        """Copies what is meant to stay."""
        self.copies[step] = {name: np.array(value) for name, value in weights.items()}


@dataclass(frozen=True)
class Recipe:
    """A way to freeze, or to prune.

    Attributes:
        name: what is done, in the words of the table.
        framework: whose recipe it is.
        program: trains a tiny network, with a recorder of its own, and keeps weights.
        stays: names of weights that are meant to stay, with the elements that are (None: all).
        moved_by: the cause, a key of `core.violation.CAUSES`; "" where nothing moves.
        begins: the first step at which the leak moves a weight.
        since: the step whose weights are meant to stay.
        advice: what to do instead; of a clean one why nothing moves.
        axis: numbers the channels of `stays`.
        pruned: they are meant to stay zero, of either sign.
    """

    name: str
    framework: str
    program: Callable[[Watch], None]
    stays: Mapping[str, Array | None]
    advice: str
    moved_by: str = ""
    begins: int | None = None
    since: int = 0
    axis: int = 0
    pruned: bool = False

    def moved(self, watch: Watch) -> Moved:
        """Which channels leave the values that they are meant to keep, and at which step first."""
        first: Moved = {}
        for step in sorted(step for step in watch.copies if step > self.since):
            for name, held in self.stays.items():
                was, value = watch.copies[self.since][name], watch.copies[step][name]
                if self.pruned:
                    was, value = abs(was), abs(value)
                bits = _INTS[value.itemsize]
                differs = was.view(bits) != value.view(bits)
                differs &= True if held is None else held
                rows = np.moveaxis(differs, self.axis, 0).reshape(differs.shape[self.axis], -1)
                for channel in np.flatnonzero(rows.any(axis=1)).tolist():
                    first.setdefault((name, channel), step)
        return first


def check(recipe: Recipe, folder: Path, audit: bool | str = True) -> None:
    """Carries a recipe out, and compares what moved with what its log says."""
    watch = Watch(folder, audit)
    recipe.program(watch)
    (run,) = pastnet.read(folder).runs.values()
    moved = recipe.moved(watch)
    assert min(moved.values(), default=None) == recipe.begins
    reported = {(each.variable, each.channel): each.first_step for each in run.violations}
    assert reported == moved
    assert {each.cause for each in run.violations} == {*filter(None, [recipe.moved_by])}
    proves(recipe, folder, run, {name for name, _ in moved})


def proves(recipe: Recipe, folder: Path, run: pastnet.Run, moved: set[str]) -> None:
    """Compares what moved with what `verify` says: each is proven, or its violation is named."""
    assert (run.verified.changed > 0) == bool(moved)
    for name, held in recipe.stays.items():
        asked = ["--frozen", name]
        if run.variables[name].role == "statistic":
            asked = ["--statistics", "still"]
        elif recipe.pruned and held is not None:
            asked = ["--sparsity", f"{name}>={held.mean()}"]
        done = command("verify", folder, *asked)
        in_part = held is not None and not recipe.pruned
        assert done.code == (name in moved or in_part or bool(recipe.since)), done.out
        if name in moved and "--frozen" in asked:
            assert f"Likely cause: {CAUSES[recipe.moved_by]}" in done.out
