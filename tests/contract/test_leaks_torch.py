"""Each recipe of torch: its leak stands in the log at its first record, with its cause."""

from __future__ import annotations

from pathlib import Path

import pytest

import tb_pastnet as pastnet

pytest.importorskip("torch", "2.9", reason="torch isn't installed, or has no Muon")

from tests.leaks.recipe import Recipe, Watch, check
from tests.leaks.torch_flags import RECIPES as BY_FLAGS
from tests.leaks.torch_masks import RECIPES as BY_MASKS

RECIPES = [*BY_FLAGS, *BY_MASKS]


@pytest.mark.parametrize("audit", ["values", "fingerprints"])
@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.name)
def test_a_recipe(recipe: Recipe, audit: str, tmp_path: Path) -> None:
    check(recipe, tmp_path, audit)


@pytest.mark.parametrize(
    ("name", "moving", "note"),
    [
        ("A BatchNorm frozen, and in `train()`", "norm/running_mean", "call eval()"),
        ("A `spectral_norm` layer, frozen", "0/weight", ""),
    ],
)
def test_what_is_computed_with_statistics_is_seen_to_move(
    name: str, moving: str, note: str, tmp_path: Path
) -> None:
    (recipe,) = (each for each in RECIPES if each.name == name)
    recipe.program(Watch(tmp_path))
    (run,) = pastnet.read(tmp_path).runs.values()
    assert (run.variables[moving].delta_norm[0] > 0).all()
    assert all(note in text for text in run.notes)
    assert bool(run.notes) == bool(note)
