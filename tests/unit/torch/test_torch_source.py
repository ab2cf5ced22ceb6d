"""Statistics against NumPy, learning rates of groups, and which worker writes."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch isn't installed: an extra of its own")

from torch import nn  # noqa: E402

from tb_pastnet.core.statistics import STATISTICS  # noqa: E402
from tb_pastnet.errors import InvalidArgument  # noqa: E402
from tb_pastnet.record.failures import Failures  # noqa: E402
from tb_pastnet.torch import torch_source  # noqa: E402
from tb_pastnet.torch.module_weights import network_of  # noqa: E402
from tb_pastnet.torch.optimizer_steps import OptimizerSteps  # noqa: E402
from tb_pastnet.torch.torch_source import TorchSource  # noqa: E402


def source_of(module, *given):
    network = network_of(module)
    return TorchSource(network, OptimizerSteps(network.weights, given, Failures()))


def expected_rows(value, past):
    """Of channels on axis 0, by plain NumPy."""
    value, past = (each.reshape(len(each), -1).astype(np.float64) for each in (value, past))
    delta = value - past
    return {
        "norm": np.sqrt((value**2).sum(1)),
        "past_norm": np.sqrt((past**2).sum(1)),
        "delta_norm": np.sqrt((delta**2).sum(1)),
        "delta_max": np.abs(delta).max(1),
        "changed": (delta != 0).mean(1),
    }


@pytest.mark.parametrize("fast", ["0", "1"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("memory", ["contiguous_format", "channels_last"])
def test_statistics_are_those_of_numpy(dtype, memory, fast, monkeypatch):
    monkeypatch.setenv("PASTNET_FAST", fast)
    torch.manual_seed(5)
    layer = nn.Conv2d(3, 6, 3)
    module = nn.Sequential(layer, nn.Flatten(), nn.Linear(5, 4))
    module = module.to(getattr(torch, dtype)).to(memory_format=getattr(torch, memory))
    source = source_of(module)
    values = [p.detach().double().numpy().copy() for p in module.parameters()]
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.mul_(torch.where(torch.rand_like(parameter) < 0.5, 1.0, 1.25))
    rows = source.compare(0, replace=True)
    expected = [
        expected_rows(p.detach().double().numpy(), past)
        for p, past in zip(module.parameters(), values, strict=True)
    ]
    for statistic in expected[0]:
        wanted = np.concatenate([each[statistic] for each in expected])
        recorded = rows[STATISTICS.index(statistic)]
        np.testing.assert_allclose(recorded, wanted, rtol=2e-6, err_msg=statistic)
    assert not source.compare(0)[STATISTICS.index("changed")].any()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_small_weights_of_one_shape_are_read_together_if_they_are_not_in_order(dtype, monkeypatch):
    module = nn.ModuleList([nn.Linear(4, 4) for _ in range(6)]).to(dtype)
    module[1].float()
    for number, layer in enumerate(module):
        if number != 3:
            layer.weight.data = layer.weight.data.t()
    source, read = source_of(module), []

    def counted(tensor, wanted):
        read.append(tensor.shape)
        return words(tensor, wanted)

    words = torch_source._words
    monkeypatch.setattr(torch_source, "_words", counted)
    with torch.no_grad():
        for layer in module:
            layer.weight.add_(1)
    changed = source.compare(0)[STATISTICS.index("changed")]
    assert sorted(tuple(shape) for shape in read) == [(4, 4), (4, 4, 4)]
    assert changed.reshape(6, 2, 4).tolist() == [[[1] * 4, [0] * 4]] * 6


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_past_copies_of_16_bits_take_16_bits_until_the_module_gets_another_dtype(dtype):
    module = nn.Linear(300, 2).to(dtype)
    start = [each.detach().float() for each in module.parameters()]
    source = source_of(module)
    copies = source._copies[0][0]
    assert copies._past.nbytes == 2 * 602
    module.float()
    with torch.no_grad():
        module.weight.add_(1e-7)
    moved = (module.weight.detach() != start[0]).float().mean(1)
    np.testing.assert_allclose(source.compare(0)[STATISTICS.index("changed")][:2], moved)
    assert copies._past.nbytes == 4 * 602


class Elsewhere(torch.Tensor):
    """A tensor that says that it lies on an accelerator."""

    device = torch.device("cuda:1")

    def cpu(self):
        return self.as_subclass(torch.Tensor)


def test_weights_of_several_devices_are_read_together():
    module = nn.ModuleList([nn.Linear(4, 4, bias=False) for _ in range(3)])
    source = source_of(module)
    with torch.no_grad():
        module[2].weight = nn.Parameter((module[2].weight + 1).as_subclass(Elsewhere))
    delta = source.compare(0)[STATISTICS.index("delta_norm")].reshape(3, 4)
    np.testing.assert_allclose(delta, [[0] * 4, [0] * 4, [2] * 4], rtol=1e-6)


def narrow(module):
    module[1].weight = nn.Parameter(torch.ones(2, 6))  # of as many elements


def without_bias(module):
    module[1].bias = None


def other_layer(module):
    module[1] = nn.Linear(4, 3)


@pytest.mark.parametrize("memory", ["float32", "float64"])
@pytest.mark.parametrize(
    ("change", "text"),
    [
        (narrow, r"'1/weight': expected shape \(3, 4\), got \(2, 6\)"),
        (without_bias, "'1/bias': expected a tensor, got None"),
        (other_layer, "'1/weight': expected a module of the model, got one that was replaced"),
    ],
)
def test_a_network_that_changes_is_refused(change, text, memory):
    module = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 3)).to(getattr(torch, memory))
    source = source_of(module)
    source.compare(0)
    change(module)
    with pytest.raises(InvalidArgument, match=f"Could not read {text}.* Make a new Recorder"):
        source.compare(0)


def test_a_module_that_gets_a_wrapper_is_recorded():
    module = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 3))
    source = source_of(module)
    with torch.no_grad():
        module[1].bias += 1
    module[1] = nn.Sequential(module[1])
    changed = source.compare(0)[STATISTICS.index("changed")]
    assert changed.tolist() == [0] * 11 + [1] * 3


def test_a_group_has_the_rate_of_whichever_optimizer_trains_it_now():
    module = nn.ModuleDict({"a": nn.Linear(1, 1), "b": nn.Linear(1, 1)})
    groups = [
        {"params": module["a"].parameters(), "lr": 0.5, "name": "body"},
        {"params": module["b"].parameters(), "lr": 0.25},
    ]
    optimizer = torch.optim.SGD(groups)
    source = source_of(module, optimizer)
    assert source.rate_groups() == {
        "body": ["a/weight", "a/bias"],
        "SGD/1": ["b/weight", "b/bias"],
    }
    assert source.group_rates() == [0.5, 0.25]
    assert np.isnan(source.learning_rate(1))
    other = torch.optim.Adam(module.parameters(), lr=0.125)
    module["a"].weight.grad = torch.ones(1, 1)
    other.step()
    assert source.group_rates() == [0.125, 0.125]
    assert source.learning_rate(2) == 0.125


def test_groups_of_one_name_are_told_apart():
    module = nn.Linear(1, 1)
    groups = [{"params": [module.weight], "name": "x"}, {"params": [module.bias], "name": "x"}]
    optimizer = torch.optim.SGD(groups)
    source = source_of(module, optimizer)
    assert source.rate_groups() == {"x": ["weight"], "SGD/1": ["bias"]}


def test_a_single_group_is_none():
    module = nn.Linear(1, 1)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.5)
    source = source_of(module, optimizer)
    assert source.rate_groups() == {}
    assert not source.group_rates()
    assert source.learning_rate(1) == 0.5


def test_a_worker_that_does_not_write_keeps_no_copy(monkeypatch):
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 2)
    monkeypatch.setattr(torch.distributed, "get_rank", lambda: 1)
    source = source_of(nn.Linear(1, 1))
    assert (source.writes, source.workers) == (False, 2)
    with pytest.raises(KeyError):
        source.past(0)
    monkeypatch.setattr(torch.distributed, "get_rank", lambda: 0)
    source = source_of(nn.Linear(1, 1))
    assert (source.writes, source.workers) == (True, 2)
    assert len(source.past(0)) == 2


def test_names_of_groups_may_be_anything():
    module = nn.Linear(1, 1)
    groups = [{"params": [module.weight], "name": 1}, {"params": [module.bias], "name": None}]
    optimizer = torch.optim.SGD(groups)
    source = source_of(module, optimizer)
    assert source.rate_groups() == {"1": ["weight"], "None": ["bias"]}


def test_a_rate_is_that_of_the_latest_update():
    module = nn.ModuleDict({"a": nn.Linear(1, 1), "b": nn.Linear(1, 1)})
    optimizer = torch.optim.SGD(module["a"].parameters(), lr=0.5)
    source = source_of(module, optimizer)
    module["a"].weight.grad = torch.ones(1, 1)
    optimizer.step()
    optimizer.param_groups[0]["lr"] = 0.25  # a scheduler sets that of the next
    assert source.learning_rate(1) == 0.5
    optimizer.add_param_group({"params": module["b"].parameters(), "lr": 0.125})
    source.rate_groups()
    assert source.group_rates() == [0.5, 0.125]
    optimizer.step()
    assert source.group_rates() == [0.25, 0.125]


def _part_of(values):
    whole = torch.zeros(values.numel() + 5)
    whole[5:] = values.reshape(-1)
    return whole[5:].view(values.shape)


LYING = {
    "as they were": lambda values: values.clone(),
    "transposed": lambda values: values.t().contiguous().t(),
    "part of a storage": _part_of,
    "negative": lambda values: torch._neg_view(-values),
    "copied when written": torch._lazy_clone,
    "one element for all": lambda values: values[:1, :1].expand(values.shape),
    "halves": lambda values: values.half(),
    "doubles": lambda values: values.double(),
}


@pytest.mark.parametrize("way", LYING)
@pytest.mark.parametrize("replaced", [False, True])
def test_values_count_however_they_lie_by_now(way, replaced):
    layer = nn.Linear(7, 9)
    source, before = source_of(layer), layer.weight.detach().clone().numpy()
    changed = LYING[way](torch.randn(9, 7))
    if replaced:
        layer.weight = nn.Parameter(changed, requires_grad=False)
    else:
        layer.weight.data = changed
    found = source.compare(0)[:, :9]
    wanted = expected_rows(changed.double().resolve_neg().numpy(), before)
    for statistic, values in wanted.items():
        np.testing.assert_allclose(found[STATISTICS.index(statistic)], values, rtol=1e-6)


def test_memory_that_was_freed_is_never_read():
    layer = nn.Linear(7, 9)
    source = source_of(layer)
    layer.weight.untyped_storage().resize_(0)
    with pytest.raises(InvalidArgument, match="a storage without them"):
        source.compare(0)
    layer.weight.untyped_storage().resize_(4 * 62)  # one element is missing
    with pytest.raises(InvalidArgument, match="a storage without them"):
        source.compare(0)
