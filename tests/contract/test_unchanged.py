"""What stands still is a fact while training runs, and may be a failure once it has ended."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tb_pastnet as pastnet
from tests.commands import command


def test_a_check_fails_for_what_never_changed_only_after_the_end(tmp_path: Path) -> None:
    arrays = {"still/kernel": np.ones((3, 4)), "free/kernel": np.ones((3, 4))}
    weights = {name: lambda name=name: arrays[name] for name in arrays}
    ask = "report", tmp_path, "--fail-on", "stalled"
    with pastnet.numpy.Recorder(tmp_path, weights, every=1) as recorder:
        for step in range(1, 31):
            arrays["free/kernel"] = arrays["free/kernel"] * 1.1
            recorder.record(step)
        recorder.flush()
        (open_,) = pastnet.read(tmp_path).findings()
        assert command(*ask).code == 0
    (closed,) = pastnet.read(tmp_path).findings()
    assert (open_.kind, closed.kind) == ("unchanged", "stalled")
    assert open_.layers == closed.layers == ("still",)
    done = command(*ask, "--json")
    assert (done.code, done.error) == (1, "failed: stalled in the run '.': 4 channels\n")
    assert done.json["runs"][0]["stalled_channels"] == 4
    assert [finding["cause"] for finding in done.json["findings"]] == ["unknown"]


@pytest.mark.parametrize(("given", "kind", "count"), [(True, "rows", 64), (False, "stalled", 70)])
def test_rows_of_an_embedding_fail_only_if_none_changed(
    tmp_path: Path, given: bool, kind: str, count: int
) -> None:
    torch = pytest.importorskip("torch", reason="torch isn't installed: an extra of its own")
    model = torch.nn.Sequential(torch.nn.Embedding(70, 4), torch.nn.Linear(4, 1))
    optimizer = torch.optim.SGD((model if given else model[1]).parameters(), 0.1)
    with pastnet.torch.Recorder(tmp_path, model, optimizer, every=1) as recorder:
        for step in range(1, 31):
            optimizer.zero_grad()
            model(torch.tensor([0, 3, 7, 8, 63, 64])).pow(2).mean().backward()
            optimizer.step()
            recorder.record(step)
    (finding,) = pastnet.read(tmp_path).findings()
    assert (finding.kind, finding.layers, finding.channels) == (kind, ("0",), count)
