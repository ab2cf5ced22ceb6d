"""docs/how_to/leaks.md shows the recipes that are tested, and there are enough of each kind."""

from __future__ import annotations

import re

import pytest

VERSIONS: dict[str, str | None] = {
    "torch": "2.9",
    "lightning.pytorch": None,
    "peft": None,
    "jax": "0.6",
    "optax": "0.2.6",
    "flax": "0.11",
    "equinox": "0.11",
}
for package, version in VERSIONS.items():
    pytest.importorskip(package, version, reason=f"{package} isn't installed")

from tb_pastnet.core.violation import CAUSES  # noqa: E402
from tests.leaks import still_recipes  # noqa: E402
from tests.leaks.table import PAGE, RECIPES, TABLES, page  # noqa: E402
from tools.steps import ROOT  # noqa: E402


def test_the_page_shows_the_recipes() -> None:
    text = PAGE.read_text("utf-8")
    assert text == page(text)
    clean = sum(not recipe.moved_by for recipe in RECIPES)
    assert f"{len(RECIPES)} recipes of freezing, of which {len(RECIPES) - clean} leak" in text


@pytest.mark.parametrize(
    "name", ["docs/how_to/index.md", "docs/how_to/torch.md", "docs/how_to/jax.md"]
)
def test_other_pages_count_as_many(name: str) -> None:
    told = re.findall(r"(\d+) (?:tested )?recipes", (ROOT / name).read_text("utf-8"))
    of_jax = len(TABLES["JAX"])
    assert {*map(int, told)} == {of_jax if name.endswith("jax.md") else len(RECIPES)}


def test_names_are_unique() -> None:
    names = [(recipe.framework, recipe.name) for recipe in RECIPES]
    assert len({*names}) == len(names)


def test_there_are_enough_of_each_kind() -> None:
    leaks = [recipe for recipe in RECIPES if recipe.moved_by]
    assert len(RECIPES) >= 40
    assert len(RECIPES) - len(leaks) >= 12
    named = [
        recipe for recipe in leaks if recipe.moved_by in CAUSES and recipe.moved_by != "unknown"
    ]
    assert len(named) >= 0.9 * len(leaks)
    told = [recipe for recipe in still_recipes.RECIPES if recipe.finding == "stalled"]
    assert len(told) >= 10
