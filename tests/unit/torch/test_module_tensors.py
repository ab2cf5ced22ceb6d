"""The tensors of a module: names without wrappers, what is shared, values, and what can't be read."""

from __future__ import annotations

import numpy as np
import pytest

from tb_pastnet.errors import InvalidArgument

torch = pytest.importorskip("torch", reason="torch isn't installed: an extra of its own")

from torch import nn  # noqa: E402
from torch.nn.utils import parametrizations, prune  # noqa: E402

from tb_pastnet.record.device_array import tensor_values  # noqa: E402
from tb_pastnet.torch.module_tensors import kinds_of, tensors_of  # noqa: E402


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.register_buffer("grid", torch.zeros(3), persistent=False)
        self.scale = nn.Parameter(torch.ones(()))


def names(module):
    return [entry.name for entry in tensors_of(module)]


PLAIN = [
    "block/scale",
    "block/conv1/weight",
    "block/conv1/bias",
    "block/norm/weight",
    "block/norm/bias",
    "block/norm/running_mean",
    "block/norm/running_var",
]


def network():
    return nn.ModuleDict({"block": Block()})


def test_names_are_paths_and_buffers_are_statistics():
    assert names(network()) == PLAIN
    statistics = [entry.name for entry in tensors_of(network()) if entry.statistic]
    assert statistics == PLAIN[-2:]


@pytest.mark.parametrize(
    ("wrap", "prefix"),
    [
        (lambda module: torch.compile(module, backend="eager"), "_orig_mod/"),
        (nn.DataParallel, "module/"),
        (
            lambda module: torch.compile(nn.DataParallel(module), backend="eager"),
            "_orig_mod/module/",
        ),
    ],
)
def test_wrappers_leave_names_as_they_are(wrap, prefix):
    entries = tensors_of(wrap(network()))
    assert [entry.name for entry in entries] == PLAIN
    assert [entry.paths[1] for entry in entries] == [prefix + name for name in PLAIN]


def test_activation_checkpoints_leave_names_as_they_are():
    from torch.distributed.algorithms._checkpoint import checkpoint_wrapper as checkpoints

    module = network()
    module["block"] = checkpoints.checkpoint_wrapper(module["block"])
    assert names(module) == PLAIN


def test_a_users_own_module_of_a_wrappers_name_stays():
    assert names(nn.ModuleDict({"module": nn.Linear(2, 2)})) == ["module/weight", "module/bias"]


def test_what_is_shared_is_listed_once_with_all_its_names():
    embedding, head = nn.Embedding(5, 3), nn.Linear(3, 5, bias=False)
    head.weight = embedding.weight
    module = nn.ModuleDict({"tokens": embedding, "head": head, "again": head})
    [entry] = tensors_of(module)
    assert entry.paths == ("tokens/weight", "head/weight", "again/weight")
    assert {id(each) for each in entry.around} == {id(module), id(embedding), id(head)}


def test_classes_of_torch_go_by_their_bare_name():
    class Linear(nn.Linear):
        pass

    own = f"{__name__}.test_classes_of_torch_go_by_their_bare_name.<locals>.Linear"
    assert kinds_of(Linear(1, 1))[:3] == (own, "Linear", "Module")
    changed = nn.utils.parametrizations.weight_norm(nn.Linear(2, 2))
    assert kinds_of(changed)[0] == "Linear"
    assert kinds_of(None) == ()


def lazy():
    return nn.Sequential(nn.LazyLinear(3)), "'0/weight' of a Sequential: .* got a lazy parameter"


def meta():
    return nn.Linear(2, 3, device="meta"), "'weight' of a Linear: .* on the device 'meta'. Load"


def zero_3():
    module = nn.Linear(2, 3)
    module.weight.ds_id = 0
    return module, "'weight' of a Linear: expected whole values, .* DeepSpeed's ZeRO-3"


@pytest.mark.parametrize("case", [lazy, meta, zero_3])
@pytest.mark.filterwarnings("ignore:Lazy modules are a new feature")
def test_what_cannot_be_read_is_refused(case):
    module, text = case()
    with pytest.raises(InvalidArgument, match=f"Could not record {text}"):
        tensors_of(module)


def entries_of(module):
    return {entry.name: entry for entry in tensors_of(module)}


def test_a_pruned_weight_keeps_its_name_and_is_what_is_computed_with():
    layer = nn.Linear(3, 2)
    entry = entries_of(layer)["weight"]
    dense = layer.weight
    prune.l1_unstructured(layer, "weight", amount=2)
    assert entries_of(layer).keys() == {"weight", "bias"}
    for each in (entry, entries_of(layer)["weight"]):  # also one that was there before
        assert each.stored is dense
        with torch.no_grad():
            dense.add_(1.0)  # the module's own `weight` is stale until the next forward pass
        expected = dense.detach().numpy() * layer.weight_mask.numpy()
        np.testing.assert_array_equal(each.value().numpy(), expected)
        assert each.mask is layer.weight_mask
    prune.remove(layer, "weight")
    assert entry.mask is None
    assert entry.stored is layer.weight


def test_fake_sparsity_is_a_mask():
    from torch.ao.pruning import WeightNormSparsifier

    layer = nn.Linear(4, 4)
    sparsifier = WeightNormSparsifier(sparsity_level=0.5, sparse_block_shape=(1, 4))
    sparsifier.prepare(nn.Sequential(layer), [{"tensor_fqn": "0.weight"}])
    sparsifier.step()
    entries = entries_of(layer)
    assert entries.keys() == {"weight", "bias", "parametrizations/weight/original"}
    original = layer.parametrizations.weight.original.detach().numpy()
    mask = entries["weight"].mask.numpy()
    assert sorted(mask.sum(1)) == [0, 0, 4, 4]
    np.testing.assert_array_equal(entries["weight"].value().numpy(), original * mask)


def test_a_weight_with_a_norm_is_computed_and_its_parts_are_listed():
    layer = parametrizations.weight_norm(nn.Linear(3, 2))
    entries = entries_of(layer)
    parts = [f"parametrizations/weight/original{number}" for number in (0, 1)]
    assert list(entries) == ["weight", "bias", *parts]
    assert [entry.computed for entry in entries.values()] == [True, False, False, False]
    gains, direction = (entries[part].stored.detach().numpy() for part in parts)
    expected = gains * direction / np.linalg.norm(direction, axis=1, keepdims=True)
    np.testing.assert_allclose(entries["weight"].value().numpy(), expected, rtol=1e-6)
    assert entries["weight"].trained()
    for part in parts:
        entries[part].stored.requires_grad_(False)
    assert not entries["weight"].trained()


def test_to_look_at_a_spectral_norm_does_not_make_it_go_on():
    layer = parametrizations.spectral_norm(nn.Linear(3, 2))
    state = {name: value.clone() for name, value in layer.state_dict().items()}
    value = entries_of(layer)["weight"].value()
    assert all(torch.equal(state[name], now) for name, now in layer.state_dict().items())
    assert layer.parametrizations.weight[0].training
    np.testing.assert_array_equal(value, layer.eval().weight.detach())


def test_to_look_at_a_random_weight_leaves_the_random_numbers_of_training():
    class Noise(nn.Module):
        def forward(self, weight):
            return weight + torch.randn_like(weight)

    layer = nn.Linear(3, 2)
    nn.utils.parametrize.register_parametrization(layer, "weight", Noise())
    entry, state = entries_of(layer)["weight"], torch.get_rng_state()
    entry.value()
    assert torch.equal(torch.get_rng_state(), state)


def test_what_is_in_eval_stays_so():
    layer = parametrizations.spectral_norm(nn.Linear(3, 2)).eval()
    entries_of(layer)["weight"].value()
    assert not any(module.training for module in layer.modules())


def test_a_mask_of_a_users_own_is_a_buffer_like_others():
    layer = nn.Linear(3, 2)
    layer.register_buffer("weight_mask", torch.zeros(2, 3))
    entries = entries_of(layer)
    assert entries.keys() == {"weight", "bias", "weight_mask"}
    assert entries["weight"].mask is None
    assert entries["weight"].value() is layer.weight


def test_a_parameter_that_is_replaced_is_read_where_it_was():
    layer = nn.Linear(2, 2)
    entry = entries_of(layer)["weight"]
    state = {"weight": torch.full((2, 2), 3.0), "bias": torch.zeros(2)}
    layer.load_state_dict(state, assign=True)
    assert entry.value().tolist() == [[3.0, 3.0], [3.0, 3.0]]


LAYOUTS = {
    "whole": lambda values: values.clone(),
    "part of a storage": lambda values: torch.cat([torch.ones(5), values.reshape(-1)])[5:].view(
        4, 6
    ),
    "part of a wider one": lambda values: torch.stack([values, values], -1)[..., 1],
    "transposed": lambda values: values.t().contiguous().t(),
    "backwards in memory": lambda values: values.flip(0).flip(0),
    "expanded": lambda values: values[:1].expand(4, 6),
    "conjugate of a conjugate": lambda values: torch.complex(values, -values).conj().imag,
    "empty part of a storage": lambda values: values[4:],
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int64", "bool"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_values_are_those_that_torch_shows_wherever_they_lie(layout, dtype):
    tensor = LAYOUTS[layout](torch.arange(24.0).reshape(4, 6))
    tensor = tensor if dtype == "float32" else tensor.to(getattr(torch, dtype))
    parts = torch.cat([torch.zeros_like(tensor).reshape(-1), tensor.reshape(-1)])[tensor.numel() :]
    for each in (tensor, parts.view(tensor.shape)):
        assert tensor_values(each).tolist() == each.tolist()
