"""A log read back equals what the routes answer, in both loaders, whatever happened to it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import tb_pastnet as pastnet
from tb_pastnet.core.violation import Violation
from tests import event_files as files
from tests import probed
from tests.contract.test_http_api import sample_log
from tests.contract.test_own_writer import write_own
from tests.read_back import check
from tests.security.test_hostile_names import LAYERS, RUNS
from tests.tensorboards import LOADERS, board

pytestmark = pytest.mark.promise("read_back")


def restarted(logdir: Path) -> None:
    """Back by 20 steps, with masks, a probe and violations on both sides; then two at a time."""
    rng = np.random.default_rng(3)
    for ordinal, steps in ((1, range(1, 61)), (2, range(41, 81)), (3, range(70, 90, 2))):
        writer = files.LineageWriter(
            logdir, ordinal=ordinal, lineage=ordinal * 77, first_step=steps[0], origin="one"
        )
        writer.describe(steps[0], audited=ordinal == 2)
        held = {("kept", "conv1/kernel"): rng.random(36) > 0.4}
        writer.masks(steps[0], held)
        moved = Violation("conv1/kernel", ordinal, steps[3], steps[7], 1, 9, 0.5, "momentum")
        writer.violations(steps[7], [moved])
        probed.written(writer, steps)
        kernel = files.codes(steps, 4, seed=ordinal)
        files.freeze(kernel, slice(9, None), slice(1, 3))
        files.poison(kernel, slice(5, 7), slice(0, 1))
        writer.records(steps, {"conv1/kernel": kernel}, thinned=ordinal, notes={"slow disk": 2})
        if ordinal > 1:
            writer.close(steps[-1])


def unaudited(logdir: Path) -> None:
    """What is held moves, and nobody looked: the records tell."""
    writer = files.LineageWriter(logdir)
    writer.describe(0)
    kernel = files.freeze(files.codes(range(1, 41), 4), slice(10, None), slice(0, 2))
    kernel[4, 20:25, 1] = kernel[3, 20:25, 1] = 0
    files.prune(kernel, slice(30, None), slice(3, 4))
    writer.records(range(1, 41), {"conv1/kernel": kernel})


def reshaped(logdir: Path) -> None:
    """A layer is wider after a restart, and another one is gone."""
    files.write_run(logdir, steps=range(1, 21), lineage=1)
    files.write_run(
        logdir, steps=range(11, 31), ordinal=2, lineage=2, layers={"conv1": 5, "head": 2}
    )


def own_writers(logdir: Path) -> None:
    write_own(logdir, "mine", [1, 2, 3, 4, 3, 4, 5])
    write_own(logdir, "a", [1, 2])
    files.write_run(logdir, "a")


def hostile(logdir: Path, every: int = 1) -> None:
    for number, run in enumerate(RUNS[::every]):
        files.write_run(logdir, run, steps=range(1, 4), lineage=number + 1)
    files.write_run(logdir, "x", steps=range(1, 4), layers=dict.fromkeys(LAYERS[::every], 2))


def some_hostile(logdir: Path) -> None:
    hostile(logdir, 4)


def nothing(logdir: Path) -> None:
    """Other runs, an empty writer, garbage under our name, and what began without a record."""
    path = logdir / "others" / "events.out.tfevents.1"
    path.parent.mkdir()
    path.write_bytes(files.frame(files.scalar_event("loss", 1, 0.5)))
    files.LineageWriter(logdir, "begun").describe(0)
    writer = files.LineageWriter(logdir, "garbage")
    writer.describe(0)
    writer.records(range(1, 20))
    writer.put("channels/conv1/kernel", 20, b"garbage")
    writer.put("timeline", 22, b"PAST\x02" + bytes(20))
    own = logdir / "foreign" / "events.out.tfevents.1"
    own.parent.mkdir()
    own.write_bytes(files.frame(files.event("x", 1, b"garbage")))


STORIES = (sample_log, restarted, unaudited, reshaped, own_writers, some_hostile, nothing)


@pytest.mark.parametrize("story", STORIES)
def test_it_equals_the_routes(tmp_path: Path, story: Callable[[Path], None]) -> None:
    compare(tmp_path, "fast", story)


@pytest.mark.parametrize(
    "story",
    [
        story if story is restarted else pytest.param(story, marks=pytest.mark.prove)
        for story in STORIES
    ],
)
def test_it_equals_the_routes_of_the_slow_loader(
    tmp_path: Path, story: Callable[[Path], None]
) -> None:
    compare(tmp_path, "slow", story)


def compare(logdir: Path, loader: str, story: Callable[[Path], None]) -> None:
    story(logdir)
    with board(logdir, loader) as here:
        assert check(here, pastnet.read(logdir)) > 0


@pytest.mark.prove
@pytest.mark.promise("hostile_names")
@pytest.mark.parametrize("loader", LOADERS)
def test_all_hostile_names_are_read_back_verbatim(tmp_path: Path, loader: str) -> None:
    hostile(tmp_path)
    with board(tmp_path, loader) as here:
        log = pastnet.read(tmp_path)
        assert list(log.runs["x"].layers) == LAYERS
        assert {*log.runs} == {*RUNS, "x"}
        assert check(here, log) > 0


def test_a_value_without_a_tensor_is_counted_as_the_fast_loader_counts_it(tmp_path: Path) -> None:
    writer = files.LineageWriter(tmp_path)
    writer.describe(0)
    writer.records(range(1, 20))
    writer.put("channels/conv1/kernel", 21, None)
    with board(tmp_path, "fast") as here:
        log = pastnet.read(tmp_path)
        assert check(here, log) > 0
    assert log.runs["a"].layers["conv1"].account.unreadable == 1
