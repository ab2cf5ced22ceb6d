"""A log of `torch.Masks`: what `pastnet verify` says of it, and what both loaders show."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs torch")

import tb_pastnet as pastnet  # noqa: E402
from tb_pastnet.core import channel_states  # noqa: E402
from tests.both_loaders import in_both  # noqa: E402
from tests.commands import command  # noqa: E402

STEPS, FROZEN, PRUNED = 5, [3, 64], [7, 63]
ASKED = "--frozen", "head.*", "--sparsity", "base.weight>=0.03", "--trains", "base.*"


def recorded(logdir: Path, written: Any = None) -> None:
    """A training in which a layer is frozen, and channels of another are frozen and pruned."""
    torch.manual_seed(0)
    model = torch.nn.Sequential()
    model.add_module("base", torch.nn.Linear(9, 65))
    model.add_module("head", torch.nn.Linear(65, 2))
    optimizer = torch.optim.AdamW(model.parameters(), 1e-2, weight_decay=0.1)
    masks = pastnet.torch.Masks(model, optimizer)
    masks.freeze(model.head)
    masks.freeze("base.weight", channels=FROZEN)
    masks.prune("base.weight", channels=PRUNED)
    with pastnet.torch.Recorder(logdir / "run", model, optimizer, every=1) as recorder:
        for step in range(1, STEPS + 1):
            optimizer.zero_grad()
            model(torch.randn(16, 9)).square().mean().backward()
            optimizer.step()
            if written is not None and step == STEPS - 1:
                model.get_parameter(written[0]).data[written[1]] += 1
            recorder.record(step)
    masks.close()


def test_held_weights_are_verified(tmp_path: Path) -> None:
    recorded(tmp_path)
    done = command("verify", tmp_path, *ASKED, "--json")
    assert done.code == 0, done
    (run,) = done.json["runs"]
    assert run["verified"]["changed"] == 0
    assert run["verified"]["values"] == 2 * 65 + 2 + 4 * 9
    assert {each["result"] for each in run["expectations"]} == {"holds"}


@pytest.mark.parametrize("written", [("head.weight", (1, 64)), ("head.bias", 0)])
def test_a_held_element_that_is_written_is_found(tmp_path: Path, written: Any) -> None:
    recorded(tmp_path, written)
    done = command("verify", tmp_path, *ASKED, "--json")
    assert done.code == 1, done
    (frozen,) = [each for each in done.json["runs"][0]["expectations"] if each["result"] == "fails"]
    assert (frozen["kind"], frozen["first_step"]) == ("frozen", STEPS - 1)


@pytest.mark.parametrize("written", [None, ("base.weight", (64, 8)), ("base.weight", (7, 0))])
def test_both_loaders_show_held_channels_and_writes_to_them(tmp_path: Path, written: Any) -> None:
    recorded(tmp_path, written)

    def look(here: Any) -> Any:
        _, arrays = here.arrays("/layer", run="run", layer="base")
        violations = here.json("/violations", run="run")["violations"]
        keys = "channel", "first_step", "cause"
        return arrays["state"].tolist(), [tuple(each[key] for key in keys) for each in violations]

    states, violations = in_both(tmp_path, look)
    assert violations == ([] if written is None else [(written[1][0], STEPS - 1, "written")])
    for state in np.array(states).T & channel_states.STATE:
        for channels, kind in (FROZEN, channel_states.FROZEN), (PRUNED, channel_states.PRUNED):
            assert np.flatnonzero(state == kind).tolist() == channels
