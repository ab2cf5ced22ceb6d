"""One table of modules for all rooms: how each is built, trained, and what it does between records.

A training with a recorder has to be as one without: `torch_run` gives what can be compared. Entries
of torch are functions that return a `Training`.
"""

from __future__ import annotations

import copy
import gc
import io
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.utils import parametrizations, parametrize, prune
from torch.optim import optimizer as hooks_of_torch

import tb_pastnet as pastnet
from tb_pastnet.record import device_array
from tb_pastnet.record.failures import Failures
from tb_pastnet.torch.optimizer_steps import OptimizerSteps

X = torch.linspace(-1, 1, 32).reshape(8, 4)
STEPS = 5


def nothing(*_: Any) -> None:
    """What most modules do between records."""


@dataclass
class Training:
    """A module in training.

    Attributes:
        between: called after each record with the number of the step.
        before: called before each step with its number.
        tensors: others of the user's that are compared.
        missed: how many records can't be made, as weights have no memory then.
    """

    module: nn.Module
    optimizer: Any = None
    loss: Callable[[], Any] | None = None
    between: Callable[[int], object] = nothing
    before: Callable[[int], object] = nothing
    tensors: dict[str, Any] = field(default_factory=dict)
    missed: int = 0
    errors: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.optimizer is None:
            self.optimizer = torch.optim.SGD(self.module.parameters(), 0.1, momentum=0.9)

    def step(self, number: int) -> None:
        """One step, as users write it."""
        try:
            self.before(number)
            self.optimizer.zero_grad(set_to_none=number % 2 == 0)
            loss = self.module(X).float().square().mean() if self.loss is None else self.loss()
            loss.backward()
            self.optimizer.step()
        except Exception as error:
            self.errors.append(f"{number}: {error!r}")


TABLE: dict[str, Callable[[], Training]] = {}


def entry(build: Callable[[], Training]) -> Callable[[], Training]:
    """Adds a function to the table."""
    TABLE[build.__name__] = build
    return build


def with_buffer(make: Callable[[], Any]) -> Training:
    module = nn.Linear(4, 3)
    module.register_buffer("extra", make())
    return Training(module)


for _name, _make in {
    "buffer_float8": lambda: torch.ones(3).to(torch.float8_e4m3fn),
    "buffer_bfloat16": lambda: torch.ones(3, 5, dtype=torch.bfloat16),
    "buffer_bool": lambda: torch.ones(3, dtype=torch.bool),
    "buffer_integer": lambda: torch.arange(7),
    "buffer_complex": lambda: torch.ones(3, dtype=torch.complex64),
    "buffer_of_no_elements": lambda: torch.zeros(0, 3),
    "buffer_scalar": lambda: torch.tensor(2.5),
    "buffer_expanded": lambda: torch.ones(1, 3).expand(7, 3),
    "buffer_with_a_negative_bit": lambda: torch.ones(3, 2, dtype=torch.complex64).conj().imag,
    "buffer_with_gaps": lambda: torch.arange(129.0).as_strided((4, 8), (32, 3), 2),
    "buffer_sparse": lambda: torch.eye(3).to_sparse(),
    "buffer_on_a_file": lambda: torch.frombuffer(bytearray(64), dtype=torch.float32),
    "buffer_that_shares_lazily": lambda: torch._lazy_clone(torch.ones(65, 2)),
    "buffer_large_and_lazy": lambda: torch._lazy_clone(torch.ones(4097, 64)),
}.items():
    TABLE[_name] = lambda make=_make: with_buffer(make)


@entry
def plain() -> Training:
    return Training(nn.Sequential(nn.Linear(4, 63), nn.ReLU(), nn.Linear(63, 1)))


@entry
def large() -> Training:
    """Weights above the size up to which they are copied together."""
    return Training(nn.Sequential(nn.Linear(4, 4097), nn.ReLU(), nn.Linear(4097, 33)))


@entry
def doubles() -> Training:
    module = nn.Linear(4, 3).double()
    return Training(module, loss=lambda: module(X.double()).mean())


@entry
def halves() -> Training:
    module = nn.Linear(4, 3).half()
    return Training(module, loss=lambda: module(X.half()).mean())


@entry
def brain_floats() -> Training:
    module = nn.Linear(4, 3).bfloat16()
    return Training(module, loss=lambda: module(X.bfloat16()).mean())


@entry
def channels_last() -> Training:
    module = nn.Conv2d(3, 8, 3).to(memory_format=torch.channels_last)
    return Training(module, loss=lambda: module(torch.ones(2, 3, 4, 4)).mean())


@entry
def transposed() -> Training:
    module = nn.Linear(4, 3)
    module.weight = nn.Parameter(torch.randn(4, 3).t())
    return Training(module)


@entry
def frozen_with_gradients() -> Training:
    module = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))

    def freeze(number: int) -> None:
        module[0].requires_grad_(number < 3)

    return Training(module, torch.optim.AdamW(module.parameters(), 0.1), between=freeze)


@entry
def sparse_gradients() -> Training:
    module = nn.Embedding(7, 3, sparse=True)
    optimizer = torch.optim.SparseAdam([*module.parameters()])
    return Training(module, optimizer, lambda: module(torch.tensor([1, 1, 5])).mean())


@entry
def tied() -> Training:
    module = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    module[1].weight = module[0].weight
    return Training(module)


@entry
def resized_at_each_forward() -> Training:
    class Seen(nn.Linear):
        def forward(self, x: Any) -> Any:
            self.seen.resize_(len(x)).copy_(x.detach().amax(1))
            return super().forward(x)

    module = Seen(4, 2)
    module.register_buffer("seen", torch.zeros(8))
    sizes = iter((8, 8, 3, 3, 8))
    return Training(module, loss=lambda: module(X[: next(sizes)]).mean(), missed=2)


def observer(kind: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.ao import quantization
    made = {"whole": "MovingAverageMinMaxObserver", "channels": "PerChannelMinMaxObserver"}
    scheme = torch.per_tensor_affine if kind == "whole" else torch.per_channel_affine
    options = {"observer": getattr(quantization, made[kind]), "qscheme": scheme}
    return quantization.FakeQuantize(dtype=torch.qint8, quant_min=-128, quant_max=127, **options)


@entry
def quantized_activations() -> Training:
    """Observers resize their buffers at their first batch."""
    module = nn.Sequential(nn.Linear(4, 4), observer("whole"), nn.Linear(4, 2))
    return Training(module)


@entry
def quantized_weights() -> Training:
    module = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))
    module.fake = fake = observer("channels")

    def loss() -> Any:
        return nn.functional.linear(X, fake(module[0].weight)).mean()

    # The scale gets the shape of its channels at the first batch: it is another network then.
    return Training(module, loss=loss, missed=STEPS)


@entry
def quantized_by_a_parametrization() -> Training:
    """Each call of it moves its observer."""
    module = nn.Linear(4, 2)
    parametrize.register_parametrization(module, "weight", observer("whole"))
    return Training(module)


@entry
def parametrized() -> Training:
    module = nn.Sequential(
        parametrizations.weight_norm(nn.Linear(4, 7)),
        parametrizations.spectral_norm(nn.Linear(7, 8)),
        parametrizations.orthogonal(nn.Linear(8, 2)),
    )
    return Training(module)


class Counting(nn.Module):
    """A parametrization that counts its calls in every way."""

    def __init__(self) -> None:
        super().__init__()
        self.calls, self.list, self.by = 0, [], {"calls": 0}
        self.tensor = torch.zeros(())
        self.register_buffer("buffer", torch.zeros(()))
        self.inner = nn.Dropout(0.1)

    def forward(self, weight: Any) -> Any:
        self.calls += 1
        self.list.append(1)
        self.by["calls"] += 1
        self.tensor += 1
        self.buffer += 1
        return self.inner(weight) + torch.rand(()) * 0


@entry
def parametrization_that_counts() -> Training:
    module = nn.Linear(4, 2)
    parametrize.register_parametrization(module, "weight", Counting())
    return Training(module)


@entry
def pruned() -> Training:
    module = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 2))
    prune.l1_unstructured(module[0], "weight", 0.5)

    def again(number: int) -> None:
        if number == 2:
            prune.l1_unstructured(module[1], "weight", 0.5)
        if number == 4:
            prune.remove(module[0], "weight")

    return Training(module, between=again)


def freed(tensor: Any) -> Callable[[], None]:
    """Frees the memory of a tensor; what is returned brings it back."""
    storage, size = tensor.untyped_storage(), tensor.untyped_storage().nbytes()
    kept = tensor.detach().clone()
    storage.resize_(0)

    def back() -> None:
        storage.resize_(size)
        with torch.no_grad():
            tensor.copy_(kept)

    return back


def offloaded(module: nn.Module, weights: list[Any], missed: int = 0, **own: Any) -> Training:
    """Memory that is freed after each record; with `missed`, that of step 3 is back at step 4."""
    back: list[Callable[[], None]] = []

    def between(number: int) -> None:
        if not missed:
            back.extend(map(freed, weights))

    def before(number: int) -> None:
        while back and not (missed and number == 4):
            back.pop()()

    return Training(module, between=between, before=before, missed=missed, **own)


@entry
def offloaded_between_records() -> Training:
    module = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 2))
    return offloaded(module, [*module.parameters()])


@entry
def offloaded_large() -> Training:
    module = nn.Sequential(nn.Linear(4, 4097), nn.Linear(4097, 33))
    return offloaded(module, [*module.parameters()])


@entry
def offloaded_momentum() -> Training:
    module = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(module.parameters(), 0.1, momentum=0.9)

    def free(number: int) -> None:
        slots = [state["momentum_buffer"] for state in optimizer.state.values()]
        back.extend(map(freed, slots))

    def before(number: int) -> None:
        while back:
            back.pop()()

    back: list[Callable[[], None]] = []
    return Training(module, optimizer, between=free, before=before)


def away_at_a_record(tensor: Callable[[nn.Module], Any], module: nn.Module) -> Training:
    """A tensor without memory at the record of step 3, which no step needs."""
    back: list[Callable[[], None]] = []

    def between(number: int) -> None:
        if number == 2:
            back.append(freed(tensor(module)))
        elif back:
            back.pop()()

    # That of step 4 has no deltas.
    return Training(module, between=between, missed=1)


@entry
def away_buffer() -> Training:
    module = with_buffer(lambda: torch.ones(65)).module
    return away_at_a_record(lambda module: module.extra, module)


@entry
def away_large() -> Training:
    module = with_buffer(lambda: torch.ones(4097, 33)).module
    return away_at_a_record(lambda module: module.extra, module)


@entry
def away_half() -> Training:
    module = with_buffer(lambda: torch.ones(7, 9, dtype=torch.float16)).module
    return away_at_a_record(lambda module: module.extra, module)


@entry
def away_frozen() -> Training:
    module = nn.Linear(4, 2)
    module.held = nn.Linear(8, 8).requires_grad_(False)
    return away_at_a_record(lambda module: module.held.weight, module)


@entry
def away_mask() -> Training:
    module = nn.Linear(4, 2)
    module.held = nn.Linear(8, 8)
    prune.l1_unstructured(module.held, "weight", 0.5)
    return away_at_a_record(lambda module: module.held.weight_mask, module)


@entry
def away_original() -> Training:
    module = nn.Linear(4, 2)
    module.held = parametrizations.weight_norm(nn.Linear(8, 8))
    return away_at_a_record(lambda module: module.held.parametrizations.weight.original1, module)


@entry
def flat_storage() -> Training:
    """As the older FSDP keeps parameters: parts of one storage, freed between steps."""
    module = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 2))
    flat = torch.cat([each.detach().reshape(-1) for each in module.parameters()])
    for each, part in zip(
        module.parameters(),
        flat.split([each.numel() for each in module.parameters()]),
        strict=True,
    ):
        each.data = part.view(each.shape)
    training = offloaded(module, [flat])
    training.tensors["flat"] = flat
    return training


@entry
def swapped_tensors() -> Training:
    module = nn.Linear(4, 2)

    def swap(number: int) -> None:
        # Without a gradient's node, which refers to them.
        module.zero_grad()
        torch.utils.swap_tensors(module.weight, nn.Parameter(module.weight.detach() * 2))

    optimizer = torch.optim.SGD(module.parameters(), 0.1)
    return Training(module, optimizer, between=swap)


@entry
def other_data() -> Training:
    module = nn.Linear(4, 2)

    def replace(number: int) -> None:
        module.weight.data = module.weight.data.clone() * 2

    return Training(module, between=replace)


@entry
def assigned_state() -> Training:
    module = nn.Linear(4, 2)

    def load(number: int) -> None:
        state = {name: value.clone() for name, value in module.state_dict().items()}
        module.load_state_dict(state, assign=True)

    return Training(module, between=load)


@entry
def moved_from_meta() -> Training:
    module = nn.Linear(4, 2, device="meta").to_empty(device="cpu")
    module.reset_parameters()
    return Training(module)


@entry
def moved_to_meta_and_back() -> Training:
    module = nn.Linear(4, 2)
    module.held = nn.Linear(8, 8)
    kept = copy.deepcopy(module.held.state_dict())

    def move(number: int) -> None:
        if number == 2:
            module.held.to("meta")
        elif number == 3:
            module.held.to_empty(device="cpu").load_state_dict(kept)

    return Training(module, between=move, missed=1)


@entry
def compiled() -> Training:
    torch._dynamo.reset()  # a module like one before gets other marks
    return Training(torch.compile(nn.Linear(4, 2), backend="aot_eager"))


@entry
def recurrent() -> Training:
    module = nn.LSTM(4, 8, 2, bidirectional=True)
    return Training(module, loss=lambda: 2 * module(X[:, None])[0].mean())


@entry
def attention() -> Training:
    module = nn.MultiheadAttention(4, 2)
    return Training(module, loss=lambda: 2 * module(X, X, X)[0].mean())


@entry
def normalized() -> Training:
    return Training(
        nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(), nn.Linear(8, 1))
    )


@entry
def averaged() -> Training:
    module = nn.Linear(4, 2)
    module.average = torch.optim.swa_utils.AveragedModel(nn.Linear(4, 2))
    return Training(
        module,
        loss=lambda: module(X).mean(),
        between=lambda _: module.average.update_parameters(nn.Linear(4, 2)),
    )


class Tagged(torch.Tensor):
    """A subclass that changes nothing."""


@entry
def subclassed() -> Training:
    module = nn.Linear(4, 2)
    module.weight = nn.Parameter(torch.randn(2, 4).as_subclass(Tagged))
    return Training(module)


@entry
def of_inference() -> Training:
    def make() -> Any:
        with torch.inference_mode():
            return torch.ones(3, 5)

    return with_buffer(make)


@entry
def in_shared_memory() -> Training:
    return Training(nn.Linear(4, 2).share_memory())


@entry
def with_hooks() -> Training:
    module, seen = nn.Linear(4, 2), []
    module.register_forward_hook(lambda *_: seen.append("forward"))
    module.register_full_backward_hook(lambda *_: seen.append("backward"))
    module.weight.register_hook(lambda gradient: gradient * 2)
    module.bias.register_post_accumulate_grad_hook(lambda _: seen.append("gradient"))
    optimizer = torch.optim.Adam(module.parameters())
    optimizer.register_step_post_hook(lambda *_: seen.append("step"))
    module.seen = seen
    return Training(module, optimizer, lambda: module(X.clone().requires_grad_()).mean())


@entry
def with_a_closure() -> Training:
    module = nn.Linear(4, 2)
    optimizer = torch.optim.LBFGS(module.parameters(), max_iter=3)

    def closure() -> Any:
        loss = module(X).square().mean()
        loss.backward()
        return loss

    step = optimizer.step
    optimizer.step = lambda: step(closure)  # type: ignore[method-assign]
    return Training(module, optimizer)


@entry
def fused_optimizer() -> Training:
    module = nn.Linear(4, 2)
    return Training(module, torch.optim.AdamW(module.parameters(), fused=True))


@entry
def checkpointed() -> Training:
    module = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))

    def loss() -> Any:
        from torch.utils.checkpoint import checkpoint

        return module[1](checkpoint(module[0], X, use_reentrant=False)).mean()

    return Training(module, loss=loss)


@entry
def copied_and_saved() -> Training:
    module = nn.Linear(4, 2)

    def save(number: int) -> None:
        training.tensors["copy"] = copy.deepcopy(module).weight
        torch.save([module.state_dict(), training.optimizer.state_dict()], io.BytesIO())
        torch.save(module, io.BytesIO())

    training = Training(module, between=save)
    return training


@entry
def freed_gradients() -> Training:
    """Of frozen weights, which the cause of a violation looks at."""
    module = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))

    def free(number: int) -> None:
        if number == 2:
            module[0].requires_grad_(False)
            with torch.no_grad():
                module[0].weight.mul_(2)
            module[0].weight.grad.untyped_storage().resize_(0)
            module[0].weight.grad = module[0].weight.grad

    optimizer = torch.optim.SGD(module[1].parameters(), 0.1)
    return Training(module, optimizer, between=free)


@dataclass
class Seen:
    """What is compared of a training.

    Attributes:
        steps: an entry for each step.
        saved: by the step of each record, the values that torch shows, as float64.
    """

    errors: list[str]
    steps: list[dict[str, Any]]
    values: dict[str, bytes]
    saved: dict[int, dict[str, np.ndarray]] = field(default_factory=dict)
    notes: dict[str, int] = field(default_factory=dict)
    records: int = 0
    views: int = 0


def torch_run(build: Callable[[], Training], logdir: Path | None = None) -> Seen:
    """Trains an entry, with a recorder if there is a `logdir`."""
    gc.collect()  # recorders of other tests; the next one removes their hooks
    OptimizerSteps((), (), Failures()).close()
    torch.manual_seed(0)
    training = build()
    seen = Seen(training.errors, [_traces(training)], {})
    recorder = None
    if logdir is not None:
        recorder = pastnet.torch.Recorder(logdir, training.module, training.optimizer, every=1)
    for number in range(1, STEPS + 1):
        training.step(number)
        if recorder is not None:
            recorder.record(number)
            seen.saved[number] = dict(_numbers(training.module))
        seen.steps.append(_traces(training))
        training.between(number)
    training.before(STEPS + 1)
    if recorder is not None:
        seen.views = _views(training)
        seen.saved[STEPS + 1] = dict(_numbers(training.module))
        recorder.close()
        seen.notes, seen.records = recorder.notes.counts(), recorder.records
        # What changes after the last step has a record of its own.
        more = seen.records - (STEPS - training.missed)
        assert more in (0, 1), (seen.notes, seen.errors)
        assert bool(seen.notes) >= bool(training.missed)
    seen.steps.append(_traces(training) | {"hooks": global_hooks()})
    seen.values = {name: _bits(each) for name, each in _tensors(training)}
    return seen


def _numbers(module: nn.Module) -> Iterator[tuple[str, np.ndarray]]:
    for name, each in (*module.named_parameters(), *module.named_buffers()):
        if _dense(each) and device_array.has_memory(each) and each.is_floating_point():
            own = name.replace("_orig_mod.", "").replace(".", "/")
            yield own, np.array(each.detach().clone().double().tolist())


def _views(training: Training) -> int:
    """How many views of the user's memory are left."""
    own = {
        torch._C._data_address(each) + each.storage_offset() * each.element_size()
        for _, each in _tensors(training)
        if _dense(each)
    }
    views = (each for each in gc.get_objects() if type(each) is device_array._Memory)
    return sum(each.__array_interface__["data"][0] in own for each in views)


def _dense(tensor: Any) -> bool:
    return tensor.layout is torch.strided and not tensor.is_meta


def global_hooks() -> dict[str, int]:
    """How many hooks torch calls for all optimizers and modules, by the name of their table."""
    tables = [*vars(hooks_of_torch).items(), *vars(nn.modules.module).items()]
    return {
        name: len(hooks)
        for name, hooks in tables
        if name.startswith("_global") and hasattr(hooks, "__len__")
    }


def _tensors(training: Training) -> Iterator[tuple[str, Any]]:
    module, optimizer = training.module, training.optimizer
    yield from training.tensors.items()
    for name, each in (*module.named_parameters(), *module.named_buffers()):
        yield name, each
        if each.is_leaf and each.grad is not None:
            yield f"{name}.grad", each.grad
    for number, state in enumerate(optimizer.state.values()):
        for name, each in state.items():
            if isinstance(each, torch.Tensor):
                yield f"state/{number}/{name}", each


def _traces(training: Training) -> dict[str, Any]:
    """All that a recorder must leave as it is, besides values."""
    found: dict[str, Any] = {name: _facts(each) for name, each in _tensors(training)}
    for name, module in training.module.named_modules():
        found[f"module {name}"] = _attributes(module)
    found["optimizer"] = _attributes(training.optimizer)
    groups = training.optimizer.param_groups
    found["groups"] = [repr({**group, "params": len(group["params"])}) for group in groups]
    found["torch"] = torch.get_rng_state().tolist(), torch.is_grad_enabled()
    return found


def _attributes(owner: Any) -> dict[str, Any]:
    return {
        name: len(value) if "hooks" in name and hasattr(value, "__len__") else _plain(value)
        for name, value in vars(owner).items()
        if not name.endswith("_id")  # an address
    }


def _plain(value: Any) -> Any:
    """What can be compared: numbers and texts, and how many of them a list or dictionary has."""
    if isinstance(value, list | dict):
        return [_plain(each) for each in value]
    return value if type(value) in (bool, int, float, str) else type(value)


def _facts(tensor: Any) -> list[Any]:
    about = [tensor.dtype, tensor.device, tensor.layout, type(tensor), tensor.requires_grad]
    about += [tensor.is_leaf, tuple(tensor.shape), [*vars(tensor)], tensor.grad_fn is None]
    about += [len(tensor._backward_hooks or ()), len(tensor._post_accumulate_grad_hooks or ())]
    if _dense(tensor):
        storage = tensor.untyped_storage()
        about += [tensor.stride(), tensor.storage_offset(), storage.resizable(), storage.nbytes()]
        about += [storage.is_shared(), torch._C._is_cow_tensor(tensor)]
    return about if tensor.is_inference() else [*about, tensor._version]


def _bits(tensor: Any) -> bytes:
    if not (_dense(tensor) and device_array.has_memory(tensor)):
        return b""
    values = tensor.detach().clone().contiguous().resolve_neg().reshape(-1)
    return bytes(values.view(torch.uint8).tolist())
