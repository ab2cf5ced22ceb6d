"""What tests of the described routes share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.test_http_api import sample_log
from tests.tensorboards import LOADERS, Board, board


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Schemathesis takes seconds to import, in each process, for tests of the proof alone."""
    alone = collection_path.name == "test_schemathesis.py"
    return True if alone and config.option.markexpr == "not prove" else None


@pytest.fixture(scope="module", params=LOADERS)
def here(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Board]:
    """The log of the samples in `http_api.md`, in each loader."""
    logdir = tmp_path_factory.mktemp("log")
    sample_log(logdir)
    with board(logdir, request.param) as found:
        yield found
