"""The walk over a module: names without wrappers, what is shared, and what can't be read."""

from __future__ import annotations

import pytest

from tb_pastnet.errors import InvalidArgument

torch = pytest.importorskip("torch", reason="torch isn't installed: an extra of its own")

from torch import nn  # noqa: E402

from tb_pastnet.torch.modules import kinds_of, tensors_of  # noqa: E402


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
