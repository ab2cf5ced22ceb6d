"""Each recipe of torch: its leak stands in the log at its first record, with its cause."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch", "2.9", reason="torch isn't installed, or has no Muon")

from tests.leaks.recipe import Recipe, check
from tests.leaks.torch_flags import RECIPES as BY_FLAGS
from tests.leaks.torch_masks import RECIPES as BY_MASKS

RECIPES = [*BY_FLAGS, *BY_MASKS]


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.name)
def test_a_recipe(recipe: Recipe, tmp_path: Path) -> None:
    check(recipe, tmp_path)
