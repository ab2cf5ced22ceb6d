"""The page at other addresses than TensorBoard's own finds all that it asks for."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.browser import clean
from tests.e2e.conftest import Tab, known, tensorboard, wait
from tests.e2e.proxy import proxy
from tests.e2e.stories import LAYERS
from tests.event_files import write_run

pytestmark = pytest.mark.promise("prefixes")
LAYER = "block/conv2"
THEIRS = ("/experiment/defaultExperimentId/", "/font-roboto/")
"""What TensorBoard's own page asks for where its server has nothing: the runs of an experiment, and
its fonts, from the root of the host whatever its prefix is."""


@contextlib.contextmanager
def prefix(logdir: Path) -> Iterator[str]:
    with tensorboard(logdir, "--path_prefix", "/deep/er") as tab:
        yield f"{tab.base}/deep/er"


@contextlib.contextmanager
def experiment(logdir: Path) -> Iterator[str]:
    with tensorboard(logdir) as tab:
        yield f"{tab.base}/experiment/some.ID-1"


@contextlib.contextmanager
def proxy_that_strips(logdir: Path) -> Iterator[str]:
    with tensorboard(logdir) as tab, proxy(tab.base, "/tools/board", strips=True) as outside:
        yield outside


@contextlib.contextmanager
def proxy_of_a_prefix(logdir: Path) -> Iterator[str]:
    with (
        tensorboard(logdir, "--path_prefix", "/tools/board") as tab,
        proxy(tab.base, "/tools/board", strips=False) as outside,
    ):
        yield outside


@contextlib.contextmanager
def proxy_of_an_experiment(logdir: Path) -> Iterator[str]:
    with proxy_that_strips(logdir) as outside:
        yield f"{outside}/experiment/some.ID-1"


LONG = pytest.mark.prove


@pytest.mark.parametrize(
    "way",
    [
        prefix,
        pytest.param(experiment, marks=LONG),
        pytest.param(proxy_that_strips, marks=LONG),
        pytest.param(proxy_of_a_prefix, marks=LONG),
        pytest.param(proxy_of_an_experiment, marks=LONG),
    ],
    ids=lambda way: way.__name__,
)
def test_the_page_is_answered_everything(
    tmp_path: Path,
    way: Callable[[Path], contextlib.AbstractContextManager[str]],
    figure: Callable[..., None],
) -> None:
    logdir = tmp_path / "logs"
    for number, run in enumerate("ab"):
        write_run(logdir, run, range(1, 11), layers=LAYERS, lineage=number + 1)
    with way(logdir) as base:
        tab = Tab(base)
        wait(lambda: known(tab, 2, 20), "the runs")
        seen = tab.drive("prefixed", layer=LAYER)
    everything = seen["result"]["answers"]
    answers = [one for one in everything if not any(part in one[0] for part in THEIRS)]
    lost = sum(status == 404 for _, status in everything) - sum(s == 404 for _, s in answers)
    if lost:
        said = ("Failed to load resource: the server responded with a status of 404", "ERROR ")
        seen["errors"] = [one for one in seen["errors"] if not one.startswith(said)]
    found = clean(seen)
    assert found["alerts"] == []
    asked = [url for url, _ in answers]
    assert all(url.startswith(f"{base}/") for url in [*asked, found["link"]])
    assert {url.partition("?")[0].rpartition("/")[2] for url in asked} >= {
        "index.js",
        "index",
        "findings",
        "overview",
        "records",
        "layer",
        "channel",
        "overlap",
    }
    assert [(url, status) for url, status in answers if status >= 400] == []
    more = f" ({lost} of what TensorBoard's own page asks for)" if lost else ""
    figure(f"{way.__name__.replace('_', ' ')}: {len(asked)} answers, 0 of 404{more}")
