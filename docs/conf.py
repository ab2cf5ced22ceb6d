"""The site of the documentation: `python3 dev.py docs` builds it."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from textwrap import indent
from types import SimpleNamespace
from typing import Any

from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx
from sphinx.ext.autodoc.mock import mock

DOCS = Path(__file__).parent
ROOT = DOCS.parent
REPOSITORY = "https://github.com/tb-pastnet/tb_pastnet"
WHOLE = {
    "contributing/changelog": "CHANGELOG.md",
    "contributing/contributing": "CONTRIBUTING.md",
    "explanation/security": "SECURITY.md",
    "reference/http": "tb_pastnet/serve/http_api.md",
}
"""Pages whose text is a file elsewhere; their own files only link to it."""

project, author = "tb_pastnet", "tb_pastnet"
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "tb_pastnet"
smartquotes_action = "D"  # dashes; "epoch" is a value, whose quotes stay
html_theme_options = {
    "source_repository": REPOSITORY,
    "source_branch": "main",
    "source_directory": "docs/",
}
myst_enable_extensions = ["attrs_inline"]
myst_heading_anchors = 4  # as GitHub has them
nb_execution_mode = "off"  # a test runs the notebook, the site shows what is stored in it
default_role = "code"  # docstrings have single backticks

# The reference is made without the frameworks, so building the site takes seconds.
autodoc_mock_imports = ["h5py", "jax", "keras", "lightning", "tensorflow", "torch", "transformers"]
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_member_order = "bysource"
napoleon_use_rtype = False
napoleon_use_ivar = True  # an attribute may be a property as well
add_module_names = False
autodoc_type_aliases = {
    "npt.ArrayLike": "ArrayLike",
    "Floats": "Floats",
    "Integers": "Integers",
    "Flags": "Flags",
}
nitpicky = True
nitpick_ignore_regex = [("py:class", ".*")]  # types are of other projects, or said in words
suppress_warnings = ["ref.python"]  # `Masks` in a type is that of Keras or of v1

sys.path.insert(0, str(ROOT))
with mock(autodoc_mock_imports):  # their versions are checked, and a decorated class is to stay one
    import keras
    import tensorflow

    keras.__version__ = tensorflow.__version__ = "999"
    keras.saving = SimpleNamespace(register_keras_serializable=lambda **_: lambda cls: cls)
    import tb_pastnet.keras.layers.masked  # noqa: F401

UNSEARCHED = "---\nnosearch: true\n---\n"
"""Leaves a page out of the site's search: the changelog has every word."""

MEASURED = {"benchmarks/index", "benchmarks/performance", "benchmarks/promises"}

FENCE = re.compile(r"^```\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGE = re.compile(r"https://tb-pastnet\.github\.io/tb_pastnet/([\w/]+)\.html(?:#[\w-]+)?")
LINK = re.compile(r"(\]\()([^)#\s:]+)((?:#[^)\s]*)?\))")
PICTURE = re.compile(
    r'<picture>\s*<source[^>]*srcset="([^"]+)">\s*<img alt="([^"]*)" src="([^"]+)">\s*</picture>'
)


def _read(_app: Sphinx, page: str, source: list[str]) -> None:
    """Makes of a page's text what the site needs; the files are written for GitHub."""
    file = ROOT / WHOLE[page] if page in WHOLE else DOCS / f"{page}.md"
    text = file.read_text("utf-8") if page in WHOLE else source[0]
    if file.suffix != ".md" or not file.exists():
        return
    pages = {(ROOT / name).resolve(): DOCS / f"{page}.md" for page, name in WHOLE.items()}

    def relink(link: re.Match[str]) -> str:
        target = (file.parent / link[2]).resolve()
        target = pages.get(target, target)
        if not target.exists() or target == file:
            return link[0]  # Sphinx warns of it
        if DOCS in target.parents:
            return f"{link[1]}{os.path.relpath(target, (DOCS / page).parent)}{link[3]}"
        kind = "tree" if target.is_dir() else "blob"
        return f"{link[1]}{REPOSITORY}/{kind}/main/{target.relative_to(ROOT)}{link[3]}"

    text = PICTURE.sub(r"![\2](\3){.only-light}\n![\2](\1){.only-dark}", text)
    about = UNSEARCHED if page.startswith("contributing/") or page in MEASURED else ""
    contents = _contents(text) if file.name == "index.md" else ""
    source[0] = about + LINK.sub(relink, text) + contents


def _contents(text: str) -> str:
    """The contents of a section: the pages next to its index, or the sections below, as linked."""
    linked = r"\]\(((?:\.\./\w+/)?\w+|\w+/index)\.(?:md|ipynb)\)"
    pages = dict.fromkeys(re.findall(linked, text))
    return "\n\n```{toctree}\n:hidden:\n\n" + "\n".join(pages) + "\n```\n"


def _docstring(_app: Sphinx, what: str, *others: Any) -> None:
    """Makes links of the pages that a docstring names, and blocks of what is fenced."""
    lines = others[-1]
    text = PAGE.sub(r":doc:`/\1`", "\n".join(lines))
    lines[:] = FENCE.sub(lambda match: "::\n\n" + indent(match[1], "    "), text).split("\n")
    if what in {"attribute", "property"}:
        lines[:0] = ["..", ""]  # else what precedes a colon is taken for the type


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("source-read", _read)
    app.connect("autodoc-process-docstring", _docstring, priority=400)  # before napoleon
    app.add_lexer("csv", TextLexer)
