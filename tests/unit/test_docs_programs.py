"""The programs of the guides run as they stand."""

from __future__ import annotations

import pytest

from tests.doc_programs import program_of
from tests.interpreter import STRICT, Interpreter
from tests.sampled import sampled

SAID = {
    "docs/start/first_picture.md": "[0 3]\n…\n0.5 []\n",
    "docs/start/cheat_sheet.md": " []\n",
    "docs/how_to/recording.md": "",
    "docs/tutorials/still_learning.md": "The last channel moves at step 1",
    "docs/tutorials/freeze_and_verify.md": "64 {'not_recompiled'}\n()\n",
    "docs/tutorials/freeze_and_verify_torch.md": (
        "by value at 20 records: 544 changed\n{'momentum'}\n…: 2 moved, 2 frozen and unchanged\n"
        "…by value at 30 records: 0 changed\n"
    ),
    "docs/tutorials/fine_tune_with_peft.md": (
        "30 records: 0 changed\nlora_weight {'moving'}\nweight {'frozen'}\n"
        "…['query', 'value'] no_optimizer\n[16]\n…'lora_B/second/weight'"
    ),
    "docs/tutorials/new_tokens.md": (
        "30 records: 960 changed\n{'weight_decay'}\n…30 records: 0 changed\n{'frozen'} {'moving'}\n"
    ),
    "docs/tutorials/jax.md": (
        "30 records: 128 changed\n{'weight_decay'}\n…by value at 30 records: 0 changed\n"
    ),
    "docs/tutorials/target_network.md": "teacher: ",
    "docs/tutorials/clone_subgraph.md": "The clone's kernel moved by up to 0.0",
    "docs/migrate/tfmot.md": "{'hidden/kernel': 0.8, 'logits/kernel': 0.8}",
    "docs/migrate/histograms.md": "",
    "docs/migrate/graph_editor.md": "",
    "docs/migrate/sync.md": "",
    "docs/how_to/masks.md": "only/kernel, channel 2: 16 of 16 held weights moved at step 8",
    "docs/how_to/torch_masks.md": (
        "0.5 0.5 ()\nsnapshot (25, 5)\n2 of 2 variables with masks are restored as saved.\n"
    ),
    "docs/tutorials/lottery_tickets.md": "36.0%",
    "docs/how_to/past_networks.md": "after sync: 0.0",
    "docs/how_to/fine_tuning.md": "moved in the first part: ()",
    "docs/how_to/verify_in_ci.md": (
        "176 frozen values in 4 weights, compared by value at 21 records: 0 changed"
    ),
    "docs/benchmarks/overhead.md": " records were due: ",  # the budget decides whether the end has one
    "docs/how_to/other_loggers.md": "records: [1, 4, 8, 12, 16] moving: 1.0",
    "docs/how_to/preflight.md": "2 steps, 6 weights, 339 values: 2 moved, 2 frozen and unchanged\n…{'base': 'unmasked_update'}",
    "docs/how_to/testing.md": "base/kernel (4, 3): 1 of 12 values changed, in channel 1 of 3",
    "docs/tab/function_view.md": "recorded to step 16",
    "docs/how_to/many_devices.md": "pruned: 0.5 leaks: []",
    "docs/how_to/cloning.md": "out of sync: False\nin sync again: True",
    "docs/how_to/numpy.md": (
        "steps: [1, 5, 10, 15, 20] channels: 3\nviolations: 3\nsklearn: ['layer_0', 'layer_1']"
    ),
    "docs/how_to/jax.md": (
        "steps: [1, 5, 10, 15, 20]\nmoved although frozen: ['dense/kernel']\nscanned: [5, 10]"
    ),
}
NEEDS = {
    "docs/how_to/jax.md": ("jax", "optax"),
    "docs/tutorials/freeze_and_verify_torch.md": ("torch",),
    "docs/tutorials/fine_tune_with_peft.md": ("torch", "peft", "transformers"),
    "docs/tutorials/new_tokens.md": ("torch",),
    "docs/tutorials/jax.md": ("jax", "optax"),
    "docs/how_to/numpy.md": ("sklearn",),
    "docs/how_to/testing.md": ("torch", "jax"),
    "docs/how_to/torch_masks.md": ("torch", "transformers"),
}


@pytest.fixture(scope="module")
def python():
    process = Interpreter(begin=STRICT)
    yield process
    process.close()


@pytest.mark.parametrize("name", sampled(SAID, 2))
def test_a_guides_python_runs(python, name, tmp_path):
    for package in NEEDS.get(name, ()):
        pytest.importorskip(package, reason="its guide runs where it is installed")
    python.run("import os; os.chdir(folder)", folder=str(tmp_path))
    # Two epochs of a lottery, and twenty steps of a loop, show the same.
    program = program_of(name).replace(", 20)", ", 2)").replace(", 101)", ", 21)")
    said = python.run(program)
    assert all(part in said for part in SAID[name].split("…"))
