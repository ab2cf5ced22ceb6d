"""A new user's path: whatever is missing, something says in words what to do next."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from tests.e2e.browser import clean
from tests.e2e.conftest import BROWSED, ROOT, known, tensorboard, wait
from tests.e2e.stories import LAYERS, neighbour
from tests.event_files import LineageWriter, write_run

VIEWS = ("findings", "network", "layer", "compare", "function")


def test_without_the_plugin_there_is_no_tab_and_the_docs_say_why(tmp_path: Path) -> None:
    """As where TensorBoard was started before the installation, or in another environment."""
    logdir = tmp_path / "logs"
    write_run(logdir)
    without = "from tensorboard import default\ndefault.get_dynamic_plugins = lambda: []"
    with tensorboard(logdir, first=without) as tab:
        found = clean(tab.drive("arrive", plugin=False))
    assert "pastnet" not in found["listing"]
    assert "scalars" in found["listing"]
    assert (found["frames"], "PastNet" in found["bar"]) == (0, False)
    [link] = re.findall(
        r"what to do when it isn't there\]\((.+?)\)", (ROOT / "README.md").read_text("utf-8")
    )
    docs = re.sub(r"\s+", " ", (ROOT / link).read_text("utf-8"))
    [row] = re.findall(r"\| no \*PastNet\* among the tabs.*? \|\s(?=\|)", docs)
    for words in ("started before the installation", "another environment", "start it again"):
        assert words in row


@pytest.mark.promise("absent_parts")
@pytest.mark.parametrize(
    ("first", "words"),
    [
        (
            "import tb_pastnet.serve.plugin as plugin\nplugin._files = lambda static: {}",
            ("The page of PastNet is missing", "Reinstall tb-pastnet", "python3 dev.py bundle"),
        ),
        (
            "import sys\nsys.modules['tb_pastnet.serve.routes'] = None",
            (
                "PastNet could not be loaded",
                "tb_pastnet.serve.routes",
                "pip install --force-reinstall tb-pastnet",
                "Your logs and the other tabs are not affected",
            ),
        ),
    ],
    ids=["no page", "no part"],
)
def test_what_is_missing_from_the_installation_is_named(
    tmp_path: Path, first: str, words: tuple[str, ...]
) -> None:
    logdir = tmp_path / "logs"
    write_run(logdir)
    with tensorboard(logdir, first=first) as tab:
        found = clean(tab.drive("arrive", plugin=True))
    for part in words:
        assert part in found["text"]


@pytest.mark.parametrize("others", [0, 1], ids=["empty", "another's runs"])
def test_every_view_of_a_log_without_our_data_teaches(tmp_path: Path, others: int) -> None:
    logdir = tmp_path / "logs"
    logdir.mkdir()
    if others:
        neighbour(logdir)
    with tensorboard(logdir) as tab:
        wait(lambda: tab.json("index")["other_runs"] == others, "the other run")
        looked = () if others else VIEWS  # a sentence tells them apart
        found = clean(tab.drive("sayings", views=VIEWS, looked=looked))
        for view in VIEWS:
            text = found[view]["main"]
            assert 'pastnet.watch(model, "runs/a", optimizer, every=10)' in text
            assert (
                "start TensorBoard with --logdir runs. This page looks for data every 10 seconds."
                in text
            )
            assert ("TensorBoard found no runs in this log directory." in text) != bool(others)
            assert ("found 1 run here, none with PastNet data" in text) == bool(others)
        assert [found[view]["axe"] for view in looked] == [[]] * len(looked)


def test_a_run_before_its_first_record_has_every_view_say_what_comes(tmp_path: Path) -> None:
    logdir = tmp_path / "logs"
    LineageWriter(logdir, "young", layers=LAYERS, created=time.time()).describe(0)
    with tensorboard(logdir) as tab:
        wait(lambda: known(tab, 1, 0), "the run")
        said = clean(tab.drive("sayings", views=VIEWS))
    for view in VIEWS:
        assert said[view]["side"] == ["no records yet"]
        text = said[view]["main"]
        assert "Nothing is recorded yet." in text, view
        assert "This page looks for data every 10 seconds." in text, view


def test_a_run_without_records_yet_tells_when_they_come(tmp_path: Path) -> None:
    logdir = tmp_path / "logs"
    neighbour(logdir)
    LineageWriter(logdir, "young", layers=LAYERS).describe(0)
    with tensorboard(logdir) as tab:
        wait(lambda: known(tab, 1, 0), "the run")
        said = clean(tab.drive("sayings", views=VIEWS, looked=VIEWS))
    for view in VIEWS:
        assert said[view]["side"] == ["no records yet"]
        assert said[view]["axe"] == []
    text = said["network"]["main"]
    assert "The first record is made at the first step" in text
    assert "This page looks for data every 10 seconds." in text


@pytest.mark.parametrize("loader", BROWSED)
def test_a_killed_run_shows_all_that_it_wrote_whole(tmp_path: Path, loader: str) -> None:
    logdir = tmp_path / "logs"
    writer = LineageWriter(logdir, "killed", layers=LAYERS, created=time.time() - 9000, block=4)
    writer.describe(0)
    writer.records(range(1, 9))
    whole = writer.path.stat().st_size
    writer.records(range(9, 13))
    with writer.path.open("r+b") as file:  # in the middle of a write
        file.truncate(whole + (writer.path.stat().st_size - whole) // 2)
    with tensorboard(logdir, loader=loader) as tab:
        wait(lambda: known(tab, 1, 8), "what was written")
        said = clean(tab.drive("sayings", views=VIEWS, looked=VIEWS))
        network = clean(tab.drive("network", steps=[8]))
    for view in VIEWS:
        assert said[view]["side"] == ["step 8 · no data for 2 h"]
        [note] = [text for text in said[view]["notes"] if "no end" in text]
        assert "Resume into the same directory to continue this run." in note
        assert said[view]["axe"] == []
    assert "Record a second run" in said["compare"]["main"]
    assert "No probe was recorded" in said["function"]["main"]
    assert said["network"]["alerts"] == said["layer"]["alerts"] == []
    total = network["8"]["rows"][0]
    assert (total[:2], "–" in total) == (["All layers", "killed"], False)


def test_a_killed_run_is_told_from_one_that_ended(tmp_path: Path) -> None:
    logdir = tmp_path / "logs"
    writer = LineageWriter(logdir, "killed", layers=LAYERS, created=time.time() - 9000)
    writer.describe(0)
    writer.records(range(1, 11))
    write_run(logdir, "whole", range(1, 11), lineage=0x51, layers=LAYERS)
    with tensorboard(logdir) as tab:
        wait(lambda: known(tab, 2, 20), "both runs")
        found = clean(tab.drive("sayings", views=["network"]))["network"]
    assert found["side"] == ["step 10 · no data for 2 h", "step 10 · 10 records"]
    [note] = [text for text in found["notes"] if "no end" in text]
    assert note.strip().startswith("killed: no end was recorded: killed, or no longer recording.")
