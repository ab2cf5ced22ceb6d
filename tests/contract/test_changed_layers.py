"""A training resumed with other layers than before: new series, the old ones kept, and a note."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

import tb_pastnet as pastnet
from tests.both_loaders import in_both
from tests.tensorboards import Board

pytestmark = pytest.mark.promise("changed_layers")

X = np.random.default_rng(0).normal(size=(8, 6)).astype("f")


def fit(logdir: Path, epochs: range, *layers: tuple[str, int]) -> None:
    """A resumed training: its optimizer counts on, its layers are these names and widths."""
    dense = [keras.layers.Dense(units, name=name) for name, units in layers]
    model = keras.Sequential([keras.Input((6,)), *dense, keras.layers.Dense(1, name="head")])
    model.compile("sgd", "mse")
    model.optimizer.iterations.assign(epochs.start)
    callback = pastnet.PastNetCallback(logdir / "run", every=1)
    settings: dict[str, Any] = {"batch_size": 8, "epochs": len(epochs), "verbose": 0}
    model.fit(X, X[:, :1], callbacks=[callback], **settings)
    callback.close()


def test_resumed_with_other_layers(tmp_path: Path, figure: Any) -> None:
    """One has another width, one another name, one is gone, one is new; the head only goes on."""
    fit(tmp_path, range(4), ("wider", 4), ("named", 3), ("gone", 4))
    fit(tmp_path, range(4, 8), ("wider", 8), ("renamed", 3), ("added", 4))

    def look(here: Board) -> Any:
        (run,) = here.json("/index")["runs"]
        found = {}
        for layer in ("wider", "named", "gone", "renamed", "added", "head"):
            header, arrays = here.arrays("/layer", run="run", layer=layer)
            texts = [note["text"] for note in header["notes"]]
            found[layer] = header["shape"], header["account"], arrays["steps"].tolist(), texts
        return run["account"], run["records"], found

    account, records, found = in_both(tmp_path, look)
    assert (account["shown"], account["offered"], records) == (8, 8, 8)
    shape, counts, steps, texts = found.pop("wider")
    # Channels of another number aren't those of before.
    assert (shape, steps, counts["superseded"]) == ([6, 8], [5, 6, 7, 8], 4)
    assert any("number of channels" in text for text in texts)
    assert {layer: steps for layer, (_, _, steps, _) in found.items()} == {
        "named": [1, 2, 3, 4],
        "gone": [1, 2, 3, 4],
        "renamed": [5, 6, 7, 8],
        "added": [5, 6, 7, 8],
        "head": [1, 2, 3, 4, 5, 6, 7, 8],
    }
    figure("4 ways to change a layer, in both loaders: each a series of its own")
