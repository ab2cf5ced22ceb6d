"""What is told of the latest records is what is told of them where all are read, in whatever log."""

from __future__ import annotations

import tempfile
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import tb_pastnet as pastnet
from tb_pastnet.reader.log import Run
from tb_pastnet.reader.overview import Overview
from tests.commands import command
from tests.examples import examples
from tests.generated_logs import DAMAGED, WHOLE, Made

pytestmark = pytest.mark.promise("read_back")
SOME = settings(examples(0.6), suppress_health_check=list(HealthCheck))
BY_RECORD = (
    "steps", "moving", "reactivated", "quiet", "frozen", "pruned",
    "violated", "nonfinite", "mean_delta", "pruned_weights", "sparsity",
)  # fmt: skip
OVERVIEW = Run.overview


def of_all(run: Run, threshold: float, latest: int | None) -> Overview:
    """An overview that reads everything."""
    return OVERVIEW(run, threshold)


def compare(made: Made) -> None:
    with tempfile.TemporaryDirectory() as folder:
        made.write(Path(folder))
        told = command("report", folder, "--json").out
        with mock.patch.object(Run, "overview", of_all):
            assert told == command("report", folder, "--json").out
        for run in pastnet.read(folder).runs.values():
            whole = run.overview(0.05)
            for latest in (1, 2, 9, 1000):
                some = run.overview(0.05, latest)
                for name in BY_RECORD:
                    expected = getattr(whole, name)[-latest:]
                    np.testing.assert_array_equal(getattr(some, name), expected, name)
                assert some.accounts == whole.accounts
                np.testing.assert_array_equal(some.prunable_weights, whole.prunable_weights)


@SOME
@given(made=WHOLE)
def test_of_whole_logs(made: Made) -> None:
    compare(made)


@SOME
@given(made=DAMAGED)
def test_of_damaged_logs(made: Made) -> None:
    compare(made)
