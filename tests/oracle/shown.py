"""A real TensorBoard on a log of the oracle, and what its page has to show of it."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.e2e.conftest import Tab, known, tensorboard, wait
from tests.oracle import words
from tests.oracle.cases import Case, log_of
from tests.oracle.overlaps import of_layer
from tests.oracle.plain import NONFINITE, STATES, Figures, Oracle
from tests.oracle.told import OTHERS, findings


@dataclass
class Log:
    """A log that TensorBoard shows, and its oracles by run."""

    tab: Tab
    oracles: dict[str, Oracle]

    @property
    def runs(self) -> list[str]:
        return list(self.oracles)

    @property
    def layers(self) -> list[str]:
        return list(dict.fromkeys(layer for one in self.oracles.values() for layer in one.layers))

    @property
    def range(self) -> tuple[int, int]:
        """The axis of steps: its first, and where the last one ends."""
        ends = []
        for oracle in self.oracles.values():
            steps = oracle.training.records
            gap = (steps[-1] - steps[0]) / (len(steps) - 1)
            ends.append(steps[-1] + max(1, math.floor(gap + 0.5)))
        return min(one.training.records[0] for one in self.oracles.values()), max(ends)

    @property
    def sparse(self) -> bool:
        return any(
            oracle.pruned_weights(layer, step)
            for oracle in self.oracles.values()
            for layer in oracle.layers
            for step in oracle.training.records
        )

    def step_at(self, run: str, x: float, width: float) -> int:
        """The step that a place of a column stands for."""
        first, end = self.range
        step = first + min(width - 0.01, max(0.0, x)) / width * (end - first)
        before = [one for one in self.oracles[run].training.records if one <= step]
        return before[-1] if before else math.floor(step)


@contextlib.contextmanager
def shown(seed: int, folder: Path) -> Iterator[Log]:
    logdir = folder / f"log{seed}"
    trainings = log_of(seed, logdir)
    oracles = {made.run: Oracle(made) for made in trainings}
    records = sum(len(made.records) for made in trainings)
    with tensorboard(logdir) as tab:
        wait(lambda: known(tab, len(trainings), records), "all records")
        yield Log(tab, oracles)


def asked(log: Log, case: Case) -> dict[str, Any]:
    """A case as the check in the browser takes it."""
    unit = "weights" if case.step % 3 else "channels"
    mask = "kept" if case.step % 2 else "trainable"
    return {**asdict(case), "unit": unit, "mask": mask, "range": log.range}


def check(log: Log, case: Case, seen: dict[str, Any]) -> int:
    """Compares all that the page shows at an address. Returns how many numbers."""
    count = 0
    for name, base in (("network", None), ("versus", case.other)):
        found, which = seen[name], case.measure if base else "moving"
        view = View(log, case, base, which)
        count += view.heads(found, case.step) + view.dots(found["dots"])
        count += view.legend(found["legend"], case.step)
        count += view.table(found["table"]) + view.tip(found["tip"])
    return count + compare(log, case, seen["compare"]) + told(log, case, seen["findings"])


@dataclass
class View:
    """What the Network view has to show, with a baseline or without."""

    log: Log
    case: Case
    base: str | None
    which: str

    def at(self, run: str, layers: list[str], step: int) -> Figures | None:
        return self.log.oracles[run].at(layers, step, self.case.threshold)

    def base_of(self, run: str) -> str | None:
        return None if run == self.base else self.base

    def apart(self, run: str, layers: list[str], step: int) -> str:
        """Of the run that is the baseline: "the same"."""
        base = self.at(str(self.base), layers, step)
        return words.difference(self.at(run, layers, step), base, self.which)

    def heads(self, found: dict[str, Any], step: int) -> int:
        assert [head["run"] for head in found["heads"]] == self.log.runs
        assert found["pill"] in (None, f"{step:,}"), self.case
        seen = [head for head in found["heads"] if head["seen"]]
        for head in seen:
            run, where = head["run"], (self.case, step, head["run"])
            figures = self.at(run, self.log.layers, step)
            if self.base_of(run):
                name = words.TITLES[self.which]
                text = f"{self.apart(run, self.log.layers, step)} {name[0].lower()}{name[1:]}"
                if figures and words.aside(figures, step):
                    text += f" ({words.steps(figures)})"
            else:
                text = words.largest(figures, step)
            assert head["two"] == text, where
            fixed = self.at(run, self.log.layers, self.case.step)
            assert head["bar"] == f"{run}: {words.shares(fixed)}", where
            sparsity = words.sparsity(figures) if figures and self.log.sparse else None
            assert head["weights"] == sparsity, where
            if figures and sparsity is not None:
                of = words.plural(figures.prunable, "prunable weight")
                assert head["whole"] == f"{figures.pruned:,} of {of} held at zero", where
        return 4 * len(seen)

    def dots(self, found: dict[str, Any]) -> int:
        said = []
        for run in self.log.runs:
            if self.base_of(run):
                text = self.apart(run, self.log.layers, self.case.step)
            elif self.base:  # of which the others are so far
                text = "the same"
            else:
                figures = self.at(run, self.log.layers, self.case.step)
                text = words.measured(figures, self.which)
            said.append(f"{run} {text}")
        against = f" vs {self.base}" if self.base else ""
        title = f"{words.TITLES[self.which]}{against} at step {self.case.step:,}"
        assert found["label"] == f"{title}, all layers: {', '.join(said)}"
        assert found["head"].endswith(f", step {self.case.step:,}")
        return len(said)

    def legend(self, found: dict[str, Any], step: int) -> int:
        figures = self.at(self.case.run, self.log.layers, step)
        if figures is None:
            assert found["title"].endswith(", no record yet")
            assert {text for _, text in found["items"]} == {words.DASH}
            return len(found["items"])
        assert found["title"].endswith(f", {words.steps(figures)}"), (self.case, step)
        counts = [(STATES[x].capitalize(), figures.counts[x]) for x in words.LEGEND]
        rare = [("Violated", figures.violated), ("Nonfinite", figures.counts[NONFINITE])]
        counts += [one for one in rare if one[1]]
        expected = [[title, words.share(count, figures.total)] for title, count in counts]
        assert found["items"] == expected, (self.case, step)
        return len(expected)

    def table(self, found: dict[str, Any]) -> int:
        step = self.case.step
        assert found["caption"] == f"Channels in each state at step {step:,}"
        lines = {(row[0], row[1]): row[2:] for row in found["rows"]}
        names = {row[0] for row in found["rows"]}
        assert len(lines) == len(found["rows"]) == len(names) * len(self.log.runs)
        assert names >= {"All layers", *self.log.layers}
        for (name, run), row in lines.items():
            layers = [name]
            if name == "All layers":
                layers = self.log.layers
            elif name.endswith("/"):
                layers = [one for one in self.log.layers if one.startswith(name)]
            figures = self.at(run, layers, step)
            expected = self.cells(figures)
            if self.base:
                expected.append(self.apart(run, layers, step))
            assert row == expected, (self.case, name, run)
        return sum(map(len, lines.values()))

    def cells(self, figures: Figures | None) -> list[str]:
        if figures is None:
            return [words.DASH] * (9 + self.log.sparse)
        total, pruned = figures.total, words.sparsity(figures)
        counts = [figures.counts[state] for state in words.LEGEND]
        weights = words.DASH if pruned is None else f"{figures.pruned:,} ({pruned})"
        return [
            f"{figures.channels:,}",
            words.steps(figures).split(" ", 1)[1],
            *(f"{count:,} ({words.share(count, total)})" for count in counts),
            f"{figures.violated:,}",
            f"{figures.counts[NONFINITE]:,}",
            *([weights] if self.log.sparse else []),
        ]

    def tip(self, found: dict[str, Any]) -> int:
        """The tooltip over the layer, and the heads and the legend meanwhile."""
        run, layer = self.case.run, self.case.layer
        step = self.log.step_at(run, found["x"], found["width"])
        figures, where = self.at(run, [layer], step), (self.case, step)
        assert found["title"] == [layer], (*where, found["title"], found["x"])
        self.heads(found, step)
        self.legend(found["legend"], step)
        if figures is None:
            assert found["rows"] == [], where
            return 0
        run_line = f" · {words.steps(figures)} · {words.plural(figures.channels, 'channel')}"
        assert found["run"][0].endswith(run_line), where
        total = figures.total
        expected = [
            [STATES[state].capitalize(), f"{count:,}", words.share(count, total)]
            for state in (*words.LEGEND, NONFINITE)
            for count in [figures.counts[state]]
            if state != NONFINITE or count
        ]
        if figures.violated:
            share = words.share(figures.violated, total)
            expected.append(["Violated", f"{figures.violated:,}", share])
        assert found["rows"] == expected, where
        assert found["foot"] == [words.number(figures.mean_delta)], where
        weights = [f"{figures.pruned:,}", words.sparsity(figures)] if figures.pruned else []
        assert found["weights"] == weights, where
        if self.base_of(run):
            assert found["apart"] == [self.apart(run, [layer], step)], where
        return 3 * len(expected) + 4


def compare(log: Log, case: Case, found: dict[str, Any]) -> int:
    """The overlaps by layer of two runs."""
    one, other = log.oracles[case.run], log.oracles[case.other]
    options = asked(log, case)
    unit, mask = options["unit"], options["mask"]
    related = one.training.origin == other.training.origin
    laps = dict(found["laps"])
    kind = f"{'remaining' if mask == 'kept' else 'trainable'} {unit}"
    assert found["table"]["caption"] == f"{kind} by layer at step {case.step:,}"
    for name, *row in found["table"]["rows"]:
        where = (case, name)
        if row[-1]:
            assert row[:-1] == [words.DASH] * 6, where
            assert laps[name] == row[-1], where
            continue
        kept, more, both, share, chance, size = of_layer((one, other), name, case.step, unit, mask)
        counts = [words.DASH if math.isnan(x) else f"{int(x):,}" for x in (kept, more, both)]
        ratios = [words.overlap(x) for x in (share, chance)]
        assert row[:-1] == [*ratios, *counts, f"{size:,}"], where
        text = " / ".join(ratios)
        if not related:
            shares = [words.DASH if math.isnan(x) else words.share(x, size) for x in (kept, more)]
            text = " | ".join(shares)
        assert laps[name] == text, (where, laps[name], text)
    return 8 * len(laps)


def told(log: Log, case: Case, found: list[list[str]]) -> int:
    expected = [
        [run, one.text, "" if one.first_step is None else f"step {one.first_step:,}"]
        for one in findings(list(log.oracles.values()))
        for run in one.runs
    ]
    listed = [row for row in found if not OTHERS.search(row[1])]
    assert sorted(listed) == sorted(expected), case
    return len(listed)
