"""`export --format html`: one file that opens from disk, asks for nothing, and shows what the tab shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tb_pastnet as pastnet
from tests.commands import command
from tests.e2e.browser import clean, drive
from tests.e2e.made_logs import network
from tests.e2e.texts import share_text

VIEWS = {
    "findings": {},
    "network": {"v": "network"},
    "layer": {"v": "layer", "l": "conv1", "r": "freeze_early"},
    "compare": {"v": "compare"},
    "function": {"v": "function"},
}


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("alone") / "logs"
    network(folder)
    return folder


@pytest.fixture(scope="module")
def found(log: Path) -> dict[str, Any]:
    file = log.parent / "page.html"
    assert command("export", log, file, "--format", "html").code == 0
    seen: dict[str, Any] = clean(drive("", "alone", file=str(file), views=VIEWS))
    assert set(seen["asked"]) == {f"file://{file}"}
    return seen


def test_every_view_shows_its_pictures(found: dict[str, Any]) -> None:
    for view, shown in found["shown"].items():
        assert shown["alerts"] == [], view
        assert shown["canvases"] > 0, view
    assert "conv1" in found["shown"]["layer"]["title"]


def test_the_numbers_are_those_of_the_log(found: dict[str, Any], log: Path) -> None:
    read = pastnet.read(log)
    # What several runs have alike is one line.
    said = list(dict.fromkeys(one.text for one in read.findings()))
    assert found["shown"]["findings"]["findings"] == said
    heads, compared = found["shown"]["network"]["heads"], 0
    for run in read.runs.values():
        last = run.overview(latest=1)
        quiet, channels = int(last.quiet.sum()), int(last.channels.sum())
        if quiet > channels / 2:  # then it is the first number of its head
            assert any(f"{share_text(quiet, channels)} quiet" in head for head in heads), run
            compared += 1
    assert compared > 0
