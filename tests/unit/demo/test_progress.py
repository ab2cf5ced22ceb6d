from __future__ import annotations

import io

import pytest

from demo import progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("installed", [True, False])
@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
def test_items_go_through_with_a_bar_in_a_terminal_alone(monkeypatch, stream, installed):
    pytest.importorskip("tqdm", reason="tqdm isn't installed")
    if not installed:
        monkeypatch.setattr(progress, "find_spec", lambda name: None)
    monkeypatch.setattr(progress, "DELAY", 0)
    monkeypatch.setattr("sys.stderr", out := stream())
    assert list(progress.bar(iter("abc"), 3, "Training")) == ["a", "b", "c"]
    assert ("Training: 100%" in out.getvalue()) == (installed and stream is Terminal)
