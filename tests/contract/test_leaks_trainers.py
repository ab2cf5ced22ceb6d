"""Each recipe of Lightning and PEFT: its leak stands in the log at its first record, with its cause."""

from __future__ import annotations

from pathlib import Path

import pytest

for package in ("torch", "lightning.pytorch", "peft"):
    pytest.importorskip(package, reason=f"{package} isn't installed")

from tests.leaks.recipe import Recipe, check  # noqa: E402
from tests.leaks.torch_trainers import RECIPES  # noqa: E402


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.name)
def test_a_recipe(recipe: Recipe, tmp_path: Path) -> None:
    check(recipe, tmp_path)
