"""The browser, for the tests of the page."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from tests.e2e.browser import BROWSER
from tests.e2e.conftest import ROOT


@pytest.fixture(scope="session")
def browser() -> Iterator[None]:
    """Node and the page's packages; a machine without them can't run these tests."""
    if shutil.which("node") is None:
        pytest.skip("Node isn't installed")
    if not (ROOT / "frontend" / "node_modules" / "playwright-core").is_dir():
        pytest.skip("run `npm ci` in frontend/ first")
    yield
    BROWSER.close()
