"""Every public name is in the reference and has an example."""

from __future__ import annotations

import ast
import importlib
import re

import pytest

from tools.steps import ROOT

ROOMS = (
    "tb_pastnet",
    *(f"tb_pastnet.{room}" for room in ("torch", "jax", "numpy", "testing", "v1")),
)
ERRORS, LOG = "tb_pastnet.errors", "tb_pastnet.reader.log"
PREFLIGHT = "tb_pastnet.record.preflight"
OF_A_LOG = {
    "Log": LOG,
    "Run": LOG,
    "Layer": "tb_pastnet.reader.records",
    "Variable": "tb_pastnet.reader.records",
    "Overview": "tb_pastnet.reader.overview",
    "Function": "tb_pastnet.reader.function_series",
    "Overlap": "tb_pastnet.reader.mask_overlap",
    "Violation": "tb_pastnet.reader.violation_list",
    "Lineage": "tb_pastnet.reader.lineage_heads",
    "Finding": "tb_pastnet.core.finding_kinds",
    "Account": "tb_pastnet.core.account",
    "Overhead": "tb_pastnet.format.overhead",
    "Verified": "tb_pastnet.core.verified",
}
"""What `pastnet.read` gives, and the module that has it."""
COLLECTIONS = {"tb_pastnet.v1.MASK_VARIABLES", "tb_pastnet.v1.PAST_VARIABLES"}
"""Names of collections: text, which has no docstring."""


def homes():
    """By the full name of what users reach, but modules, the module that has it."""
    found = {f"{ERRORS}.{name}": ERRORS for name in importlib.import_module(ERRORS).__all__}
    found |= {f"{LOG}.{name}": home for name, home in OF_A_LOG.items()}
    found[f"{PREFLIGHT}.Preflight"] = PREFLIGHT
    for room in ROOMS:
        for name, home in importlib.import_module(room)._HOMES.items():
            if name == "summary":
                found[f"{room}.summary.channels"] = home
            elif (room, name) != ("tb_pastnet", "watch") and not home.endswith(f".{name}"):
                found[f"{room}.{name}"] = home
    return found


PUBLIC = homes()


def documented():
    """The full names that pages document."""
    for page in (ROOT / "docs" / "reference").glob("*.md"):
        module = ""
        for kind, name in re.findall(r"^\.\. auto(\w+):: ([\w.]+)$", page.read_text("utf-8"), re.M):
            if kind == "module":
                module = name
            else:
                yield name if name.startswith("tb_pastnet.") else f"{module}.{name}"


def test_the_reference_has_every_public_name_once_and_no_other():
    assert sorted(documented()) == sorted(PUBLIC)


@pytest.mark.parametrize("name", sorted(PUBLIC.keys() - COLLECTIONS))
def test_it_has_an_example(name):
    # Without importing it: frameworks take seconds to load.
    source = (ROOT / PUBLIC[name].replace(".", "/")).with_suffix(".py").read_text("utf-8")
    [thing] = [
        each
        for each in ast.parse(source).body
        if isinstance(each, ast.ClassDef | ast.FunctionDef) and each.name == name.split(".")[-1]
    ]
    assert ">>> " in ast.get_docstring(thing)
