"""After construction no call of a Recorder raises, however wrong: it is counted, with its mend."""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tb_pastnet as pastnet

PARAMS = {"dense": {"kernel": np.ones((7, 3), np.float32)}}


class Hostile:
    """Raises wherever it is looked at."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)

    def __int__(self) -> int:
        raise RuntimeError("no number")

    def __repr__(self) -> str:
        raise RuntimeError("no text")


POOL: list[Any] = [None, "", "x", -1, 0, 3, 2**70, 1.5, float("nan"), float("inf"), True, b"\xff"]
POOL += [[], {}, {"x": 1}, {"dense": None}, {"dense/kernel": 2}, np.zeros(2), object(), print, int]
POOL += [Hostile(), PARAMS, {"kernel": np.full((7, 3), 0.5)}, 1j, ...]


def of_numpy(folder: Path) -> Any:
    return pastnet.numpy.Recorder(folder, {"dense/kernel": lambda: PARAMS["dense"]["kernel"]})


def of_jax(folder: Path) -> Any:
    pytest.importorskip("jax", reason="needs jax")
    return pastnet.jax.Recorder(folder, PARAMS)


def of_torch(folder: Path) -> Any:
    torch = pytest.importorskip("torch", reason="needs torch")
    return pastnet.torch.Recorder(folder, torch.nn.Linear(3, 7))


def of_keras(folder: Path) -> Any:
    tf = pytest.importorskip("tensorflow", reason="needs tensorflow")
    return pastnet.Recorder(folder, {"dense/kernel": tf.Variable(PARAMS["dense"]["kernel"])})


def calls(kind: type, seed: int) -> Iterator[tuple[str, list[Any], dict[str, Any]]]:
    """Calls of each public method, most of which are wrong; `close` is another test's."""
    rng = random.Random(seed)
    for name, _ in inspect.getmembers(kind, inspect.isfunction):
        if name.startswith("_") or name in ("close", "follow"):
            continue
        for _ in range(12):
            given = [rng.choice(POOL) for _ in range(rng.randrange(6))]
            words = rng.sample(["step", "params", "timeout", "masks", "nonsense"], rng.randrange(3))
            yield name, given, {word: rng.choice(POOL) for word in words}


@pytest.mark.parametrize("make", [of_numpy, of_jax, of_torch, of_keras])
@pytest.mark.parametrize("seed", range(3))
def test_no_call_raises(make: Callable[[Path], Any], seed: int, tmp_path: Path) -> None:
    recorder = make(tmp_path / "run")
    for name, given, words in calls(type(recorder), seed):
        before = sum(recorder.notes.counts().values())
        method = getattr(recorder, name)
        method(*given, **words)
        try:
            inspect.signature(method).bind(*given, **words)
        except TypeError:
            assert sum(recorder.notes.counts().values()) == before + 1
    wrong = [text for text in recorder.notes.counts() if "Could not call" in text]
    assert any("Write " in text for text in wrong)
    more = [PARAMS] if make is of_jax else []
    recorder.restart(0, *more)
    recorder.sync(*more)
    made = recorder.records
    for step in range(1, 21):
        recorder.record(step, *more)
    assert recorder.records > made
    assert recorder.close(1, 2, 3) is None
    assert recorder.flush()
    recorder.close()
    recorder.record(21, *more)


def test_what_a_wrong_call_says(tmp_path: Path) -> None:
    recorder = of_jax(tmp_path / "run")
    recorder.record(1)
    recorder.record(2)
    assert recorder.notes.counts() == {
        "Could not make a record: UnknownArgument: Could not call record: expected params=, got "
        "none. Write record(params=…).": 2
    }
    recorder.close()
