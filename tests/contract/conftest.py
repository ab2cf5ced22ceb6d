"""What tests of the described routes share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.contract.test_http_api import sample_log
from tests.tensorboards import LOADERS, Board, board


@pytest.fixture(scope="module", params=LOADERS)
def here(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Board]:
    """The log of the samples in `http_api.md`, in each loader."""
    logdir = tmp_path_factory.mktemp("log")
    sample_log(logdir)
    with board(logdir, request.param) as found:
        yield found
