"""`pastnet.torch.preflight`: the right causes, nothing about what is healthy, and no trace left.

`BROKEN` and `LEAKING` say what each program does wrong, by how it is written; `HEALTHY` are those
of which nothing may be said.
"""

from __future__ import annotations

import copy
import itertools
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tb_pastnet as pastnet
from tb_pastnet.errors import InvalidArgument

torch = pytest.importorskip("torch", reason="torch isn't installed: an extra of its own")
from torch.nn.utils import prune  # noqa: E402

from tests.contract.test_standing import STILL, chain, in_16_bits, inputs, loop, net  # noqa: E402
from tests.sampled import sampled  # noqa: E402

nn, optim = torch.nn, torch.optim
preflight = pastnet.torch.preflight
Program = tuple[Any, Any, Callable[[], object]]
"""A module, its optimizers, and a function that makes a step."""


def counted_up(training: Any) -> Program:
    module, optimizers, step = training
    numbers = itertools.count(1)
    return module, optimizers, lambda: step(next(numbers))


def usual(module: Any, optimizers: Any, loss: Any = None) -> Program:
    return counted_up(loop(module, optimizers, loss or chain(module)))


def layers(facts: dict[str, str]) -> dict[str, str]:
    """Of each layer what is said about its weight."""
    own = ((name.rpartition("/"), cause) for name, cause in facts.items())
    return {layer: cause for (layer, _, last), cause in own if last == "weight"}


BROKEN: dict[str, tuple[Callable[[], Program], dict[str, str]]] = {
    name: (lambda make=make: counted_up(make()), expected)
    for name, (make, expected) in STILL.items()
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_stands_still_is_named_with_its_cause(name: str) -> None:
    torch.manual_seed(1)
    make, expected = BROKEN[name]
    facts = preflight(*make())
    assert layers(facts.still) == expected
    assert not facts.ok
    assert all(name in str(facts) for name in facts.still if len(facts.still) < 6)
    missing = {name for name, cause in facts.still.items() if cause == "no_optimizer"}
    assert set(facts.left_out) == missing


def test_steps_that_no_optimizer_made_yet_show_no_cause() -> None:
    module, optimizer, step = accumulated()
    calls = itertools.count(1)
    waits = lambda: chain(module)(1).backward() if next(calls) % 4 else step()  # noqa: E731
    assert set(preflight(module, optimizer, waits).still.values()) == {"unknown"}
    calls = itertools.count(1)
    assert preflight(module, optimizer, waits, steps=4).ok


def test_steps_that_a_scaler_skips() -> None:
    module, optimizer, _ = accumulated()
    scaler = torch.amp.GradScaler("cpu")

    def step() -> None:
        scaler.scale(chain(module)(1) * float("inf")).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()

    assert set(preflight(module, optimizer, step, scaler=scaler).still.values()) == {"skipped"}
    assert scaler._scale is None


# Frozen, but moves.


def frozen_body(make: Callable[[Any], Any], *, to_none: bool = False, after: Any = None) -> Program:
    module = net()
    optimizer = make(module.parameters())
    chain(module)(0).backward()
    optimizer.step()
    module["a"].requires_grad_(False)

    def step() -> None:
        optimizer.zero_grad(set_to_none=to_none)
        chain(module)(1).backward()
        optimizer.step()
        if after is not None:
            after(module)

    return module, optimizer, step


def loads(module: Any) -> None:
    with torch.no_grad():
        module["a"].weight.mul_(1.5)
        module["a"].bias.add_(1)


def kept_gradient() -> Program:
    module, optimizer, _ = frozen_body(lambda own: optim.SGD(own, 0.1))

    def late() -> None:
        chain(module)(1).backward()  # nothing clears gradients
        optimizer.step()

    return module, optimizer, late


LEAKING: dict[str, tuple[Callable[[], Program], str]] = {
    "decay": (
        lambda: frozen_body(lambda own: optim.AdamW(own, 0.1, betas=(0.0, 0.9))),
        "weight_decay",
    ),
    "momentum": (lambda: frozen_body(lambda own: optim.SGD(own, 0.1, momentum=0.9)), "momentum"),
    "kept gradient": (kept_gradient, "stale_gradient"),
    "loaded": (
        lambda: frozen_body(lambda own: optim.SGD(own, 0.1), to_none=True, after=loads),
        "loaded",
    ),
}


@pytest.mark.parametrize("name", LEAKING)
def test_frozen_weights_that_move_are_named_with_their_cause(name: str) -> None:
    torch.manual_seed(1)
    make, cause = LEAKING[name]
    facts = preflight(*make())
    assert facts.leaks == {"a/weight": cause, "a/bias": cause}
    assert facts.frozen == ["a/weight", "a/bias"]
    assert not facts.still
    assert not facts.ok


# Healthy.


def normed(*, frozen: bool = False) -> Program:
    module = net(a=nn.Linear(4, 8), n=nn.BatchNorm1d(8), d=nn.Dropout(), b=nn.Linear(8, 3))
    if frozen:
        module["n"].requires_grad_(False)
    return usual(
        module,
        optim.Adam(module.parameters(), 1e-2),
        lambda n: (
            (module["b"](module["d"](torch.tanh(module["n"](module["a"](inputs(n)))))) - 1)
            .pow(2)
            .mean()
        ),
    )


def fine_tuned(make: Any) -> Program:
    module = net()
    module["a"].requires_grad_(False)
    return usual(module, make(module))


def trainable(module: Any) -> list[Any]:
    return [each for each in module.parameters() if each.requires_grad]


def lora() -> Program:
    """B begins at zero, so A gets its first gradient in the second step."""
    module = net(a=nn.Linear(4, 2, bias=False), b=nn.Linear(2, 3, bias=False))
    nn.init.zeros_(module["b"].weight)
    return usual(module, optim.SGD(module.parameters(), 0.1),
                 lambda n: (module["b"](module["a"](inputs(n))) - 1).pow(2).mean())  # fmt: skip


def lbfgs() -> Program:
    module = net()
    optimizer = optim.LBFGS(module.parameters(), max_iter=3)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = chain(module)(1)
        loss.backward()
        return loss

    return module, optimizer, lambda: optimizer.step(closure)


def accumulated() -> Program:
    module = net()
    optimizer = optim.AdamW(module.parameters())

    def step() -> None:
        for number in range(3):
            chain(module)(number).backward()
        optimizer.step()
        optimizer.zero_grad()

    return module, optimizer, step


def adversarial() -> Program:
    """Two networks with an optimizer each, one of which is frozen now and then."""
    module = net(g=nn.Linear(4, 4), d=nn.Linear(4, 1))
    each = {key: optim.Adam(module[key].parameters(), 1e-2) for key in "gd"}

    def step() -> None:
        for key, sign in (("d", 1), ("g", -1)):
            module["d"].requires_grad_(key == "d")
            each[key].zero_grad()
            (sign * module["d"](module["g"](inputs(1)))).mean().backward()
            each[key].step()
        module["d"].requires_grad_(True)

    return module, [*each.values()], step


def scaled() -> Program:
    module = net()
    optimizer = optim.SGD(module.parameters(), 0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)

    def step() -> None:
        optimizer.zero_grad()
        scaler.scale(chain(module)(1)).backward()
        scaler.step(optimizer)
        scaler.update()

    return module, optimizer, step


def unshared() -> Program:
    module = net(a=nn.Linear(4, 4), b=nn.Linear(4, 4))
    module["b"].weight = module["a"].weight
    return usual(module, optim.SGD(module.parameters(), 0.1),
                 lambda n: module["b"](torch.tanh(module["a"](inputs(n)))).pow(2).mean())  # fmt: skip


def weight_normed() -> Program:
    module = net(a=nn.utils.parametrizations.weight_norm(nn.Linear(4, 8)), b=nn.Linear(8, 3))
    return usual(module, optim.AdamW(module.parameters(), 1e-2))


def pruned() -> Program:
    module = net()
    prune.l1_unstructured(module["a"], "weight", 0.5)
    return usual(module, optim.SGD(module.parameters(), 0.1))


def resumed() -> Program:
    program = plain(lambda module: optim.Adam(module.parameters(), 1e-2))()
    program[2]()
    return program


def zero_now() -> Program:
    """The second gradient is zero: momentum moves the weights, not decay alone."""
    module = net()
    usual_loss = chain(module)
    return usual(module, optim.AdamW(module.parameters(), 1e-2), lambda n: n % 2 * usual_loss(n))


def plain(make: Any) -> Callable[[], Program]:
    def program() -> Program:
        module = net()
        return usual(module, make(module))

    return program


HEALTHY: dict[str, Callable[[], Program]] = {
    "SGD": plain(lambda module: optim.SGD(module.parameters(), 0.1)),
    "momentum, decay": plain(
        lambda module: optim.SGD(module.parameters(), 0.1, momentum=0.9, weight_decay=0.1)
    ),
    "AdamW": plain(lambda module: optim.AdamW(module.parameters())),
    "AdamW, large decay": plain(
        lambda module: optim.AdamW(module.parameters(), 1e-2, weight_decay=1.0)
    ),
    "foreach": plain(lambda module: optim.Adam(module.parameters(), foreach=True)),
    "fused": plain(lambda module: optim.Adam(module.parameters(), fused=True)),
    "groups": plain(
        lambda module: optim.SGD([{"params": module[key].parameters(), "lr": rate}
                                  for key, rate in (("a", 1e-3), ("b", 0.1))])
    ),
    "two optimizers": plain(
        lambda module: [optim.SGD(module["a"].parameters(), 0.1), optim.Adam(module["b"].parameters())]
    ),
    "BatchNorm, Dropout": normed,
    "frozen, given": lambda: fine_tuned(lambda module: optim.AdamW(module.parameters(), 1e-2)),
    "frozen, left out": lambda: fine_tuned(lambda module: optim.AdamW(trainable(module), 1e-2)),
    "LoRA": lora,
    "LBFGS": lbfgs,
    "accumulated": accumulated,
    "adversarial": adversarial,
    "GradScaler": scaled,
    "shared": unshared,
    "weight_norm": weight_normed,
    "pruned": pruned,
    "resumed": resumed,
    "zero now": zero_now,
    "bfloat16": lambda: counted_up(in_16_bits(1e-2, optim.Adam)),
}  # fmt: skip


@pytest.mark.parametrize("name", HEALTHY)
def test_nothing_is_said_about_what_is_healthy(name: str) -> None:
    torch.manual_seed(2)
    module, *rest = HEALTHY[name]()
    facts = preflight(module, *rest)
    assert facts.ok, str(facts)
    assert len(str(facts).splitlines()) == 1
    assert (facts.steps, facts.weights) == (2, len({*module.parameters()}))
    assert facts.values == sum(each.numel() for each in module.parameters())


def test_what_isnt_the_models_and_statistics_of_frozen_layers() -> None:
    module = normed(frozen=True)[0]
    optimizer = optim.Adam([*module.parameters(), nn.Parameter(torch.zeros(2, 3))], 1e-2)
    facts = preflight(module, optimizer, usual(module, optimizer, lambda n: module["b"](
        module["n"](module["a"](inputs(n)))).sum())[2])  # fmt: skip
    assert facts.foreign == ["Adam group 0, parameter 6 (2, 3)"]
    assert facts.statistics == ["n/running_mean", "n/running_var"]
    assert not facts.ok


# Everything is put back.


def state_of(module: Any, optimizers: Any, scaler: Any) -> Any:
    """All that is put back, copied: tensors as bits, everything else as it is."""
    parts = [
        {name: (id(t), t.dtype, tuple(t.shape)) for name, t in named}
        for named in (module.named_parameters(), module.named_buffers())
    ]
    own = [*module.parameters(), *module.buffers()]
    modes = [(each.training, [*each._modules]) for each in module.modules()]
    others = [vars(each) for each in (*optimizers, *([] if scaler is None else [scaler]))]
    flags = [(t.requires_grad, t.grad) for t in module.parameters()]
    rng = random.getstate(), np.random.get_state(), torch.get_rng_state()  # noqa: NPY002
    return as_bits([parts, own, modes, flags, others, rng])


def as_bits(value: Any) -> Any:
    if isinstance(value, torch.Tensor) and value.is_sparse:
        value = value.detach().coalesce()
        return "sparse", as_bits(value.indices()), as_bits(value.values())
    if isinstance(value, torch.Tensor):
        return str(value.dtype), value.detach().clone().contiguous().view(-1).view(
            torch.uint8
        ).numpy().tobytes()
    if isinstance(value, np.ndarray):
        return value.tobytes()
    if isinstance(value, dict):
        return [
            (id(key) if isinstance(key, torch.Tensor) else key, as_bits(each))
            for key, each in value.items()
        ]
    if isinstance(value, list | tuple):
        return [as_bits(each) for each in value]
    return copy.copy(value) if isinstance(value, set) else value


OPTIMIZERS = {
    name: options
    for name, options in {
        "Adadelta": {}, "Adafactor": {}, "Adagrad": {}, "Adam": {"amsgrad": True}, "AdamW": {}, "Adamax": {},
        "ASGD": {}, "LBFGS": {"history_size": 2}, "NAdam": {}, "RAdam": {}, "RMSprop": {"centered": True}, "Rprop": {},
        "SGD": {"momentum": 0.9}, "SparseAdam": {}, "Muon": {},
    }.items()
    if hasattr(optim, name)
}  # fmt: skip
assert len(OPTIMIZERS) >= 13


def every_kind() -> list[Any]:
    """Each optimizer of torch, in each of the ways in which it computes."""
    cases = []
    for name in OPTIMIZERS:
        accepts = getattr(optim, name).__init__.__code__.co_varnames
        cases += [
            (name, {}),
            *((name, {way: True}) for way in ("foreach", "fused") if way in accepts),
        ]
    return cases


def busy(name: str, way: dict[str, bool], *, warm: bool) -> tuple[Any, Any, Any, Any]:
    """A program that draws numbers and changes all that it can, after some steps or none."""
    sparse = name == "SparseAdam"
    module = net(e=nn.Embedding(5, 4, sparse=sparse), n=nn.BatchNorm1d(4), d=nn.Dropout(0.2),
                 b=nn.Linear(4, 3, bias=False))  # fmt: skip
    module["n"].requires_grad_(False)
    own = module["e"].parameters() if sparse else trainable(module)
    optimizer = getattr(optim, name)(own, 1e-2, **OPTIMIZERS[name], **way)
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0, growth_interval=1)

    def closure() -> Any:
        optimizer.zero_grad()
        ids = torch.as_tensor([random.randrange(5) for _ in range(8)])
        hidden = module["d"](module["n"](module["e"](ids))) + float(np.random.normal())  # noqa: NPY002
        loss = (module["b"](hidden) - 1).pow(2).mean() + torch.rand(())
        (loss if name == "LBFGS" else scaler.scale(loss)).backward()
        return loss

    def step() -> None:
        if name == "LBFGS":
            optimizer.step(closure)
            return
        closure()
        scaler.step(optimizer)
        scaler.update()

    if warm:
        step()
        step()

    def changes_all() -> None:
        optimizer.zero_grad(set_to_none=False)
        step()
        optimizer.param_groups[0]["lr"] *= 0.5
        module.eval()
        module["b"].requires_grad_(False)
        module["n"].running_mean = torch.zeros(4)
        module["n"].weight.data = torch.zeros(4)
        module["new"] = nn.Linear(1, 1)
        optimizer.add_param_group({"params": [*module["new"].parameters()]})

    return module, optimizer, scaler, changes_all


@pytest.mark.parametrize("warm", [False, True])
@pytest.mark.parametrize(("name", "way"), sampled(every_kind(), 3))
def test_everything_is_put_back(name: str, way: dict[str, bool], warm: bool) -> None:
    torch.manual_seed(0)
    module, optimizer, scaler, step = busy(name, way, warm=warm)
    before = state_of(module, [optimizer], scaler)
    moved = []

    def checked() -> None:
        step()
        moved.append(state_of(module, [optimizer], scaler) != before)

    preflight(module, optimizer, checked, steps=1, scaler=scaler)
    assert moved == [True]
    assert state_of(module, [optimizer], scaler) == before


@pytest.fixture
def alone() -> Any:
    """A process group of this process."""
    dist = torch.distributed
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


@pytest.mark.usefixtures("alone")
def test_weights_that_fully_shard_spreads() -> None:
    module = torch.distributed.fsdp.fully_shard(nn.Sequential(*net().values()))
    optimizer = optim.AdamW(module.parameters())
    local = lambda: as_bits([each.to_local() for each in module.parameters()])  # noqa: E731
    before = local()
    step = usual(module, optimizer, lambda number: module(inputs(number)).sum())[2]
    assert preflight(module, optimizer, step).ok
    assert local() == before
    assert not optimizer.state


def test_memory_that_a_step_frees() -> None:
    module, optimizer, step = plain(lambda module: optim.SGD(module.parameters(), 0.1))()
    before = as_bits([*module.parameters()])

    def frees() -> None:
        step()
        module["a"].weight.untyped_storage().resize_(0)

    with pytest.raises(InvalidArgument, match="a/weight"):
        preflight(module, optimizer, frees, steps=1)
    assert as_bits([*module.parameters()]) == before


def test_an_error_of_a_step_passes_through_and_everything_is_put_back() -> None:
    module, optimizer, scaler, step = busy("AdamW", {}, warm=True)
    before = state_of(module, [optimizer], scaler)

    def fails() -> None:
        step()
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        preflight(module, optimizer, fails, scaler=scaler)
    assert state_of(module, [optimizer], scaler) == before


def test_training_goes_on_as_if_there_had_been_no_preflight() -> None:
    assert ending(tried=False) == ending(tried=True)


def ending(*, tried: bool) -> Any:
    torch.manual_seed(0)
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002
    module, optimizer, scaler, _ = busy("AdamW", {}, warm=True)
    hidden = lambda: module["d"](module["n"](module["e"](torch.arange(5))))  # noqa: E731
    step = usual(module, optimizer, lambda n: module["b"](hidden()).sum())[2]
    if tried:
        preflight(module, optimizer, step, scaler=scaler)
    step()
    return as_bits([*module.parameters(), *module.buffers()])


def test_the_copy_takes_weights_buffers_and_slots_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    from tb_pastnet.torch import preflight_steps

    kept = []

    class Measured(preflight_steps.SavedState):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            kept.append(self.nbytes)

    monkeypatch.setattr(preflight_steps, "SavedState", Measured)
    module, optimizer, step = resumed()
    module["tied"] = module["a"]
    optimizer.zero_grad()
    preflight(module, optimizer, step)
    slots = [each for state in optimizer.state.values() for each in state.values()]
    tensors = [*module.parameters(), *module.buffers(), *slots]
    assert kept == [sum(tensor.untyped_storage().nbytes() for tensor in tensors)]


@pytest.mark.parametrize(
    ("change", "text"),
    [({"step": None}, "step="), ({"steps": 0}, "steps="), ({"step_": 1}, "step_="),
     ({"optimizer": "sgd"}, "optimizer="), ({"scaler": 2.0}, "scaler="), ({"model": {}}, "model=")],
)  # fmt: skip
def test_wrong_calls(change: dict[str, Any], text: str) -> None:
    module = net()
    optimizer = optim.SGD(module.parameters(), 0.1)
    given = {"model": module, "optimizer": optimizer, "step": lambda: None} | change
    with pytest.raises(InvalidArgument, match=text):
        preflight(**given)
