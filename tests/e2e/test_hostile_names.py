"""Names are text and nothing else, in every view and with both loaders."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e import hostile as log
from tests.e2e.browser import clean
from tests.e2e.conftest import BROWSED, known, tensorboard, wait

pytestmark = pytest.mark.promise("hostile_names")

Found = dict[str, Any]


@pytest.fixture(scope="module", params=BROWSED)
def found(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Found]:
    """All that was seen on the way through the views, without an error, a dialog or a blocked load.

    At each change every fourth layer is opened, and every name is in each of the other views; the proof opens all.
    """
    opened = log.LAYERS if request.param == "slow" else log.LAYERS[::4]
    logdir = tmp_path_factory.mktemp("hostile") / "logs"
    log.hostile(logdir)
    with tensorboard(logdir, loader=request.param) as tab:
        wait(lambda: known(tab, len(log.RUNS), log.RECORDS), "all records")
        index = tab.json("index")
        assert sorted(run["name"] for run in index["runs"]) == sorted(log.RUNS)
        assert tuple(layer["id"] for layer in index["networks"][0]["layers"]) == log.LAYERS
        seen = tab.drive(
            "hostile",
            runs=log.RUNS,
            layers=log.LAYERS,
            opened=opened,
            outputs=log.OUTPUTS,
            inputs=log.INPUTS,
            note=log.NOTE,
            cause=log.CAUSE,
        )
        yield {**clean(seen), "opened": opened}


def test_names_did_nothing(found: Found) -> None:
    assert not {"img", "iframe", "object", "embed", "link", "form"} & set(found["elements"])
    assert found["polluted"] == []


def test_the_findings_show_them(found: Found) -> None:
    seen = found["findings"]
    assert seen["runs"] == []
    assert set(seen["told"]) == set(log.RUNS)
    assert any(log.LAYERS[0] in text for text in seen["texts"])


def test_the_network_shows_them(found: Found) -> None:
    seen = found["network"]
    assert (seen["runs"], seen["spaces"], seen["table"], seen["notes"]) == ([], [], [], [])
    for name, label in zip(log.LAYERS, seen["labels"], strict=True):
        whole = "…" not in label
        assert not whole or name == label or name.endswith(f"/{label}")  # below its group
    assert len(set(seen["labels"])) == len(seen["labels"])
    assert seen["titles"] == [f"{name}: Conv2D. Open the layer." for name in log.LAYERS]
    assert set(log.LAYERS) <= set(seen["tips"])
    assert set(seen["tipRun"]) <= set(log.RUNS)


def test_the_layer_view_shows_them(found: Found) -> None:
    for name, seen in zip(found["opened"], found["layers"], strict=True):
        assert seen["title"] == [name]
        assert seen["runs"] == []
        assert sorted(seen["tabs"]) == sorted(seen["barcodes"]) == sorted(log.RUNS)
        assert seen["variables"] == ["kernel (kernel)", "bias (bias)"]
        assert log.CAUSE in seen["violation"][0]
        assert name in seen["label"]
        assert name in seen["caption"][0]


def test_the_list_of_violations_shows_them(found: Found) -> None:
    seen = found["audit"]
    assert (seen["names"], seen["run"]) == ([], [])
    assert set(seen["cause"]) == {log.CAUSE}


def test_the_compare_view_shows_them(found: Found) -> None:
    seen = found["compare"]
    assert (seen["names"], seen["tables"]) == ([], [])
    assert [sorted(names) for names in seen["choices"]] == [sorted(log.RUNS)] * 2
    assert any(run in text for text in seen["tips"] for run in log.RUNS)


def test_the_function_view_shows_them(found: Found) -> None:
    seen = found["function"]
    assert (seen["names"], seen["inputs"], seen["tables"]) == ([], [], [])


def test_pictures_show_where_the_beginning_of_a_name_is_cut_off(found: Found) -> None:
    """Compare shows the ends of names, as of the layer of 10,000 letters."""
    cut = found["compare"]["downloads"]["cut"]
    assert cut
    assert all(re.fullmatch("…x*", word) for word in cut)


def test_pictures_write_names_from_right_to_left(found: Found) -> None:
    """Each as one text from its own side, cut at its end where there is no room."""
    texts = [text for text in found["network"]["downloads"]["foreign"] if ">ע" in text]
    assert texts
    assert all('direction="rtl" text-anchor="end"' in text for text in texts)


@pytest.mark.parametrize("of", ["network", "layer", "compare"])
def test_downloads_have_names_that_are_one_file(found: Found, of: str) -> None:
    seen = found["layerDownloads"] if of == "layer" else found[of]["downloads"]
    assert len(seen["names"]) == len(seen["labels"]) >= 3
    assert len(set(seen["names"])) == len(seen["names"])
    for name in seen["names"]:
        assert re.fullmatch(
            r"pastnet-[^/\\\x00-\x1f\u202a-\u202e<>:\"|?*]+\.(png|svg|csv)", name
        ), name
        assert len(name.encode()) <= 255, name
