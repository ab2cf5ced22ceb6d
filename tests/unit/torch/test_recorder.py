"""Trainings that are recorded: their numbers, and that they go on as without a recorder."""

from __future__ import annotations

import gc
import shutil
import weakref

import numpy as np
import pytest

import tb_pastnet as pastnet
from tb_pastnet.core.quantize import PRECISION
from tb_pastnet.errors import InvalidArgument

torch = pytest.importorskip("torch", reason="torch isn't installed: an extra of its own")

from torch import nn  # noqa: E402
from torch.nn.utils import prune  # noqa: E402
from torch.optim.optimizer import _global_optimizer_post_hooks  # noqa: E402

from tb_pastnet.torch.module_audit import ModuleAudit, ModuleCauses  # noqa: E402

needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++")

OPTIMIZERS = {
    "adadelta": torch.optim.Adadelta,
    "adafactor": torch.optim.Adafactor,
    "adagrad": torch.optim.Adagrad,
    "adam fused": lambda parameters: torch.optim.Adam(parameters, fused=True),
    "adamax": torch.optim.Adamax,
    "adamw": lambda parameters: torch.optim.AdamW(parameters, lr=1e-2, weight_decay=0.1),
    "asgd": torch.optim.ASGD,
    "lbfgs": lambda parameters: torch.optim.LBFGS(parameters, max_iter=2),
    "nadam": torch.optim.NAdam,
    "radam": torch.optim.RAdam,
    "rmsprop": torch.optim.RMSprop,
    "rprop": torch.optim.Rprop,
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9),
}


def small():
    torch.manual_seed(3)
    convolution = nn.Conv2d(1, 4, 3)
    return nn.Sequential(
        convolution, nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(16, 3), nn.Dropout(0.1)
    )


def train(make, logdir=None, *, build=small, steps=12, change=lambda step, model: None, **settings):
    """Trains, with a recorder where a directory is given.

    Returns:
        Losses, and the state of the model after each step, as NumPy arrays.
    """
    model = build()
    optimizer = make(model.parameters())
    x = torch.randn(8, 1, 4, 4)
    recorder = logdir and pastnet.torch.Recorder(logdir, model, optimizer, **settings)
    losses, states = [], [state_of(model)]

    def closure():
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        return loss

    for step in range(1, steps + 1):
        losses.append(optimizer.step(closure).item())
        if recorder:
            recorder.record(step)
        states.append(state_of(model))
        change(step, model)
    if recorder:
        assert recorder.flush()
        assert recorder.notes.counts() == {}
        recorder.close()
    return losses, states


def state_of(model):
    return {name: value.numpy().copy() for name, value in model.state_dict().items()}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_training_goes_on_to_the_bit_as_without_a_recorder(name, tmp_path):
    losses, states = train(OPTIMIZERS[name])
    recorded_losses, recorded_states = train(OPTIMIZERS[name], tmp_path, every=3)
    assert recorded_losses == losses
    for was, now in zip(states, recorded_states, strict=True):
        assert all(was[key].tobytes() == now[key].tobytes() for key in was)
    (run,) = pastnet.read(tmp_path).runs.values()
    assert run.steps.tolist() == [1, 3, 6, 9, 12]


@pytest.mark.parametrize(
    "backend",
    ["eager", pytest.param("inductor", marks=[pytest.mark.prove, needs_compiler])],
)
@pytest.mark.filterwarnings("ignore:.torch.jit.script_method. is deprecated")  # torch's own
def test_a_compiled_training_goes_on_as_without_a_recorder(backend, tmp_path):
    def compiled():
        torch._dynamo.reset()
        return torch.compile(small(), backend=backend)

    losses, _ = train(OPTIMIZERS["adamw"], build=compiled)
    assert train(OPTIMIZERS["adamw"], tmp_path, build=compiled)[0] == losses
    (run,) = pastnet.read(tmp_path).runs.values()
    assert list(run.layers) == ["0", "1", "4"]


class Loop:
    """A training of one layer, step by step."""

    def __init__(self, logdir, **settings):
        torch.manual_seed(0)
        self.model = nn.Linear(3, 2)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.5)
        settings = {"optimizer": self.optimizer, "every": 1, "initial_step": 0, **settings}
        self.recorder = pastnet.torch.Recorder(logdir, self.model, **settings)

    def loss(self, factor=0.01):
        self.optimizer.zero_grad()
        return factor * self.model(torch.ones(4, 3)).square().sum()

    def update(self, step):
        self.loss().backward()
        self.optimizer.step()
        self.recorder.record(step)

    def read(self, logdir):
        assert self.recorder.flush()
        self.recorder.close()
        (run,) = pastnet.read(logdir).runs.values()
        return run


def test_a_step_that_a_scaler_skips_is_none(tmp_path):
    loop = Loop(tmp_path)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0)
    for step in range(1, 7):
        scaler.scale(loop.loss(float("inf") if step in (1, 4) else 0.01)).backward()
        scaler.step(loop.optimizer)
        scaler.update()
        loop.recorder.record(step)
    assert loop.read(tmp_path).steps.tolist() == [2, 3, 5, 6]


@pytest.mark.filterwarnings("ignore:.torch.jit.script_method. is deprecated")  # torch's own
def test_a_compiled_step_of_an_optimizer_is_seen(tmp_path):
    def run(logdir):
        torch._dynamo.reset()
        loop = Loop(tmp_path / "unused" if logdir is None else logdir)
        if logdir is None:
            loop.recorder.close()
        step_compiled = torch.compile(loop.optimizer.step, backend="eager")
        for step in range(1, 5):
            loop.loss().backward()
            step_compiled()
            loop.recorder.record(step)
        assert loop.recorder.notes.counts() == {}
        loop.recorder.close()
        return loop.model.weight.detach().numpy().tobytes()

    assert run(None) == run(tmp_path / "a")
    (run_read,) = pastnet.read(tmp_path / "a").runs.values()
    assert run_read.steps.tolist() == [1, 2, 3, 4]


def test_without_any_optimizer_of_torch_each_call_is_a_step(tmp_path):
    loop = Loop(tmp_path, optimizer=None)
    for step in (1, 2):
        with torch.no_grad():
            loop.model.weight += 1
        loop.recorder.record(step)
    assert loop.read(tmp_path).steps.tolist() == [1, 2]


def test_mixed_precision_trains_as_without_a_recorder(tmp_path):
    def run(logdir):
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0**127, backoff_factor=2.0**-30)
        loop = Loop(tmp_path / "unused" if logdir is None else logdir)
        if logdir is None:
            loop.recorder.close()
        for step in range(1, 6):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = loop.loss(1.0)
            scaler.scale(loss).backward()
            scaler.step(loop.optimizer)
            scaler.update()
            loop.recorder.record(step)
        assert scaler.get_scale() < 2.0**127  # a step was skipped
        loop.recorder.close()
        return loop.model.weight.detach().numpy().tobytes()

    assert run(None) == run(tmp_path / "a")


def test_pruning_while_it_is_recorded(tmp_path):
    def change(step, model):
        if step == 4:
            prune.ln_structured(model[4], "weight", amount=1, n=2, dim=0)

    _, states = train(OPTIMIZERS["sgd"], tmp_path, every=4, change=change)
    (run,) = pastnet.read(tmp_path).runs.values()
    weight = run.variables["4/weight"]
    kept = states[-1]["4.weight_mask"].mean(1)
    assert sorted(kept) == [0, 1, 1]
    np.testing.assert_array_equal(weight.kept[-1], kept)
    np.testing.assert_array_equal(weight.kept[1], [1, 1, 1])  # the record of step 4
    effective = states[-1]["4.weight_orig"] * states[-1]["4.weight_mask"]
    np.testing.assert_allclose(weight.norm[-1], np.linalg.norm(effective, axis=1), rtol=PRECISION)


def test_a_mask_that_is_written_through_data_is_in_the_next_record(tmp_path):
    def change(step, model):
        if step == 1:
            prune.l1_unstructured(model[4], "weight", amount=1)
        if step == 6:
            model[4].weight_mask.data[1] = 0

    train(OPTIMIZERS["sgd"], tmp_path, every=4, change=change)
    (run,) = pastnet.read(tmp_path).runs.values()
    kept = run.variables["4/weight"].kept
    assert (kept[1, 1] > 0, kept[2, 1]) == (True, 0)


def test_freezing_while_it_is_recorded(tmp_path):
    def change(step, model):
        if step == 4:
            model[0].requires_grad_(False)

    train(OPTIMIZERS["adamw"], tmp_path, every=4, change=change)
    (run,) = pastnet.read(tmp_path).runs.values()
    assert not run.violations
    assert run.variables["0/weight"].trainable.any(1).tolist() == [True, True, False, False]
    # Statistics aren't held: they move with what comes in.
    assert run.variables["1/running_mean"].delta_norm[-1].all()
    assert run.variables["1/running_mean"].trainable.all()


@pytest.mark.parametrize("audit", [True, False])
def test_what_is_frozen_is_audited_unless_that_is_not_wanted(audit, tmp_path):
    loop = Loop(tmp_path, audit=audit)
    loop.update(1)
    loop.model.weight.requires_grad_(False)
    loop.update(2)
    with torch.no_grad():
        loop.model.weight[1] += 1
    loop.update(3)
    assert loop.recorder.alerts.violated == audit
    (violation,) = loop.read(tmp_path).violations  # without an audit what the records show
    assert (violation.variable, violation.channel) == ("weight", 1)
    assert violation.cause == ("loaded" if audit else "unknown")


def test_arguments_that_cannot_be_used_are_refused(tmp_path):
    with pytest.raises(InvalidArgument, match=r"expected every= a whole number"):
        pastnet.torch.Recorder(tmp_path, small(), every=0)
    with pytest.raises(InvalidArgument, match=r"expected optimizer= a torch.optim.Optimizer or"):
        pastnet.torch.Recorder(tmp_path, small(), optimizer=0.1)
    assert list(tmp_path.iterdir()) == []


def test_parameters_that_no_optimizer_trains_are_named_in_the_log(tmp_path):
    model = small()
    optimizer = torch.optim.SGD(model[0].parameters(), lr=0.1)
    with pastnet.torch.Recorder(tmp_path, model, optimizer) as recorder:
        (note,) = recorder.notes.counts()
    assert note.startswith(
        "No optimizer trains 1/weight, 1/bias, 4/weight and 4/bias, though requires"
    )


def test_a_recorder_that_is_closed_leaves_no_hook(tmp_path):
    hooks = len(_global_optimizer_post_hooks)
    loop = Loop(tmp_path)
    assert len(_global_optimizer_post_hooks) == hooks + 1
    loop.recorder.close()
    assert len(_global_optimizer_post_hooks) == hooks
    loop.update(1)  # and does nothing
    model = weakref.ref(loop.model)
    del loop
    gc.collect()
    assert model() is None


@pytest.mark.parametrize(("begin", "then"), [("float", "double"), ("double", "float")])
def test_a_model_that_gets_another_precision_is_recorded_and_holds(begin, then, tmp_path):
    model = getattr(nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 3)), begin)()
    with torch.no_grad():
        model[0].weight.fill_(0.5)  # the same in both
        model[0].bias.fill_(0.25)
    model[0].requires_grad_(False)
    with pastnet.torch.Recorder(tmp_path, model, every=1) as recorder:
        for step in range(1, 5):
            with torch.no_grad():
                model[1].weight += 1
            recorder.record(step)
            if step == 2:
                getattr(model, then)()
        assert recorder.notes.counts() == {}
    (run,) = pastnet.read(tmp_path).runs.values()
    assert run.steps.tolist() == [1, 2, 3, 4]
    assert run.violations == ()
    np.testing.assert_allclose(run["1"].delta_norm, np.sqrt(3), rtol=PRECISION)


def test_names_come_as_torch_gives_them(tmp_path):
    model = nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 3))
    keys = model.state_dict().keys()
    given = {"keys": keys, "names": (key for key in keys), "parameters": model.parameters()}
    for name, variables in given.items():
        with pastnet.torch.Recorder(tmp_path / name, model, variables=variables) as recorder:
            recorder.record(1)
        (run,) = pastnet.read(tmp_path / name).runs.values()
        assert list(run.variables) == ["0/weight", "0/bias", "1/weight", "1/bias"]


@pytest.mark.parametrize("masks", [{}, {"*": np.eye(2)}])
def test_an_optimizer_for_each_weight_costs_no_more_than_its_weight(masks, tmp_path, monkeypatch):
    layers = nn.ModuleList(nn.Linear(2, 2, bias=False) for _ in range(9))
    layers[0].requires_grad_(False)
    optimizers = [torch.optim.SGD(layer.parameters(), 0.1) for layer in layers]
    looks = []

    def counted(method):
        return lambda self, *args, **more: looks.append(type(self)) or method(self, *args, **more)

    monkeypatch.setattr(ModuleAudit, "changed", property(counted(ModuleAudit.changed.fget)))
    monkeypatch.setattr(ModuleCauses, "_look", counted(ModuleCauses._look))
    with pastnet.torch.Recorder(tmp_path, layers, optimizers, every=9, trainable=masks) as recorder:
        for step in range(1, 4):
            looks.clear()
            for layer, optimizer in zip(layers, optimizers, strict=True):
                layer.weight.grad = torch.ones(2, 2)
                optimizer.step()
            recorder.record(step)
        assert looks.count(ModuleAudit) == 1  # before the first update of a step
        assert looks.count(ModuleCauses) == (16 if masks else 0)  # around each step of its weight


def test_a_training_whose_steps_are_all_skipped_says_so(tmp_path, caplog):
    model = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**127)
    with pastnet.torch.Recorder(tmp_path, model, optimizer, every=1) as recorder:
        for step in range(1, 5):
            scaler.scale(model(torch.full((8, 2), 1e3)).sum()).backward()
            scaler.step(optimizer)
            scaler.update()
            recorder.record(step)
    line = f"Only initial values in {tmp_path}: record was called 4 times"
    assert caplog.messages == [f"{line}, but no optimizer made a step."]
    assert recorder.summary == caplog.messages[0]
    log = pastnet.read(tmp_path)
    (run,) = log.runs.values()
    assert (run.steps.tolist(), run.closed) == ([0], True)
    expected = np.linalg.norm(model.weight.detach().double().numpy(), axis=1)
    np.testing.assert_allclose(run.variables["weight"].norm[0], expected, rtol=0.022)
    assert np.isnan(run.variables["weight"].delta_norm).all()
    (finding,) = (each for each in log.findings() if each.severity == "harm")
    assert (finding.kind, finding.numbers["calls"], finding.first_step) == ("never_stepped", 4, 0)


def test_optimizers_that_are_gone_are_not_walked_at_each_record(tmp_path):
    model = nn.Linear(2, 2)
    with pastnet.torch.Recorder(tmp_path, model, every=1) as recorder:
        for step in range(1, 30):
            optimizer = torch.optim.SGD(model.parameters(), 0.1 / step)
            model(torch.ones(1, 2)).sum().backward()
            optimizer.step()
            recorder.record(step)
            assert len(recorder._steps._references) <= 2
    rates = pastnet.read(tmp_path).runs["."].learning_rates
    np.testing.assert_allclose(rates, [0.1 / step for step in range(1, 30)])


def test_what_is_frozen_between_the_steps_of_two_optimizers_is_held(tmp_path):
    model = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2)])
    first, second = (torch.optim.SGD(layer.parameters(), 0.1) for layer in model)
    with pastnet.torch.Recorder(tmp_path, model, [first, second], every=1) as recorder:
        for step in range(1, 4):
            for parameter in model.parameters():
                parameter.grad = torch.ones_like(parameter)
            first.step()
            model[1].requires_grad_(step < 3)
            second.step()
            recorder.record(step)
    (run,) = pastnet.read(tmp_path).runs.values()
    assert {(each.variable, each.first_step) for each in run.violations} == {
        ("1/weight", 3),
        ("1/bias", 3),
    }


def test_a_sparse_gradient_is_one(tmp_path):
    model = nn.Embedding(5, 3, sparse=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    held = np.array([[1], [0], [1], [1], [1]]) * np.ones((5, 3))
    with pastnet.torch.Recorder(
        tmp_path, model, optimizer, every=1, trainable={"weight": held}
    ) as r:
        for step in range(1, 3):
            optimizer.zero_grad()
            model(torch.tensor([0, 1])).sum().backward()
            optimizer.step()
            r.record(step)
    (run,) = pastnet.read(tmp_path).runs.values()
    assert {violation.cause for violation in run.violations} == {"gradient"}


def test_what_is_unfrozen_into_a_new_group_has_the_rate_of_that_group(tmp_path):
    module = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))
    base, head = module[:2].requires_grad_(False), module[2]
    optimizer = torch.optim.SGD(head.parameters(), lr=0.5)
    with pastnet.torch.Recorder(tmp_path, module, optimizer, every=1) as recorder:
        for step in range(1, 13):
            if step == 5:
                optimizer.param_groups[0]["lr"] = 0.25
                base.requires_grad_(True)
                optimizer.add_param_group({"params": list(base.parameters()), "lr": 0.125})
            optimizer.zero_grad()
            module(torch.randn(8, 3)).square().mean().backward()
            optimizer.step()
            recorder.record(step)
    run = pastnet.read(tmp_path)["."]
    assert run.layers["2"].learning_rates.tolist() == [0.5] * 4 + [0.25] * 8
    assert run.layers["0"].learning_rates.tolist() == [0.5] * 4 + [0.125] * 8
    assert run.learning_rates.tolist() == [0.5] * 4 + [0.25] * 8
    [jump] = [finding for finding in run.findings() if finding.kind == "learning_rate"]
    assert (jump.first_step, "from 0.5 to 0.25" in jump.text) == (5, True)


@pytest.mark.parametrize("name", ["_passed", "_timer.passed"])
@pytest.mark.parametrize("numbered", [True, False])
def test_a_step_whose_short_way_fails_is_made_once(tmp_path, monkeypatch, name, numbered):
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    recorder = pastnet.torch.Recorder(tmp_path, model, optimizer, every=4)
    *parts, last = name.split(".")
    owner = getattr(recorder, parts[0]) if parts else recorder
    works = getattr(owner, last)

    def fails(*args, **given):
        works(*args, **given)
        raise TimeoutError("of a signal handler")

    for step in range(1, 13):
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()
        with monkeypatch.context() as patch:
            if step in (6, 10):
                patch.setattr(owner, last, fails)
            recorder.record(*[step] * numbered)
    recorder.close()
    (run,) = pastnet.read(tmp_path).runs.values()
    assert len(run.lineages) == 1
    assert run.steps.tolist() == [1, 4, 8, 12]
    assert run.variables["weight"].past_steps.tolist() == [0, 3, 7, 11]
    assert list(run.notes.values()) == [2]
