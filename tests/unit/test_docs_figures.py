"""No measured figure is typed into a page: it stands in a table that a command wrote."""

from __future__ import annotations

import re

import pytest

from tb_pastnet.cli.html_file import MOST_OF_DETAIL
from tb_pastnet.core.quantize import PRECISION
from tb_pastnet.reader.store import CEILING
from tb_pastnet.record.background_writer import WAKING_BYTES
from tb_pastnet.record.resting import MOST_COPIED
from tb_pastnet.record.segments import PUT_SECONDS, SEGMENT_BYTES, LocalSegments
from tb_pastnet.record.sink import QUEUE_BYTES
from tools import bench
from tools.steps import ROOT

WRITTEN_BY_A_COMMAND = re.compile(
    r"<!-- begin of (?P<name>[\w ]+) -->.*?<!-- end of (?P=name) -->|^```.*?^```$|`[^`\n]*`",
    re.DOTALL | re.MULTILINE,
)
FIGURE = re.compile(
    r"\d+(?:[.,]\d+)* ?(?:%|(?:µs|ms|s|seconds?|minutes?|hours?|times|[KMG]i?B|kB)(?!\w))"
)

ANSWERS = ROOT / "docs" / "tab" / "questions.md"
"""Its figures are what the page shows of the demo; tests of the page read them from there."""

ALLOWED = {
    f"{100 * PRECISION:.1f} %": "the precision of what is recorded",
    "4.5 %": "that of a ratio of two, 2^(1/16), rounded up, and of a share",
    "0.07 %": "the precision of a share",
    "0.01 %": "how exactly the overlap by chance is computed",
    "5 %": "the tolerance of a question to both tabs",
    "99.9 %": "the most zeros of a kernel whose zeros are kept",
    "10 %": "the same",
    "20 %": "the same",
    "1 %": "an example's budget",
    "48.7 %": "pruned weights of the demo, whose channels are chosen",
    "81.3 %": "an example of what the page shows",
    f"{MOST_COPIED >> 20} MiB": "how much of frozen weights is copied",
    f"{SEGMENT_BYTES >> 20} MiB": "the size of a segment, and of the queue",
    f"{WAKING_BYTES >> 20} MiB": "what waits before the writing thread is woken",
    f"{CEILING >> 30} GiB": "how much of a log is kept in memory",
    f"{MOST_OF_DETAIL >> 20} MB": "what finds room in an HTML file",
    f"{PUT_SECONDS[0]:.0f} seconds": "from the first upload to the second",
    f"{PUT_SECONDS[1]:.0f} seconds": "between later ones, and the patience with other workers",
    f"{LocalSegments.exit_seconds:.0f} seconds": "how long the end of `fit` waits for a store",
    "1,000 seconds": "a run whose uploads tests/fault/test_stores.py counts",
    "1.3 times": "the most bytes of these",
    "5 minutes": "the patience with other ranks of PyTorch",
    "0.1 s": "how far clocks of two machines may differ",
}
"""What stands in prose all the same, and what it is."""


def figures(text: str) -> set[str]:
    return set(FIGURE.findall(WRITTEN_BY_A_COMMAND.sub("", text)))


PAGES = {page: figures(page.read_text("utf-8")) for page in bench.pages() if page != ANSWERS}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_no_measured_figure_is_typed_into_a_page(page):
    assert PAGES[page] - set(ALLOWED) == set()


def test_what_is_allowed_stands_somewhere():
    assert set(ALLOWED) - set().union(*PAGES.values()) == set()
    assert QUEUE_BYTES == SEGMENT_BYTES


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a step takes 8 ms, or 1.2 % of it", {"8 ms", "1.2 %"}),
        ("9.5 ms (8 to 11), 21 MiB more, 1.04 times as long", {"9.5 ms", "21 MiB", "1.04 times"}),
        ("20 samples, 3 steps, 10 Blocks", set()),
        ("`budget=1 %` and\n```sh\nsleep 9 s\n```\n", set()),
        ("<!-- begin of idle -->\n| 3 ms |\n<!-- end of idle -->, 4 s.", {"4 s"}),
    ],
)
def test_what_counts_as_a_figure(text, expected):
    assert figures(text) == expected
