"""The tables of docs/how_to/leaks.md, made of the recipes: `python -m tests.leaks.table` writes them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.leaks import jax_recipes, still_recipes, torch_flags, torch_masks, torch_trainers
from tests.leaks.recipe import Recipe

PAGE = Path(__file__).parents[2] / "docs" / "how_to" / "leaks.md"
BEGIN, END = "<!-- Made of the recipes: python -m tests.leaks.table -->\n", "<!-- end -->\n"
TABLES: dict[str, Sequence[Recipe]] = {
    "PyTorch, by `requires_grad_(False)`": torch_flags.RECIPES,
    "PyTorch, declared rows and whole weights": torch_masks.RECIPES,
    "Lightning and PEFT": torch_trainers.RECIPES,
    "JAX": jax_recipes.RECIPES,
}
RECIPES = [recipe for recipes in TABLES.values() for recipe in recipes]


def tables() -> str:
    """All of them, with their headings."""
    parts = []
    for title, recipes in TABLES.items():
        rows = [
            (recipe.name, recipe.framework, _cause(recipe), recipe.advice) for recipe in recipes
        ]
        head = ("recipe", "framework", "moves", "what to do instead, or why nothing moves")
        parts.append(f"## {title}\n\n{_table([head, *rows])}")
    still = [
        (
            each.name,
            each.finding + (", with a note that names it" if each.noted else ""),
            each.advice,
        )
        for each in still_recipes.RECIPES
    ]
    head = ("mistake", "finding", "what to do instead")
    parts.append(f"## Should learn, but doesn't\n\n{_table([head, *still])}")
    return "\n".join(parts)


def _cause(recipe: Recipe) -> str:
    return f"`{recipe.moved_by}`" if recipe.moved_by else "no"


def _table(rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(row)} |" for row in rows]
    lines.insert(1, "|" + " --- |" * lines[0].count(" | ") + " --- |")
    return "\n".join(lines) + "\n"


def page(text: str) -> str:
    """The page with the tables as they should be."""
    head, rest = text.split(BEGIN)
    return f"{head}{BEGIN}\n{tables()}\n{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text("utf-8")), "utf-8")
