"""What is meant to learn and stands still is told, with what the optimizer was never given."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch", "2.9", reason="torch isn't installed, or has no Muon")

from tests.leaks.still_recipes import RECIPES, Still


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.name)
def test_a_recipe(recipe: Still, tmp_path: Path) -> None:
    recipe.check(tmp_path)
