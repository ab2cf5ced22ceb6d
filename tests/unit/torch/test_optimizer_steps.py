"""Which optimizer trains a weight, and what was seen of its steps."""

from __future__ import annotations

import pytest

from tb_pastnet.errors import InvalidArgument

torch = pytest.importorskip("torch", reason="torch isn't installed: an extra of its own")

from torch import nn  # noqa: E402
from torch.optim.optimizer import register_optimizer_step_post_hook  # noqa: E402

from tb_pastnet.record.failures import Failures  # noqa: E402
from tb_pastnet.torch.module_weights import network_of  # noqa: E402
from tb_pastnet.torch.optimizer_steps import (  # noqa: E402
    OptimizerSteps,
    optimizers_in,
    rate_of,
)


@pytest.fixture
def model():
    return nn.ModuleDict({"a": nn.Linear(2, 2, bias=False), "b": nn.Linear(2, 2, bias=False)})


def steps_of(model, *given):
    failures = Failures()
    steps = OptimizerSteps(network_of(model).weights, given, failures)
    return steps, failures


def update(model, optimizer):
    sum(parameter.sum() for parameter in model.parameters()).backward()
    optimizer.step()


def test_steps_of_optimizers_that_train_the_weights_are_counted(model):
    own = torch.optim.SGD(model.parameters(), lr=0.5)
    foreign_layer = nn.Linear(2, 2)
    foreign = torch.optim.SGD(foreign_layer.parameters())
    steps, failures = steps_of(model)
    assert not steps.working
    assert not steps.skipped()  # of none it isn't known
    update(foreign_layer, foreign)
    assert not steps.working
    for _ in range(3):
        update(model, own)
    own.param_groups[0]["lr"] = 0.25
    update(model, own)
    assert not steps.skipped()
    assert steps.skipped()
    trained = steps.all(network_of(model).weights)
    assert trained.keys() == {"a/weight", "b/weight"}
    optimizer, group, counted = trained["a/weight"]
    assert (optimizer, group) == (own, own.param_groups[0])
    assert counted.count == 4
    assert list(counted.rates) == [[0.5], [0.5], [0.5], [0.25]]
    assert failures.counts() == {}
    steps.close()
    update(model, own)
    assert counted.count == 4


def test_a_step_is_awaited_of_an_optimizer_that_is_given(model):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)

    class Wrapper(torch.optim.Optimizer):
        def __init__(self):
            self.param_groups = optimizer.param_groups

        def step(self, closure=None):
            optimizer.step()

    assert steps_of(model, optimizer)[0].skipped()
    steps, _ = steps_of(model, Wrapper())
    assert not steps.skipped()
    update(model, optimizer)
    assert not steps.skipped()
    assert steps.skipped()


def test_the_optimizer_that_made_a_step_last_trains_a_weight(model):
    first = torch.optim.SGD(model.parameters(), lr=0.5)
    second = torch.optim.SGD(model["a"].parameters(), lr=0.1)
    steps, _ = steps_of(model, first)

    def rates():
        trained = steps.all(network_of(model).weights)
        return {name: rate_of(group) for name, (_, group, _) in trained.items()}

    assert rates() == {"a/weight": 0.5, "b/weight": 0.5}
    update(model, second)
    assert rates() == {"a/weight": 0.1, "b/weight": 0.5}
    update(model, first)
    assert rates() == {"a/weight": 0.5, "b/weight": 0.5}
    del first
    assert rates() == {"a/weight": 0.1}


def test_gradients_of_held_weights_are_counted(model):
    optimizer = torch.optim.SGD(model["a"].parameters(), lr=0.5)
    steps, _ = steps_of(model, optimizer)
    steps.held = {weight.name: weight for weight in network_of(model).weights}
    update(model, optimizer)  # both have one, and are trained
    model.requires_grad_(False)
    optimizer.step()
    optimizer.step()
    optimizer.zero_grad()
    optimizer.step()
    assert steps.with_gradient == {"a/weight": 2}  # b isn't the optimizer's


def test_parameters_that_no_optimizer_has_are_named(model):
    weights = network_of(model).weights
    optimizer = torch.optim.SGD(model["a"].parameters())
    assert steps_of(model, optimizer)[0].left_out(weights) == ["b/weight"]
    assert steps_of(model)[0].left_out(weights) == []  # nothing is known of optimizers
    follows = network_of(model, follows=["b"]).weights
    assert steps_of(model, optimizer)[0].left_out(follows) == []
    model["b"].requires_grad_(False)
    assert steps_of(model, optimizer)[0].left_out(weights) == []


def test_of_a_computed_weight_its_parts_are_looked_for():
    layer = nn.utils.parametrizations.weight_norm(nn.Linear(2, 2))
    gains, direction = layer.parametrizations.weight.parameters()
    gains.requires_grad_(False)
    optimizer = torch.optim.SGD([direction, layer.bias])
    steps, _ = steps_of(layer, optimizer)
    assert steps.left_out(network_of(layer).weights) == []


def test_what_fails_in_a_step_is_counted_and_hurts_nothing(model):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    _, failures = steps_of(model, optimizer)
    optimizer.param_groups[0]["lr"] = torch.tensor([0.1, 0.2])  # no number
    model["a"].weight.grad = None
    optimizer.step()
    (text,) = failures.counts()
    assert text.startswith("Could not follow a step of an optimizer")


def test_a_rate_may_be_a_tensor(model):
    optimizer = torch.optim.Adam(model.parameters(), lr=torch.tensor(0.5))
    assert rate_of(optimizer.param_groups[0]) == 0.5
    assert rate_of({}) != rate_of({})  # NaN
    assert rate_of({"lr": torch.zeros((), device="meta")}) != 0


def test_optimizers_are_given_alone_or_as_several(model):
    optimizer = torch.optim.SGD(model.parameters())
    assert optimizers_in(None) == []
    assert optimizers_in(optimizer) == [optimizer]
    assert optimizers_in([optimizer, optimizer]) == [optimizer, optimizer]
    with pytest.raises(InvalidArgument, match=r"a list of them, got float. Pass the optimizer"):
        optimizers_in([optimizer, 0.1])


def test_steps_in_a_cuda_graph_are_never_called_skipped(model, monkeypatch):
    monkeypatch.setattr(torch.backends.cuda, "is_built", lambda: True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    steps, failures = steps_of(model, optimizer)
    told = Told()
    steps.listen(told.before, told.after)
    update(model, optimizer)
    assert [steps.skipped(), steps.skipped()] == [False, True]
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    update(model, optimizer)
    monkeypatch.undo()
    assert told.made == [False, True]  # the first only: weights can't be read in a capture
    assert [steps.skipped(), steps.skipped()] == [False, False]
    assert not steps.working
    assert failures.counts() == {}


class Told:
    """What a listener is told."""

    def __init__(self):
        self.made = []

    def before(self, _):
        self.made.append(False)

    def after(self, _):
        self.made.append(True)


def test_garbage_collected_in_a_step_does_not_end_it():
    """Whatever is dropped without `close` may go while torch calls the hooks of a step."""
    parameter = torch.nn.Parameter(torch.ones(3))
    optimizer = torch.optim.SGD([parameter], 0.1)
    dropped = [OptimizerSteps((), (), Failures())]
    handle = register_optimizer_step_post_hook(lambda *_: dropped.clear())
    last = OptimizerSteps((), (), Failures())
    try:
        parameter.grad = torch.ones(3)
        optimizer.step()
    finally:
        handle.remove()
        last.close()
    assert dropped == []
