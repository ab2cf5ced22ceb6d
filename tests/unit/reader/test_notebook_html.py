"""What a notebook shows of a log."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import tb_pastnet as pastnet
from tb_pastnet.core.channel_states import NAMES
from tb_pastnet.reader import notebook_html
from tb_pastnet.reader.cache import Cache
from tests import event_files as files
from tests.golden.kept_logs import FOLDER
from tests.security.bombs import counted_cells

HOSTILE = "<img src=x>"


def texts(html: str) -> list[str]:
    return [re.sub("<[^>]+>", "", cell) for cell in re.findall(r"<t[hd].*?</t[hd]>", html)]


@pytest.mark.parametrize("name", ["shown", "stalled", "restarts", "mixed"])
def test_a_run_shows_the_states_of_its_last_record(name: str) -> None:
    for run in pastnet.read(FOLDER / name).values():
        shown = run._repr_html_()
        if not len(run.steps):
            assert "states" not in shown
            continue
        overview = run.overview()
        for row, layer in enumerate(run.layers.values()):
            counts = np.stack([getattr(overview, state)[:, row] for state in NAMES[1:]], axis=1)
            at = max(np.flatnonzero(counts.any(axis=1)), default=-1)
            named = zip(counts[at].tolist(), NAMES[1:], strict=True)
            words = ", ".join(f"{n} {state}" for n, state in named if n) or "no record"
            step = overview.steps[at]
            assert words + ("" if step == run.steps[-1] else f" at step {step}") in texts(shown)
            assert layer.id in texts(shown)
            assert layer.id in layer._repr_html_()


def test_a_layer_shows_what_it_is_and_did() -> None:
    layer = pastnet.read(FOLDER / "shown")["leaky"]["conv1"]
    shown = dict(zip(*2 * [iter(texts(layer._repr_html_()))], strict=True))
    states, counts = np.unique(layer.states()[-1], return_counts=True)
    assert dict(zip(states, counts, strict=True)) == {"frozen": 4, "moving": 4}
    assert shown["states at step 40"] == "4 moving, 4 frozen"
    assert shown["shape"] == "(3, 3, 1, 8)"
    assert shown["relative change Δ"] == (
        f"median {np.median(layer.relative_delta[-1]):.2g}, "
        f"largest {layer.relative_delta[-1].max():.2g}"
    )
    assert "Variable conv1/kernel of run leaky" in layer.variables["kernel"]._repr_html_()


def test_a_layer_that_no_cache_has_room_for_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Cache, "get", lambda _cache, _key, _version, make, *_: make())
    layer = pastnet.read(FOLDER / "shown")["leaky"]["conv1"]
    expected = layer._repr_html_()
    with counted_cells() as cells:
        whole = layer.norm.size
        assert cells[0] >= whole
        of_one, cells[0] = cells[0], 0
        assert layer._repr_html_() == expected
    assert cells[0] == of_one


def test_a_log_shows_its_runs_and_its_warnings() -> None:
    log = pastnet.read(FOLDER / "shown")
    assert texts(log._repr_html_())[:12] == [
        "run", "records", "steps", "layers", "channels", "training",
        "dense", "40", "1 to 40", "4", "50", "ended normally",
    ]  # fmt: skip
    log.warnings = ("one <file>",)
    assert "one &lt;file&gt;" in log._repr_html_()


def test_what_takes_long_to_read_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notebook_html, "MOST_CELLS", 10)
    run = pastnet.read(FOLDER / "sample")["dense"]
    monkeypatch.setattr(run, "overview", None)
    assert "states" not in run._repr_html_()


def test_names_are_text(tmp_path: Path) -> None:
    files.write_run(tmp_path, HOSTILE, layers={HOSTILE: 3})
    log = pastnet.read(tmp_path)
    run = log[HOSTILE]
    for thing in (log, run, run[HOSTILE], run[HOSTILE].variables["kernel"]):
        shown = thing._repr_html_()
        assert "<img" not in shown
        assert "&lt;img src=x&gt;" in shown


def test_a_log_without_runs_says_so(tmp_path: Path) -> None:
    assert f"{tmp_path}: 0 runs" in pastnet.read(tmp_path)._repr_html_()
