"""`pastnet verify`: the exit code is right, and the sentence says which weights at which records.

No gate passes because nothing was checked.
"""

from __future__ import annotations

import io
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import tb_pastnet as pastnet
from tb_pastnet.format.events import read_events
from tests.commands import command

BASE, HEAD = ("base/a/kernel", "base/a/bias", "base/b/kernel"), ("head/kernel", "head/bias")
SHAPES = {
    "base/a/kernel": (3, 4), "base/a/bias": (4,), "base/b/kernel": (4, 4),
    "head/kernel": (4, 2), "head/bias": (2,),
}  # fmt: skip
FROZEN, FREE = dict.fromkeys(BASE, False), dict.fromkeys(BASE, True)
DECLARED = {"base.*": "frozen", "head.*": "trains"}
ASKED = ["--frozen", "base.*", "--trains", "head.*"]


class Training:
    """A training in NumPy that moves the weights it is told to, by 0.1 in each step."""

    def __init__(self, logdir: Path, frozen: dict[str, Any] = FROZEN, **settings: Any) -> None:
        self.step = 0
        self.values = {name: np.zeros(shape, np.float32) for name, shape in SHAPES.items()}
        weights = {name: (lambda name=name: self.values[name]) for name in self.values}
        settings = {"every": 1, "initial_step": 0, **settings}
        self.recorder = pastnet.numpy.Recorder(logdir, weights, trainable=frozen, **settings)

    def train(self, steps: int, *moving: str) -> Training:
        for _ in range(steps):
            self.step += 1
            for name in moving or HEAD:
                self.values[name] += np.float32(0.1)
            self.recorder.record(self.step)
        return self

    def declare(self, frozen: dict[str, Any], **kept: Any) -> Training:
        self.recorder.declare(trainable=frozen, kept=kept or None)
        return self

    def go_back(self, step: int) -> Training:
        self.step = step
        self.recorder.restart(step)
        return self

    def set(self, name: str, value: float, place: int = 0) -> Training:
        self.values[name].reshape(-1)[place] = value
        return self

    def close(self) -> None:
        self.recorder.close()


def one(**settings: Any) -> Callable[[Path], None]:
    """A log of 20 steps."""
    return lambda logdir: Training(logdir / "a", **settings).train(20).close()


def told(story: Callable[[Training], Training], **settings: Any) -> Callable[[Path], None]:
    """A log of what a story does to a training."""
    return lambda logdir: story(Training(logdir / "a", **settings)).close()


def several(*stories: Callable[[Path], None]) -> Callable[[Path], None]:
    """Logs of several runs."""

    def build(logdir: Path) -> None:
        for number, story in enumerate(stories):
            story(logdir / f"run{number}")

    return build


def live(logdir: Path) -> None:
    recorder = Training(logdir / "a").train(20).recorder
    recorder.flush(30)
    LIVE.append(recorder)


LIVE: list[Any] = []


def kept(name: str) -> Callable[[Path], None]:
    """A log of an earlier version."""
    folder = Path(__file__).parents[1] / "golden" / "logs" / name
    return lambda logdir: shutil.copytree(folder, logdir)


def event_file(logdir: Path) -> Path:
    (file,) = logdir.rglob("*tfevents*")
    return file


def torn(logdir: Path) -> None:
    one()(logdir)
    data = event_file(logdir).read_bytes()
    event_file(logdir).write_bytes(data[: len(data) // 2])


def flipped(logdir: Path) -> None:
    one()(logdir)
    data = bytearray(event_file(logdir).read_bytes())
    data[len(data) // 2] ^= 1
    event_file(logdir).write_bytes(bytes(data))


def failing(training: Training) -> Training:
    """Weights of another shape, for one step: nothing can be read there."""
    whole = training.train(9).values["base/a/bias"]
    training.values["base/a/bias"] = np.zeros(5, np.float32)
    training.train(1)
    training.values["base/a/bias"] = whole
    return training.train(10)


def other_network(logdir: Path) -> None:
    weight = np.zeros(3, np.float32)
    with pastnet.numpy.Recorder(logdir / "a", {"stem/w": lambda: weight}, every=1) as recorder:
        for step in range(1, 9):
            weight += 1
            recorder.record(step)


def grown(logdir: Path) -> None:
    """A training that resumes with one more frozen weight."""
    values = {name: np.zeros(shape, np.float32) for name, shape in SHAPES.items()}
    for names, start in ((("base/a/kernel", "head/bias"), 0), (tuple(SHAPES), 10)):
        weights = {name: (lambda name=name: values[name]) for name in names}
        settings = {"every": 1, "initial_step": start, "trainable": {"base/*": False}}
        with pastnet.numpy.Recorder(logdir / "a", weights, **settings) as recorder:
            for step in range(start + 1, start + 11):
                values["head/bias"] += 1
                recorder.record(step)


def without_last_comparisons(logdir: Path) -> None:
    """The last message about comparisons is gone, with its frame."""

    def story(training: Training) -> Training:
        training.train(10).recorder.flush(30)
        return training.train(10)

    told(story)(logdir)
    data = event_file(logdir).read_bytes()
    events = list(read_events(io.BytesIO(data)))
    tags = [[value.tag for value in getattr(each, "values", ())] for each in events]
    last = max(number for number, own in enumerate(tags) if "compared" in own)
    ends = [*(each.offset for each in events[1:]), len(data)]
    event_file(logdir).write_bytes(data[: events[last].offset] + data[ends[last] :])


def normalised_weight(logdir: Path) -> None:
    """The parts of a weight train, from which another one is computed."""
    torch = pytest.importorskip("torch")
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Linear(3, 2))
    torch.nn.utils.parametrizations.weight_norm(model[0])
    model[1].requires_grad_(False)
    optimizer = torch.optim.SGD(model[0].parameters(), lr=0.1)
    with pastnet.torch.Recorder(logdir / "a", model, optimizer, every=1) as recorder:
        for step in range(1, 6):
            optimizer.zero_grad()
            model(torch.ones(8, 2)).square().sum().backward()
            optimizer.step()
            recorder.record(step)


def pruned(share: float, leak: int = 0) -> Callable[[Path], None]:
    """Both kernels of the base are pruned by a share, from step 10 on; `leak` values come back."""

    def story(training: Training) -> Training:
        training.train(10)
        count = round(28 * share)
        flat = np.arange(28) >= count
        kept = {"base/a/kernel": flat[:12].reshape(3, 4), "base/b/kernel": flat[12:].reshape(4, 4)}
        training.recorder.declare(kept=kept)
        for place in range(leak):
            training.set("base/a/kernel", 1.0, place)
        return training.train(10)

    return told(story, frozen={})


def pruned_each(training: Training) -> Training:
    """52.5 % of each kernel of the base are pruned, rounded: 6 of 12, and 8 of 16."""
    kept = {
        "base/a/kernel": np.arange(12).reshape(3, 4) >= 6,
        "base/b/kernel": np.arange(16).reshape(4, 4) >= 8,
    }
    training.train(10).recorder.declare(kept=kept)
    return training.train(10)


def normalised(mode: str, **settings: Any) -> Callable[[Path], None]:
    """A torch module whose base is frozen, with BatchNorm in it and in the head."""

    def build(logdir: Path) -> None:
        torch = pytest.importorskip("torch")
        torch.manual_seed(0)
        parts = {
            "base": torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3)),
            "head": torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2)),
        }
        model = torch.nn.Sequential()
        for name, part in parts.items():
            model.add_module(name, part)
        parts["base"].requires_grad_(False)
        if mode == "eval":
            parts["base"].eval()
        optimizer = torch.optim.SGD(parts["head"].parameters(), lr=0.1)
        settings["every"] = 1
        with pastnet.torch.Recorder(logdir / "a", model, optimizer, **settings) as recorder:
            for step in range(1, 11):
                optimizer.zero_grad()
                model(torch.randn(8, 2)).square().sum().backward()
                if mode != "without steps":
                    optimizer.step()
                recorder.record(step)

    return build


class Case(NamedTuple):
    """A log, what is asked, the exit code, and what the output says."""

    log: Callable[[Path], None]
    asked: list[str]
    code: int
    said: tuple[str, ...] = ()


def frozen(*patterns: str) -> list[str]:
    return [word for pattern in patterns for word in ("--frozen", pattern)]


def late(training: Training) -> Training:
    return training.train(10).declare(FROZEN).train(10)


def unfrozen(training: Training) -> Training:
    """Gradual unfreezing, in a second call of fit: one block of the base trains, too."""
    training.train(10).declare({"base/b/kernel": True}).go_back(10)
    return training.train(10, "base/b/kernel", *HEAD)


def leak(step: int, value: float = 1.0, restored: bool = False) -> Callable[[Training], Training]:
    def story(training: Training) -> Training:
        training.train(step - 1).set("base/a/kernel", value).train(1)
        return (training.set("base/a/kernel", 0.0) if restored else training).train(20 - step)

    return story


def superseded(first: int, back: int) -> Callable[[Path], None]:
    """A leak at a step, and then back to another one, from where it goes right."""

    def story(training: Training) -> Training:
        leak(first)(training)
        return training.set("base/a/kernel", 0.0).go_back(back).train(20)

    return told(story)


def masked(training: Training) -> Training:
    mask = np.ones((3, 4), bool)
    mask[0] = False
    return training.declare({"base/a/kernel": mask}).train(20)


CASES = {
    "right": Case(one(), ASKED, 0, ("32 values in 3 weights", "20 records from step 1 to 20")),
    "by slashes": Case(one(), frozen("base/*"), 0, ("base/a/kernel, base/a/bias",)),
    "by a layer": Case(one(), frozen("base/a"), 0, ("16 values in 2 weights",)),
    "by a layer with a dot": Case(one(), frozen("base.a"), 0, ("16 values in 2 weights",)),
    "by the end of a name": Case(one(), frozen("b/kernel"), 0, ("(base/b/kernel)",)),
    "by a name": Case(one(), frozen("base.a.bias"), 0, ("4 values in 1 weight",)),
    "several patterns": Case(one(), frozen("base.a.*", "base.b.*"), 0, ("16 values in 1 weight",)),
    "overlapping, one meaning": Case(one(), frozen("base.*", "base.a.*"), 0),
    "one of them trains": Case(one(), ["--trains", "any:*"], 0, ("head/kernel and head/bias",)),
    "rarely recorded": Case(one(every=5), ASKED, 0, ("5 records from step 1 to 20",)),
    "a chosen run": Case(
        several(one(), one(frozen={})), [*ASKED, "--run", "run0/a"], 0, ("run run0/a: holds",)
    ),
    "forgotten freeze": Case(
        one(frozen={}), ASKED, 1,
        ("base/a/kernel, base/a/bias and base/b/kernel: held at 0 of 20 records",),
    ),
    "one forgotten": Case(
        one(frozen={"base/a/*": False}), ASKED, 1,
        ("frozen base.*: base/b/kernel: held at 0 of 20 records from step 1 to 20",),
    ),
    "frozen late": Case(
        told(late, frozen={}), ASKED, 1,
        ("held at 10 of 20 records from step 1 to 20: from step 11 to 20",),
    ),
    "thawed": Case(
        told(lambda run: run.train(5).declare(FREE).train(15)), ASKED, 1,
        ("held at 5 of 20 records from step 1 to 20: from step 1 to 5",),
    ),
    "thawed in between": Case(
        told(lambda run: run.train(5).declare(FREE).train(5).declare(FROZEN).train(10)), ASKED, 1,
        ("held at 15 of 20 records from step 1 to 20: from step 1 to 5, from step 11 to 20",),
    ),
    "frozen in part": Case(
        told(masked, frozen={}), frozen("base.a.kernel"), 1, ("only some of its values were held",)
    ),
    "head frozen, too": Case(
        one(frozen=dict.fromkeys(HEAD, False)), ["--trains", "head.kernel"], 0,
        ("head/kernel: changed by step 1",),
    ),
    "head stands still": Case(
        told(lambda run: run.train(20, "base/b/kernel"), frozen={}), ["--trains", "head.*"], 1,
        ("head/kernel and head/bias: unchanged at 20 records from step 1 to 20",),
    ),
    "head frozen and still": Case(
        told(lambda run: run.train(20, "base/b/kernel"), frozen={"head/*": False}),
        ["--trains", "head.*"], 1, ("unchanged at 20 records from step 1 to 20 (frozen)",),
    ),
    "half of the head stands still": Case(
        told(lambda run: run.train(20, "head/kernel")), ASKED, 1, ("trains head.*: head/bias: unch",)
    ),
    "half of the head is enough": Case(
        told(lambda run: run.train(20, "head/kernel")), ["--trains", "any:head.*"], 0
    ),
    "none of them trains": Case(
        told(lambda run: run.train(20, "base/a/bias"), frozen={}), ["--trains", "any:head.*"], 1
    ),
    "wrong pattern": Case(one(), frozen("bose.*"), 2, ("bose",)),
    "wrong pattern of what trains": Case(one(), ["--frozen", "base.*", "--trains", "top.*"], 2),
    "wrong pattern and a failure": Case(one(frozen={}), frozen("bose.*", "base.*"), 1),
    "no match in one run": Case(several(one(), other_network), ASKED, 2, ("run run1/a: no answer",)),
    "only statistics match": Case(normalised("eval"), frozen("*running_mean"), 2, ("statistics",)),
    "nothing asked": Case(one(), [], 2, ("expect=",)),
    "nothing compared": Case(one(audit=False), ASKED, 2, ("nothing was compared",)),
    "trains without an audit": Case(one(audit=False), ["--trains", "head.*"], 0),
    "no record": Case(told(lambda run: run), ASKED, 2),
    "of an earlier version": Case(
        kept("sample"), ["--run", "dense", "--trains", "*"], 2, ("of an earlier version",)
    ),
    "of a user's own writer": Case(
        kept("restarts"), ["--run", "own", "--trains", "*"], 2, ("written by tf.summary",)
    ),
    "empty": Case(lambda logdir: logdir.mkdir(exist_ok=True), ASKED, 2, ("no runs",)),
    "live": Case(live, ASKED, 2, ("training continues",)),
    "torn": Case(torn, ASKED, 2),
    "one bit flipped": Case(flipped, ASKED, 2, ("can't be read",)),
    "some records couldn't be compared": Case(
        told(failing), ASKED, 2, ("could not be compared at 1 of 20 records",)
    ),
    "leak": Case(
        told(leak(7)), ASKED, 1,
        ("frozen base.*: base/a/kernel: 1 of 12 values changed, first seen at step 7",),
    ),
    "leak that is mended": Case(told(leak(7, restored=True)), ASKED, 1, ("at step 7",)),
    "leak of a sign": Case(told(leak(20, value=-0.0)), ASKED, 1, ("at step 20",)),
    "leak after the last record": Case(
        told(lambda run: run.train(20).set("base/a/bias", 1.0)), ASKED, 1, ("base/a/bias: 1 of 4",)
    ),
    "leak elsewhere": Case(told(leak(7)), frozen("base.b.*"), 0),
    "NaN that stays": Case(
        told(lambda run: run.set("base/a/bias", np.nan).declare(FROZEN).train(20), frozen={}),
        frozen("base.*"), 0,
    ),
    "statistics move": Case(
        normalised("train"), [*frozen("base.*"), "--statistics", "still"], 1,
        ("base/1/running_mean", "first seen at step 1"),
    ),
    "statistics are still": Case(
        normalised("eval"), [*frozen("base.*"), "--statistics", "still"], 0,
        ("unchanged at 10 records from step 1 to 10",),
    ),
    "statistics of another layer move": Case(normalised("eval"), ["--statistics", "still"], 1),
    "no statistics": Case(one(), ["--statistics", "still"], 2, ("there are no statistics",)),
    "sparse": Case(pruned(0.75), ["--sparsity", "base.*.kernel>=0.75"], 0, ("75.0% of 28 values",)),
    "sparsity short": Case(
        pruned(0.75), ["--sparsity", "base.*.kernel >= 0.8"], 1, ("75.0% of 28", "at step 20")
    ),
    "pruned values come back": Case(
        pruned(0.75, leak=2), ["--sparsity", "base.*.kernel>=0.75"], 1, ("2 held ones changed",)
    ),
    "pruned is held": Case(pruned(1.0), frozen("base.a.kernel"), 1, ("from step 11 to 20",)),
    "sparsity, to whole values": Case(pruned(0.75), ["--sparsity", "*.kernel>=0.59"], 0),
    "sparsity, a value short": Case(pruned(0.75), ["--sparsity", "*.kernel>=0.6"], 1),
    "sparsity of each, to whole values": Case(
        told(pruned_each, frozen={}), ["--sparsity", "base.*>=0.525"], 0, ("50.0% of 28 values",)
    ),
    "sparsity of each, a value short": Case(
        told(pruned_each, frozen={}), ["--sparsity", "base.*>=0.55"], 1
    ),
    "sparsity of a layer": Case(  # its bias isn't pruned, and doesn't count
        pruned(0.75), ["--sparsity", "base/a>=1", "--sparsity", "base/a/bias>=0.1"], 1,
        ("100.0% of 12 values in base/a/kernel", "0.0% of 4 values in base/a/bias"),
    ),
    "no share": Case(one(), ["--sparsity", "base.*>=much"], 2),
    "all runs": Case(several(one(), one()), ASKED, 0),
    "one run of three differs": Case(
        several(one(), one(frozen={}), one()), ASKED, 1, ("run run1/a: fails", "run run2/a: holds")
    ),
    "one run is live": Case(several(one(), live), ASKED, 2, ("run run1/a: no answer",)),
    "one fails, one is live": Case(several(one(frozen={}), live), ASKED, 1),
    "superseded leak": Case(superseded(15, 10), ASKED, 0, ("30 records from step 1 to 30",)),
    "leak before the superseded part": Case(superseded(5, 10), ASKED, 1, ("seen at step 5",)),
    "superseded as a whole": Case(
        told(lambda run: run.train(10).declare(FROZEN).go_back(0).train(20), frozen={}), ASKED, 0,
        ("20 records from step 1 to 20",),
    ),
    "gradual unfreezing": Case(
        told(unfrozen), frozen("base.*"), 1,
        ("base/b/kernel: held at 10 of 20 records from step 1 to 20: from step 1 to 10",),
    ),
    "gradual unfreezing, at its end": Case(
        told(unfrozen), ["--frozen", "base.a.*", "--trains", "base.b.*", "--at-end"], 0,
        ("10 records from step 11 to 20",),
    ),
    "unfrozen at the end": Case(
        told(unfrozen), [*frozen("base.b.*"), "--at-end"], 1, ("held at 0 of 10 records",)
    ),
    "trained before the end": Case(
        told(lambda run: run.train(10).go_back(10).train(10, "head/bias")),
        ["--trains", "head.kernel", "--at-end"], 1,
        ("unchanged at 10 records from step 11 to 20",),
    ),
    "trained before": Case(
        told(lambda run: run.train(10).go_back(10).train(10, "head/bias")),
        ["--trains", "head.kernel"], 0,
    ),
    "frozen for the last lineage": Case(
        told(lambda run: run.train(10).declare(FROZEN).go_back(10).train(10), frozen={}),
        [*ASKED, "--at-end"], 0, ("10 records from step 11 to 20",),
    ),
    "frozen and trained": Case(
        one(), ["--frozen", "*", "--trains", "head.kernel"], 2,
        ("head/kernel: expected to be frozen and to train",),
    ),
    "declared": Case(one(expect=DECLARED), [], 0, ("frozen base.*", "trains head.*")),
    "declared, and contradicted": Case(
        one(frozen={}, expect=DECLARED), [], 1, ("frozen base.*: base/a/kernel",)
    ),
    "declared, but other things are asked": Case(
        one(frozen={}, expect=DECLARED), ["--trains", "head.*"], 0
    ),
    "declared, and statistics are asked": Case(  # of its frozen layers
        normalised("eval", expect={"base": "frozen"}), ["--statistics", "still"], 0,
        ("frozen base: 15 values", "base/1/running_mean and base/1/running_var: unchanged"),
    ),
    "declared, contradicted, and statistics are asked": Case(
        normalised("eval", expect={"head": "frozen"}), ["--statistics", "still"], 1,
        ("frozen head: head/0/weight",),
    ),
    "declared, and not compared": Case(
        one(expect=DECLARED, audit=False), [], 2, ("nothing was compared",)
    ),
    "declared in one run": Case(several(one(expect=DECLARED), one()), [], 2, ("expect=",)),
    "only in the second part": Case(grown, frozen("base.*"), 1, ("base/b/kernel: held at 10 of 20",)),
    "without the comparisons of its end": Case(
        without_last_comparisons, ASKED, 2, ("compared at its last records can't be read",)
    ),
    "no optimizer made a step": Case(
        normalised("without steps"), frozen("base.*"), 2, ("10 calls of record, 0 optimizer steps",)
    ),
    "leak, seen by fingerprint": Case(
        told(leak(5), audit="fingerprints"), ASKED, 1, ("at least 1 of 12 values changed",)
    ),
    "computed from what trains": Case(
        normalised_weight, frozen("*.weight"), 1, ("with the weights it is computed from",)
    ),
    "thinned": Case(
        told(lambda run: run.train(3000)), ASKED, 0, ("3,000 records from step 1 to 3,000",)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_exit_code_and_sentence(tmp_path: Path, name: str) -> None:
    case = CASES[name]
    case.log(tmp_path / "logs")
    done = command("verify", tmp_path / "logs", *case.asked)
    while LIVE:
        LIVE.pop().close()
    assert done.code == case.code, done
    assert [text for text in case.said if text not in done.out + done.error] == [], done.out
