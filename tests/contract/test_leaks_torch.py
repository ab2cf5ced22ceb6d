"""Each recipe of torch: its leak stands in the log at its first record, with its cause."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="torch isn't installed: an extra of its own")

from tests.leaks.recipe import Recipe, run_of  # noqa: E402
from tests.leaks.torch_flags import RECIPES as BY_FLAGS  # noqa: E402
from tests.leaks.torch_masks import RECIPES as BY_MASKS  # noqa: E402

RECIPES = [*BY_FLAGS, *BY_MASKS]


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.name)
def test_a_recipe(recipe: Recipe, tmp_path: Path) -> None:
    moved, run = run_of(recipe, tmp_path)
    assert min(moved.values(), default=None) == recipe.begins
    reported = {(each.variable, each.channel): each.first_step for each in run.violations}
    assert reported == moved
    assert {each.cause for each in run.violations} == {*filter(None, [recipe.moved_by])}
