"""Each recipe of JAX: its leak stands in the log at its first record, with its cause."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

VERSIONS = {"jax": "0.6", "optax": "0.2.6", "flax": "0.11", "equinox": "0.11"}
for package, version in VERSIONS.items():
    pytest.importorskip(package, version, reason=f"{package} {version} isn't installed")

from tests.leaks.jax_recipes import RECIPES  # noqa: E402
from tests.leaks.recipe import Recipe, check  # noqa: E402
from tests.sampled import sampled  # noqa: E402


# JAX compiles each of them: some at every change.
@pytest.mark.parametrize(
    ("recipe", "audit"),
    sampled(product(RECIPES, ("values", "fingerprints")), every=7),
    ids=lambda each: each if isinstance(each, str) else each.name,
)
def test_a_recipe(recipe: Recipe, audit: str, tmp_path: Path) -> None:
    check(recipe, tmp_path, audit)
