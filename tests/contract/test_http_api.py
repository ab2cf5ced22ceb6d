"""The documentation of the routes is true: its samples are what the routes answer."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tb_pastnet.core.violation import Violation
from tb_pastnet.format.function_change import Place
from tb_pastnet.format.overhead import Overhead
from tb_pastnet.serve import plugin
from tb_pastnet.serve.routes import ROUTES
from tests import containers, probed
from tests import event_files as files
from tests.tensorboards import Board, board

ADDRESS = "http://localhost:6006"
DOCUMENT = Path(plugin.__file__).with_name("http_api.md")
HEADING = re.compile(r"^## `(/[a-z_.]+)(?:\?[^`]*)?`$", re.MULTILINE)
BLOCK = re.compile(r"^Sample: `(?P<query>[^`]*)`\n\n```(?P<kind>json|csv)\n(?P<text>.*?)^```$",
                   re.MULTILINE | re.DOTALL)  # fmt: skip


COST = Overhead(
    steps=6,
    training=1.5,
    records=0.01,
    copies=0.001,
    masks=0.0005,
    probe=0.0005,
    writer=0.004,
    bytes=2315,
)


def sample_log(logdir: Path) -> None:
    """Six steps of one layer; at step 4 one of its two channels is frozen.

    At step 5 four weights of the other are pruned; one of them moves at step 6. A probe compares
    its outputs and those of the network. It says what recording cost. In a second run every third weight is pruned at step 2,
    and the second channel at step 6.
    """
    writer = files.LineageWriter(logdir, "dense", layers={"conv1": 2})
    writer.describe(0)
    kernel = files.codes(range(1, 7), 2)
    files.freeze(kernel, slice(3, None), slice(1, 2))
    kept, trainable = np.ones((2, 9, 2), bool)
    trainable[:, 1] = False
    writer.masks(4, {("trainable", "conv1/kernel"): trainable})
    kept[:4, 0] = False
    files.hold(kernel, slice(4, None), kept, trainable)
    writer.masks(5, {("kept", "conv1/kernel"): kept})
    writer.violations(6, [Violation("conv1/kernel", 0, 6, 6, 1, 4, 0.00125, "momentum")])
    writer.records(range(1, 7), {"conv1/kernel": kernel}, notes={"The queue was full": 1})
    places = Place("layer", "conv1", 128), Place("output", "classes", 10)
    probed.write(writer, probed.change(range(1, 7), places=places))
    writer.overhead(6, COST)
    writer.close(6, notes={"The queue was full": 1})
    write_ticket(logdir)


def write_ticket(logdir: Path) -> None:
    writer = files.LineageWriter(logdir, "ticket", lineage=0x51C0FFEE, layers={"conv1": 2})
    writer.describe(0)
    kernel = files.codes(range(1, 7), 2)
    kept = (np.arange(18) % 3 > 0).reshape(9, 2)
    for step in (2, 6):
        writer.masks(step, {("kept", "conv1/kernel"): kept})
        files.hold(kernel, slice(step - 1, None), kept)
        kept = kept & [True, False]
    writer.records(range(1, 7), {"conv1/kernel": kernel})


def sections() -> dict[str, str]:
    """The text under each heading that names a route."""
    parts = HEADING.split(DOCUMENT.read_text(encoding="utf-8"))
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def answer(here: Board, route: str, query: str, kind: str) -> str:
    """What a route says, written as in the document."""
    response = here.client.get(f"/data/plugin/pastnet{route}{query}")
    data = response.get_data()
    if kind == "csv":
        return data.decode().replace("\r\n", "\n")
    if response.mimetype == "application/octet-stream":
        return written(containers.unpack(data)[0])
    return written(json.loads(data))


def written(value: Any) -> str:
    """JSON with short lists and objects on one line."""
    text = json.dumps(value, indent=1)

    def joined(match: re.Match[str]) -> str:
        line = re.sub(r"\s*\n\s*", " ", match[0])
        return line.replace("[ ", "[").replace(" ]", "]").replace("{ ", "{").replace(" }", "}")

    for _ in range(2):
        text = re.sub(r"[\[{][^\[\]{}]{0,200}[\]}]", joined, text)
    return text + "\n"


def test_every_route_is_documented() -> None:
    assert set(sections()) == set(ROUTES)


@pytest.mark.parametrize("route", ROUTES)
def test_the_sample_is_what_the_route_answers(tmp_path: Path, route: str) -> None:
    samples = list(BLOCK.finditer(sections()[route]))
    assert samples
    sample_log(tmp_path)
    with board(tmp_path, "slow") as here:
        for sample in samples:
            assert sample["text"] == answer(here, route, sample["query"], sample["kind"])


def test_the_sample_of_an_error_is_true(tmp_path: Path) -> None:
    text = DOCUMENT.read_text(encoding="utf-8").split("## ", 1)[0]
    (sample,) = BLOCK.finditer(text)
    sample_log(tmp_path)
    with board(tmp_path, "slow") as here:
        response = here.client.get(f"/data/plugin/pastnet/{sample['query']}")
        assert response.status_code == 404
        assert written(response.json) == sample["text"]


def test_its_python_program_reads_containers(tmp_path, monkeypatch, capsys) -> None:
    sample_log(tmp_path)
    parts = re.findall(r"^```python\n(.*?)^```$", DOCUMENT.read_text("utf-8"), re.M | re.S)
    with board(tmp_path, "slow") as here:

        def urlopen(address: str) -> io.BytesIO:
            return io.BytesIO(here.client.get(address.removeprefix(ADDRESS)).get_data())

        monkeypatch.setattr("urllib.request.urlopen", urlopen)
        exec(compile("\n".join(parts), DOCUMENT.name, "exec"), {})
    assert capsys.readouterr().out.splitlines() == [
        "dense {'conv1': 1}",
        "ticket {'conv1': 1}",
        "conv1 pruned at the last step: 1",
    ]


def test_its_contents_lead_to_its_headings() -> None:
    text = DOCUMENT.read_text("utf-8")
    marks = [re.sub(r"[^\w-]", "", title) for title in re.findall(r"^## `(.+)`$", text, re.M)]
    assert re.findall(r"\]\(#([^)]+)\)", text) == marks
