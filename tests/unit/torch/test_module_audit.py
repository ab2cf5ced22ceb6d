"""What moves weights that need no gradient, by its likely cause, in trainings of torch."""

from __future__ import annotations

import copy
from collections import deque

import pytest

torch = pytest.importorskip("torch", reason="torch isn't installed: an extra of its own")

from torch import nn  # noqa: E402
from torch.nn.utils import prune  # noqa: E402

from tb_pastnet.record.audit.freeze_audit import Audit  # noqa: E402
from tb_pastnet.record.failures import Failures  # noqa: E402
from tb_pastnet.torch.module_audit import ModuleAudit, _TorchOptimizerFacts  # noqa: E402
from tb_pastnet.torch.module_weights import network_of  # noqa: E402
from tb_pastnet.torch.optimizer_steps import OptimizerSteps, Steps  # noqa: E402

FROZEN_AT = 6


def audit_of(weights, failures, steps=None):
    steps = steps or OptimizerSteps(weights, [], failures)
    return Audit(ModuleAudit(weights, steps, failures), lambda: None)


class Training:
    """Trains two layers, the first of which is frozen in the middle."""

    def __init__(self, make, *, every=1, clear=lambda optimizer: optimizer.zero_grad(True)):
        torch.manual_seed(4)
        self.model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
        self.optimizer = make(self.model.parameters()) if make else None
        self.every, self.clear = every, clear
        weights = network_of(self.model).weights
        given = [] if make is None else [self.optimizer]
        self.steps = OptimizerSteps(weights, given, Failures())
        self.audit = Audit(ModuleAudit(weights, self.steps, Failures()), lambda: None)

    def run(self, change=None, steps=16):
        """Trains on.

        Returns:
            The causes, by the last part of names.
        """
        x = torch.linspace(-1, 2, 15).reshape(5, 3)
        for step in range(1, steps + 1):
            if self.optimizer is not None:
                self.clear(self.optimizer)
                loss = (self.model(x) - 1).square().mean()
                loss.backward()
                self.optimizer.step()
            if step % self.every == 0:
                self.audit.check(step)
            if step == FROZEN_AT:
                self.model[0].requires_grad_(False)
            self.audit.observe(quick=True)
            if step == 11 and change:
                change(self.model)
        self.steps.close()
        return {violation.variable: violation.cause for violation in self.audit.violations}


def kept(optimizer):
    optimizer.zero_grad(set_to_none=False)


def only_what_is_trained(optimizer):
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            if parameter.requires_grad:
                parameter.grad = None


def sgd(**settings):
    return lambda parameters: torch.optim.SGD(parameters, lr=0.1, **settings)


def scheduled(parameters):
    optimizer = torch.optim.AdamW(parameters, lr=0.1, weight_decay=0.5, betas=(0.0, 0.999))
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.7)
    optimizer.register_step_post_hook(lambda *_: schedule.step())
    return optimizer


LEAKS = [
    (sgd(weight_decay=0.1), kept, "weight_decay"),
    (sgd(momentum=0.9), kept, "momentum"),
    (sgd(momentum=0.9, weight_decay=0.1), kept, "weight_decay"),
    (sgd(momentum=0.9, nesterov=True), kept, "momentum"),
    (torch.optim.RAdam, kept, "momentum"),
    (torch.optim.Adam, kept, "momentum"),
    (torch.optim.NAdam, kept, "momentum"),
    (lambda parameters: torch.optim.AdamW(parameters, weight_decay=0.5), kept, None),
    (sgd(), only_what_is_trained, "stale_gradient"),
    (torch.optim.Adam, only_what_is_trained, "stale_gradient"),
    (torch.optim.Adamax, only_what_is_trained, "stale_gradient"),
]


@pytest.mark.parametrize("every", [1, 5])
@pytest.mark.parametrize(("make", "clear", "cause"), LEAKS)
def test_a_gradient_that_is_left_moves_what_is_frozen(make, clear, cause, every):
    causes = Training(make, every=every, clear=clear).run()
    assert causes.keys() == {"0/weight", "0/bias"}
    if cause is None:  # of both, by the numbers the one that did more
        assert set(causes.values()) <= {"momentum", "weight_decay"}
    else:
        assert set(causes.values()) == {cause}


def test_weight_decay_is_computed_with_the_rate_of_each_step():
    # No momentum is left, and the rate falls with each step.
    causes = Training(scheduled, every=5, clear=kept).run()
    assert set(causes.values()) == {"weight_decay"}


def grouped(parameters):
    first, *rest = parameters
    groups = [{"params": rest, "lr": 0.3}, {"params": [first], "lr": 0.1}]
    return torch.optim.SGD(groups, weight_decay=0.1)


def test_weight_decay_is_computed_with_the_rate_of_the_group():
    assert Training(grouped, every=5, clear=kept).run()["0/weight"] == "weight_decay"


def test_a_scalar_has_slots():
    model = nn.Module()
    model.scale = nn.Parameter(torch.ones(()))
    weights = network_of(model).weights
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    steps = OptimizerSteps(weights, [optimizer], Failures())
    audit = audit_of(weights, Failures(), steps)
    for step in range(1, 9):
        kept(optimizer)
        if step < 4:
            (model.scale**2).backward()
        optimizer.step()
        if step == 4:
            model.requires_grad_(False)
        audit.check(step)
    assert {violation.cause for violation in audit.violations} == {"momentum"}


def test_the_rate_of_a_group_is_read_that_was_added_between_two_checks():
    training = Training(sgd(), every=5, clear=kept)
    (group,) = training.optimizer.param_groups
    first = group["params"][:2]
    del group["params"][:2]
    calls = iter(range(16))

    def clear(optimizer):
        if next(calls) == 8:
            optimizer.add_param_group({"params": first, "weight_decay": 0.1})
        kept(optimizer)

    training.clear = clear
    assert set(training.run().values()) == {"weight_decay"}


CLEAN = [
    sgd(momentum=0.9, weight_decay=0.1, nesterov=True),
    *[
        lambda parameters, kind=kind: getattr(torch.optim, kind)(parameters, weight_decay=0.1)
        for kind in ("Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "RMSprop")
    ],
    torch.optim.Adafactor,
]


@pytest.mark.parametrize("make", CLEAN)
def test_without_a_gradient_nothing_moves(make):
    training = Training(make)
    frozen = []
    assert training.run(lambda model: frozen.append(copy.deepcopy(model[0].state_dict()))) == {}
    state = training.model[0].state_dict()
    assert all(torch.equal(state[name], value) for name, value in frozen[0].items())


def load(model):
    model.load_state_dict({name: value + 1 for name, value in model.state_dict().items()})


def replace(model):
    model[0].weight = nn.Parameter(model[0].weight.detach() + 1, requires_grad=False)


def average(model):
    averaged = torch.optim.swa_utils.AveragedModel(copy.deepcopy(model))
    with torch.no_grad():
        for parameter, smooth in zip(model.parameters(), averaged.parameters(), strict=True):
            parameter.copy_(smooth + 0.1)


def write(model):
    model[0].weight.data.copy_(model[0].weight + 1)


@pytest.mark.parametrize("every", [1, 5])
@pytest.mark.parametrize("trained", ["all", "the rest"])
@pytest.mark.parametrize(
    ("change", "cause"),
    [(load, "loaded"), (replace, "loaded"), (average, "loaded"), (write, "written")],
)
def test_what_is_written_beside_the_optimizer(change, cause, trained, every):
    def rest(parameters):
        return torch.optim.AdamW(list(parameters)[0 if trained == "all" else 2 :])

    assert Training(rest, every=every).run(change)["0/weight"] == cause


def test_without_an_optimizer_of_torch_the_cause_may_be_unknown():
    assert Training(None).run(write)["0/weight"] == "unknown"
    assert Training(None).run(load)["0/weight"] == "loaded"


def test_an_optimizer_that_replaces_another_is_followed():
    training = Training(sgd(), clear=kept)

    def another(model):
        training.optimizer = torch.optim.SGD(model.parameters(), lr=0.1, weight_decay=0.1)

    causes = training.run(another)
    assert set(causes.values()) == {"weight_decay"}


def test_what_trains_again_is_not_held():
    training = Training(sgd(momentum=0.9))
    assert training.run(lambda model: model.requires_grad_(True)) == {}


def test_the_parts_of_a_computed_weight_are_held():
    module = nn.utils.parametrizations.weight_norm(nn.Linear(2, 2))
    weights = network_of(module).weights
    audit = audit_of(weights, Failures())
    module.requires_grad_(False)
    module.parametrizations.weight.original0.requires_grad_(True)
    audit.observe(quick=True)
    with torch.no_grad():
        module.parametrizations.weight.original0.mul_(2)
    assert audit.check(1) == []
    with torch.no_grad():
        module.parametrizations.weight.original1.mul_(2)
    moved = {violation.variable for violation in audit.check(2)}
    assert moved == {"parametrizations/weight/original1"}
    module.requires_grad_(False)
    audit.check(3)
    with torch.no_grad():
        module.parametrizations.weight.original0.mul_(2)
    moved = {violation.variable for violation in audit.check(4)}
    assert moved == {"parametrizations/weight/original0"}


@pytest.mark.parametrize("first", ["frozen", "pruned"])
def test_what_torch_prunes_is_held_at_zero(first):
    module = nn.Linear(2, 3)
    audit = audit_of(network_of(module).weights, Failures())
    if first == "frozen":
        module.requires_grad_(False)
        audit.observe(quick=True)
    prune.custom_from_mask(module, "weight", torch.tensor([[1, 0], [1, 1], [0, 0]]))
    module.requires_grad_(False)
    audit.observe(quick=True)
    assert audit.check(1) == []
    with torch.no_grad():
        module.weight_orig[[0, 2, 2], [1, 0, 1]] -= 3  # as momentum does, behind the mask
    assert audit.check(2) == []
    with torch.no_grad():
        module.weight_orig += 0.5
    moved = {found.channel: (found.elements, found.held) for found in audit.check(3)}
    assert moved == {0: (1, 2), 1: (2, 2)}
    with torch.no_grad():
        module.weight_orig -= 0.5
    audit.check(4)
    prune.remove(module, "weight")
    audit.observe(quick=True)
    assert [found.channel for found in audit.check(5) if found.last_step == 5] == []
    with torch.no_grad():
        module.weight[2] = 1
    assert [found.channel for found in audit.check(6)] == [2]


def test_statistics_that_move_in_a_frozen_layer_are_said():
    module = nn.ModuleDict({"norm": nn.BatchNorm1d(2), "plain": nn.BatchNorm1d(2, affine=False)})
    weights, failures = network_of(module).weights, Failures()
    audit = audit_of(weights, failures)
    audit.check(1)
    assert failures.counts() == {}
    module.requires_grad_(False)
    audit.check(2)
    audit.check(3)
    assert failures.counts() == {}  # nothing called it
    module["norm"](torch.ones(3, 2))
    module["plain"](torch.ones(3, 2))
    audit.check(4)
    (text,) = failures.counts()
    assert text.startswith(
        "Statistics of frozen layers still follow their inputs, e.g. 'norm': call"
    )
    module.eval()
    audit.check(5)
    assert failures.counts() == {text: 1}


def test_a_schedule_has_the_rate_of_each_update_and_group():
    weights = [nn.Parameter(torch.ones(2)) for _ in range(2)]
    optimizer = torch.optim.SGD([{"params": weights[:1], "lr": 1.0}], lr=1.0)
    steps = Steps(5, deque([[0.3], [0.4, 0.7], [0.5, 0.8]]))  # the first two are forgotten
    optimizer.add_param_group({"params": weights[1:]})
    first, second = (
        _TorchOptimizerFacts(optimizer, group, steps).schedule for group in optimizer.param_groups
    )
    assert [first(update) for update in (2, 3, 4)] == [0.3, 0.4, 0.5]
    assert [second(update) for update in (2, 3, 4)] == [0.0, 0.7, 0.8]  # it was added
