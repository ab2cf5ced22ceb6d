"""Requests that fail one at a time: what isn't loaded is never said to be missing, and what was known stays."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest

from tests.e2e.browser import clean
from tests.e2e.conftest import ROOT, Tab, known, tensorboard, wait
from tests.e2e.held import RECORDS as HELD_RECORDS
from tests.e2e.held import RUNS as HELD_RUNS
from tests.e2e.held import held_story
from tests.e2e.probe_story import RECORDS as PROBE_RECORDS
from tests.e2e.probe_story import RUNS as PROBE_RUNS
from tests.e2e.probe_story import probe_story
from tests.sampled import sampled

pytestmark = pytest.mark.promise("failed_requests")

LEAKY = "held/ticket"
SCENES: dict[str, dict[str, Any]] = {
    "findings": {"v": "findings"},
    "network": {"v": "network"},
    "versus": {"v": "network", "vs": 1, "b": LEAKY, "gr": "probed/.*"},
    "layer": {"v": "layer", "l": "conv1", "r": LEAKY, "c": 2, "vs": 1, "b": "held/calm"},
    "compare": {"v": "compare", "r": "held/calm", "r2": LEAKY},
    "function": {"v": "function"},
    "audit": {"v": "network", "a": LEAKY},
}
"""Addresses of what the page shows."""
ROUTES = {
    "findings": ("index", "overview", "records", "findings"),
    "network": ("index", "overview", "records", "violations"),
    "versus": ("index", "overview", "records", "violations"),
    "layer": ("index", "overview", "layer", "channel", "overlap"),
    "compare": ("index", "overview", "records", "layer", "overlap", "overlap_layers"),
    "function": ("index", "records", "function"),
    "audit": ("index", "overview", "records", "violations"),
}
"""What each of them asks for, wherever the pointer is."""
MODES = ("500", "cut off", "hang", "login page", "404", "short", "gone")
CASES = [(scene, route, mode) for scene in SCENES for route in ROUTES[scene] for mode in MODES]
PAUSES = (5, 10, 20, 40)
"""Seconds after which what failed is asked for again; then once a minute."""


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    """Runs with masks, violations and probes."""
    logdir = tmp_path_factory.mktemp("failing") / "logs"
    held_story(logdir / "held")
    probe_story(logdir / "probed")
    with tensorboard(logdir) as tab:
        runs, records = HELD_RUNS + PROBE_RUNS, HELD_RECORDS + PROBE_RECORDS
        wait(lambda: known(tab, runs, records), "all records")
        yield tab


@pytest.fixture(scope="module")
def healthy(log: Tab) -> Callable[[str], Any]:
    """What the page shows of a scene if nothing fails."""
    return cache(lambda scene: clean(log.drive("healthy", hash=SCENES[scene])))


def absences() -> list[re.Pattern[str]]:
    """All that the page says where there is nothing; dashes and counts of 0, too."""
    source = (ROOT / "frontend/src/data/absent.ts").read_text("utf-8")
    words = re.findall(r'^  \w+: "([^"]+)",$', source, re.MULTILINE)
    assert len(words) > 15
    patterns = [re.compile(re.escape(word), re.IGNORECASE) for word in words]
    return [*patterns, re.compile("^\\W*–\\W*$"), re.compile(r"\b0 (?!of)[a-z]{3,}")]


def absent(texts: list[str]) -> Counter[str]:
    """How often each of them is said."""
    return Counter(
        {
            pattern.pattern: count
            for pattern in absences()
            if (count := sum(bool(pattern.search(text)) for text in texts))
        }
    )


def most_requests(seconds: float) -> int:
    """For an address in so many seconds: by the pauses, and one more for each of two reasons to ask at once."""
    rest = seconds - sum(PAUSES)
    return 3 + sum(seconds >= sum(PAUSES[:n]) for n in range(1, 5)) + max(0, int(rest // 60))


# So that each scene and each mode is among them.
@pytest.mark.parametrize(("scene", "route", "mode"), sampled(CASES, every=27, first=22))
def test_what_fails_is_never_said_to_be_missing(
    log: Tab, healthy: Callable[[str], Any], scene: str, route: str, mode: str
) -> None:
    usual = healthy(scene)
    assert set(ROUTES[scene]) <= set(usual["routes"])
    seen = clean(log.drive("failing", hash=SCENES[scene], route=route, mode=mode))
    for stage in ("fresh", "known"):
        assert absent(seen[stage]["said"]) <= absent(usual["said"]), stage
        assert seen[stage]["retries"] >= 1, stage
    for stage in ("healed", "again"):
        assert seen[stage]["lines"] == usual["lines"], stage
        assert max(seen[stage]["asked"]) <= most_requests(seen[stage]["seconds"]), stage
    # What was known stays: of lines that are no longer there none was of data.
    assert Counter(usual["lines"]) <= Counter(seen["known"]["lines"])


@pytest.mark.parametrize("mode", ["500", "cut off", "login page"])
def test_a_table_that_fails_is_not_saved(log: Tab, mode: str) -> None:
    seen = clean(log.drive("unsaved", mode=mode))
    assert "not saved. Could not " in seen["text"]
    assert seen["name"].endswith(".csv")
    assert seen["alerts"] == 0
