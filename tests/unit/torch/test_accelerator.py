"""Trainings on a GPU. They run where there is one: `python -m pytest tests/unit/torch`."""

from __future__ import annotations

import numpy as np
import pytest

import tb_pastnet as pastnet
from tb_pastnet.core.quantize import PRECISION

torch = pytest.importorskip("torch", reason="torch isn't installed: an extra of its own")

from torch import nn  # noqa: E402
from torch.nn.utils import prune  # noqa: E402

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="this machine has no GPU")

OPTIMIZERS = {
    "adamw": lambda parameters: torch.optim.AdamW(parameters, lr=1e-2, weight_decay=0.1),
    "adamw fused": lambda parameters: torch.optim.AdamW(parameters, lr=1e-2, fused=True),
    "adam capturable": lambda parameters: torch.optim.Adam(parameters, lr=1e-2, capturable=True),
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9),
}


def small():
    torch.manual_seed(3)
    layers = nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 16), nn.Linear(16, 3)
    return nn.Sequential(*layers).cuda()


class Loop:
    """A training on the GPU, step by step, with the states that a user would copy to the host."""

    def __init__(
        self, logdir=None, make=OPTIMIZERS["adamw"], build=small, to=None, none=False, **settings
    ):
        self.model = build()
        self.optimizer = make(self.model.parameters())
        self.x = torch.randn(32, 8, generator=torch.Generator().manual_seed(1)).cuda()
        if to is not None:
            self.model, self.x = self.model.to(to), self.x.to(to)
            self.optimizer = make(self.model.parameters())
        self.recorder = logdir and pastnet.torch.Recorder(
            logdir, self.model, self.optimizer, every=1, **settings
        )
        self.number, self.none = 0, none
        self.states = [self.state()]

    def state(self):
        return {
            name.removeprefix("_orig_mod."): value.float().cpu().numpy().copy()
            for name, value in self.model.state_dict().items()
            if value.is_floating_point()
        }

    def update(self):
        self.optimizer.zero_grad(set_to_none=self.none)
        self.model(self.x).square().mean().backward()
        self.optimizer.step()

    def run(self, steps):
        for _ in range(steps):
            self.update()
            self.number += 1
            if self.recorder:
                self.recorder.record(self.number)
            self.states.append(self.state())

    def end(self):
        assert self.recorder.flush()
        counts = self.recorder.notes.counts()
        self.recorder.close()
        return counts


def only_run(logdir):
    (run,) = pastnet.read(logdir).runs.values()
    return run


def channels(array):
    return array.reshape(len(array), -1).astype(np.float64)


def check(run, states, steps=()):
    """Compares what is recorded with NumPy's own figures of the states."""
    recorded_steps = run.steps.tolist()
    assert recorded_steps
    for name, variable in run.variables.items():
        key = name.replace("/", ".")
        for step in steps or recorded_steps:
            record = recorded_steps.index(step)
            now, past = channels(states[step][key]), channels(states[step - 1][key])
            expected = {
                "norm": np.linalg.norm(now, axis=1),
                "delta_norm": np.linalg.norm(now - past, axis=1),
                "delta_max": np.abs(now - past).max(1),
                "changed": (now != past).mean(1),
            }
            for statistic, values in expected.items():
                recorded = getattr(variable, statistic)[record]
                np.testing.assert_allclose(recorded, values, rtol=PRECISION, err_msg=statistic)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_training_goes_on_to_the_bit_and_numbers_are_those_of_the_weights(name, tmp_path):
    plain, recorded = Loop(make=OPTIMIZERS[name]), Loop(tmp_path, OPTIMIZERS[name])
    for loop in (plain, recorded):
        loop.run(6)
    for was, now in zip(plain.states, recorded.states, strict=True):
        assert all(was[key].tobytes() == now[key].tobytes() for key in was)
    assert recorded.end() == {}
    run = only_run(tmp_path)
    assert run.steps.tolist() == [1, 2, 3, 4, 5, 6]
    check(run, recorded.states)


def test_bfloat16(tmp_path):
    loop = Loop(tmp_path, OPTIMIZERS["sgd"], to=torch.bfloat16)
    loop.run(4)
    assert loop.end() == {}
    check(only_run(tmp_path), loop.states)


def test_weights_on_two_devices(tmp_path):
    class Split(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 8).cuda()

        def forward(self, x):
            return self.second(self.first(x.cpu()).cuda())

    loop = Loop(tmp_path, build=Split)
    loop.run(3)
    assert loop.end() == {}
    check(only_run(tmp_path), loop.states)


def test_frozen_weights_that_move_are_found_with_their_cause(tmp_path):
    loop = Loop(tmp_path, OPTIMIZERS["adamw"])
    loop.run(3)
    loop.model[3].requires_grad_(False)
    loop.run(5)
    loop.end()
    violations = only_run(tmp_path).violations
    assert {each.variable for each in violations} == {"3/weight", "3/bias"}
    assert {each.cause for each in violations} <= {"momentum", "weight_decay"}


def test_declared_elements_that_move(tmp_path):
    free = torch.ones(16, 8, device="cuda")
    free[:4] = 0
    loop = Loop(tmp_path, trainable={"0.weight": free})
    loop.run(4)
    loop.end()
    violations = only_run(tmp_path).violations
    assert [each.channel for each in violations] == [0, 1, 2, 3]
    assert {each.cause for each in violations} == {"gradient"}


def test_pruned_weights(tmp_path):
    loop = Loop(tmp_path)
    loop.run(2)
    prune.ln_structured(loop.model[3], "weight", 0.5, n=2, dim=0)
    loop.optimizer = OPTIMIZERS["adamw"](loop.model.parameters())
    loop.run(3)
    loop.end()
    run = only_run(tmp_path)
    assert (run.variables["3/weight"].kept[-1] == 0).sum() == 8
    assert run.violations == ()


def test_steps_that_a_scaler_skips_do_not_count(tmp_path):
    loop = Loop(tmp_path, OPTIMIZERS["sgd"])
    scaler = torch.amp.GradScaler("cuda", init_scale=4.0)
    for step in range(1, 5):
        loop.optimizer.zero_grad()
        loss = loop.model(loop.x).square().mean() * (float("inf") if step == 3 else 1.0)
        scaler.scale(loss).backward()
        scaler.step(loop.optimizer)
        scaler.update()
        loop.recorder.record(step)
    loop.end()
    assert only_run(tmp_path).steps.tolist() == [1, 2, 4]


@pytest.mark.parametrize("frozen", [False, True])
def test_a_training_in_a_cuda_graph(frozen, tmp_path):
    loop = Loop(tmp_path, OPTIMIZERS["adam capturable"])
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            loop.update()
    torch.cuda.current_stream().wait_stream(side)
    if frozen:
        loop.model[3].requires_grad_(False)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loop.update()
    loop.states = [loop.state()]
    for step in range(1, 6):
        graph.replay()
        loop.recorder.record(step)
        loop.states.append(loop.state())
    assert loop.end() == {}
    run = only_run(tmp_path)
    assert run.steps.tolist() == [1, 2, 3, 4, 5]
    # The first is compared with the values before the graph was captured.
    check(run, loop.states, run.steps.tolist()[1:])
    # What no hook sees has no cause.
    found = {(each.variable, each.cause) for each in run.violations}
    assert found == ({("3/weight", "unknown"), ("3/bias", "unknown")} if frozen else set())


@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
@pytest.mark.filterwarnings("ignore")  # the compiler's own
def test_a_compiled_training(mode, tmp_path):
    def compiled():
        torch._dynamo.reset()
        return torch.compile(small(), mode=mode)

    # A gradient that stays would be in the memory of a graph.
    loop = Loop(tmp_path, build=compiled, none=True)
    loop.run(5)
    assert loop.end() == {}
    run = only_run(tmp_path)
    assert run.steps.tolist() == [1, 2, 3, 4, 5]
    check(run, loop.states)
