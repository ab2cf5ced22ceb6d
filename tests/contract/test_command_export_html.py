"""One file with page and data: the answers in it are those of the routes, and nothing else is asked for."""

from __future__ import annotations

import base64
import gzip
import io
import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest
from werkzeug.datastructures import MultiDict

import tb_pastnet as pastnet
from tb_pastnet.cli import html_file
from tb_pastnet.reader.series_source import LOCAL
from tb_pastnet.serve.http.answers import NotModified
from tb_pastnet.serve.http.parameters import Query
from tb_pastnet.serve.plugin import STATIC
from tb_pastnet.serve.routes import ROUTES
from tests import event_files as files
from tests.commands import command
from tests.contract.test_http_api import sample_log


@pytest.fixture(scope="module")
def logdir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("html") / "logs"
    sample_log(made)
    return made


def exported(logdir: Path, target: Path, *more: str) -> str:
    done = command("export", logdir, target, "--format", "html", *more)
    assert (done.code, done.error) == (0, "")
    assert "open it in a browser" in done.out
    return target.read_text("utf-8")


def answers_in(page: str) -> dict[str, bytes]:
    told = json.loads(re.findall(r"^<script>const ANSWERS = (\{.*\});$", page, re.M)[0])
    return {
        base64.b64decode(key).decode(): gzip.decompress(base64.b64decode(body))
        for key, body in told.items()
    }


def test_every_answer_is_that_of_its_route(logdir: Path, tmp_path: Path) -> None:
    found = answers_in(exported(logdir, tmp_path / "all.html"))
    log = pastnet.read(logdir)
    routes = set()
    for key, body in found.items():
        route, _, query = key.partition("?")
        routes.add(route)
        made = ROUTES[f"/{route}"](Query(log.store, LOCAL, MultiDict(parse_qsl(query))))
        made = made.make() if isinstance(made, NotModified) else made
        plain = gzip.decompress(made.body) if made.packed else made.body
        assert json.loads(body) == json.loads(plain) if route == "index" else body == plain, key
    assert routes == {
        "index", "findings", "violations", "function", "overview", "lanes", "scalars", "records",
        "layer", "channel",
        *(("overlap", "overlap_layers") if len(log.runs) > 1 else ()),
    }  # fmt: skip


def test_it_carries_the_licenses_of_the_packages_in_the_page(logdir: Path, tmp_path: Path) -> None:
    page = exported(logdir, tmp_path / "all.html")
    assert f"<!--\n{(STATIC / 'notices.txt').read_text('utf-8')}-->" in page


def test_the_modules_of_the_page_are_in_it_and_name_only_one_another(
    logdir: Path, tmp_path: Path
) -> None:
    page = exported(logdir, tmp_path / "all.html")
    imports = json.loads(re.findall(r'<script type="importmap">(.*)</script>', page)[0])["imports"]
    assert set(imports) == {f"pastnet/{file.name}" for file in STATIC.glob("*.js")}
    for code in imports.values():
        source = base64.b64decode(code.partition(",")[2]).decode()
        assert "import.meta" not in source
        assert set(re.findall(r'"(pastnet/[\w.-]+\.js)"', source)) <= set(imports)
        assert not re.search(r'(from|import)\s*\(?"\.', source)
    assert not re.search(r"<(link|img|script[^>]+src)", page)


def test_runs_and_the_threshold_are_those_that_were_asked_for(logdir: Path, tmp_path: Path) -> None:
    name = next(iter(pastnet.read(logdir).runs))
    page = exported(logdir, tmp_path / "one.html", "--run", name, "--threshold", "0.25")
    found = answers_in(page)
    index: dict[str, Any] = json.loads(found["index?"])
    assert [run["name"] for run in index["runs"]] == [name]
    assert index["threshold"] == 0.25
    assert any(key.startswith("overview?") and "th=0.25" in key for key in found)
    assert not any(key.startswith("overlap") for key in found)


def test_a_file_that_is_there_is_not_replaced(logdir: Path, tmp_path: Path) -> None:
    target = tmp_path / "mine.html"
    target.write_text("mine")
    done = command("export", logdir, target, "--format", "html")
    assert done.code == 2
    assert "expected a new file" in done.error
    assert target.read_text() == "mine"


def test_a_log_without_runs_is_a_page_too(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    assert set(answers_in(exported(tmp_path / "log", tmp_path / "none.html"))) == {"index?"}


def test_more_runs_than_the_page_lists_are_refused(
    logdir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tb_pastnet.cli.html_file.MOST_LISTED", 1)
    done = command("export", logdir, tmp_path / "all.html", "--format", "html")
    assert (done.code, [*tmp_path.iterdir()]) == (2, [])
    assert "expected at most 1 in one file. Choose some with --run." in done.error


def test_what_no_address_can_name_is_a_sentence(tmp_path: Path) -> None:
    # Only a description can have half a surrogate pair, not a tag: nothing is recorded of it.
    writer = files.LineageWriter(tmp_path / "log", layers={"half\ud800": 2})
    writer.describe(0)
    done = command("export", tmp_path / "log", tmp_path / "all.html", "--format", "html")
    assert (done.code, [path.name for path in tmp_path.iterdir()]) == (2, ["log"])
    assert done.error.startswith("Could not find the layer")


def test_overlaps_of_all_runs_come_before_those_of_pairs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(8):
        files.write_run(tmp_path / "log", f"run{number}", range(1, 5), lineage=number + 1)
    monkeypatch.setattr("tb_pastnet.cli.html_file.MOST_OF_DETAIL", 20_000)
    found = answers_in(exported(tmp_path / "log", tmp_path / "all.html"))
    kinds = [dict(parse_qsl(key.partition("?")[2])) for key in found if key.startswith("overlap?")]
    assert {(kind["step"], kind["unit"], kind["mask"]) for kind in kinds} == {
        (str(step), unit, mask)
        for step in range(1, 5)
        for unit in ("weights", "channels")
        for mask in ("kept", "trainable")
    }


class Full(io.TextIOWrapper):
    """A file on a disk with room for 100 characters."""

    def write(self, text: str) -> int:
        super().write(text[:100])
        raise OSError(28, "No space left on device")


def test_it_is_there_complete_or_not_at_all(
    logdir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = Path.open

    def full(path: Path, mode: str, **more: Any) -> Any:
        if mode == "x":
            return Full(io.FileIO(path, mode), "utf-8")
        return opened(path, mode, **more)

    monkeypatch.setattr(Path, "open", full)
    done = command("export", logdir, tmp_path / "all.html", "--format", "html")
    assert (done.code, [*tmp_path.iterdir()]) == (2, [])
    assert "got No space left on device" in done.error


def test_a_channel_costs_all_records_that_are_read_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tb_pastnet.reader.series.MOST_CELLS", 8 * 12)  # leaves out records
    monkeypatch.setattr("tb_pastnet.reader.wide_series._SMALL", 0)
    files.write_run(tmp_path, "a", range(1, 41), layers={"conv1": 8})
    run = pastnet.read(tmp_path).runs["a"]
    shown = run.layers["conv1"].account.shown
    assert shown < 40
    ((_, _, channels, cells),) = html_file._asked(run, 1e-4).mains
    assert (channels, cells) == (8, 8 * 40)


@pytest.mark.parametrize(("layers", "least", "most"), [(10, 296, 296), (25_000, 1, 8)])
def test_masks_of_many_layers_are_counted_a_few_times_only(
    layers: int, least: int, most: int
) -> None:
    """To count those of 25,000 layers takes many seconds, and the answers are small."""
    mains = [("l", "l/kernel", 4, 96)] * layers
    runs = [html_file._Asked(name, list(range(1, 25)), mains, []) for name in ("a", "b")]
    kept: list[str] = []

    def keep(ask: str) -> int:
        kept.append(ask)
        return len(ask)

    html_file._keep_some(html_file._overlaps(runs), keep)
    assert least <= len(kept) <= most
