"""What a record costs the training thread, counted: a timing would depend on the machine."""

from __future__ import annotations

import json

import pytest

import tb_pastnet as pastnet
from tests.interpreter import Interpreter
from tests.python_calls import PackageCalls

torch = pytest.importorskip("torch", reason="its room is tested where torch is installed")


def counted(tmp_path, layers, every):
    """The same in a process that runs no other test: what those leave behind takes calls, too."""
    process = Interpreter(imports=f"import {__name__}")
    try:
        program = (
            f"import json; from {__name__} import calls_of; print(json.dumps(calls_of(*case)))"
        )
        return json.loads(process.run(program, case=[str(tmp_path), layers, every]))
    finally:
        process.close()


def calls_of(logdir, layers, every):
    """Calls of each step after the twentieth: of the optimizer's step together with `record`'s."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(*[torch.nn.Linear(4, 4) for _ in range(layers)])
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    calls, counts = PackageCalls(), []
    with pastnet.torch.Recorder(logdir, model, optimizer, every=every) as recorder:
        for step in range(1, 60):
            model(torch.ones(2, 4)).sum().backward()
            with calls:
                optimizer.step()
                recorder.record(step)
            optimizer.zero_grad()
            counts.append(calls.count)
    return counts[20:]


@pytest.mark.parametrize("layers", [3, 100])
def test_a_step_with_nothing_due_takes_few_calls(layers, tmp_path):
    counts = counted(tmp_path, layers, every=20)
    assert min(counts) == sorted(counts)[len(counts) // 2] <= 30


@pytest.mark.parametrize("layers", [3, 100])
def test_a_record_takes_as_many_calls_for_any_number_of_weights(layers, tmp_path):
    pytest.importorskip("numba", reason="without it, each shape is measured by itself")
    counts = counted(tmp_path, layers, every=1)
    assert sorted(counts)[len(counts) // 2] <= 135
