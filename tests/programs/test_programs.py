"""Programs in the manner of published ones: recorded in full, right, and without a bit changed."""

from __future__ import annotations

import random
from fnmatch import fnmatch
from pathlib import Path

import keras
import numpy as np
import pytest

import tb_pastnet as pastnet
from tests.programs.programs import PROGRAMS
from tests.programs.watched import EVERY, check_numbers, run

LONG = {"efficientnet_fine_tuned_in_two_phases"}
SAMPLED = random.Random(37).sample(sorted({*PROGRAMS} - LONG), 4)
WHOLE = pytest.mark.prove
EACH = [pytest.param(name, marks=() if name in SAMPLED else WHOLE, id=name) for name in PROGRAMS]


@pytest.mark.parametrize("name", EACH)
@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")  # in Keras
def test_a_program_is_recorded(name: str, tmp_path: Path) -> None:
    keras.utils.set_random_seed(5)

    def make():
        keras.utils.set_random_seed(5)
        return PROGRAMS[name](tmp_path / "own")

    watched = run(make, tmp_path / "log")
    lineage = watched.lineages[-1]
    # A model that its first batch builds is recorded from then on.
    *steps, end = watched.watch.steps[1 if watched.watch.weights[0] else 2 :]
    due = [step for step in steps if step % EVERY == 0 or step in (steps[0], steps[-1])]
    assert lineage.record_steps() in (due, [*due, end])
    assert check_numbers(watched) > 10 * len(due)
    assert not lineage.violations
    recorded_run = pastnet.read(tmp_path / "log").runs["."]
    recorded = {entry.id for entry in lineage.description.variables}
    skipped = {name for name, _ in lineage.description.skipped}
    computed = {name for name in recorded if name.endswith(("/lora_kernel", "/lora_embeddings"))}
    assert recorded - computed == set(watched.names) - skipped
    for name, variable in recorded_run.variables.items():
        states = np.unique(variable.states()[-1]).tolist()
        frozen = any(f"{name}/".startswith(f"{own}/") for own in watched.program.frozen)
        follows = any(fnmatch(name, pattern) for pattern in watched.program.follows)
        assert (states == ["frozen"]) == frozen, (name, states)
        assert (states == ["following"]) == follows, (name, states)
