from __future__ import annotations

import copy
import gc
import io
import logging
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs torch")

from torch.nn.utils import prune  # noqa: E402
from torch.optim.optimizer import (  # noqa: E402
    _global_optimizer_post_hooks,
    _global_optimizer_pre_hooks,
)

import tb_pastnet as pastnet  # noqa: E402
from tb_pastnet.core.subject import KERAS, check_subject  # noqa: E402
from tb_pastnet.errors import InvalidArgument, UnknownName  # noqa: E402
from tb_pastnet.record.failures import Failures  # noqa: E402
from tb_pastnet.torch.masks import held_elements  # noqa: E402
from tb_pastnet.torch.optimizer_steps import OptimizerSteps  # noqa: E402

X = torch.randn(16, 9, generator=torch.Generator().manual_seed(3))
KEPT = np.random.default_rng(1).random((17, 9)) > 0.3
FREE = np.random.default_rng(2).random((17, 9)) > 0.4


def network():
    torch.manual_seed(0)
    layers = torch.nn.Linear(9, 17), torch.nn.BatchNorm1d(17), torch.nn.Linear(17, 2)
    return torch.nn.Sequential(*layers)


def adam(module, **options):
    return torch.optim.AdamW(module.parameters(), 1e-2, weight_decay=0.1, **options)


def train(module, optimizer, steps=3):
    for _ in range(steps):
        optimizer.zero_grad()
        module(X.to(module[0].weight.dtype)).square().mean().backward()
        optimizer.step()


def masked(module=None, *optimizers):
    """A network whose first weight is pruned and frozen in part, and its masks."""
    module = network() if module is None else module
    masks = pastnet.torch.Masks(module, *optimizers)
    masks.prune("0.weight", kept=KEPT)
    masks.freeze("0.weight", trainable=FREE)
    return module, masks


def holds(module, before, *, kept=KEPT, free=FREE):
    """Whether held elements are as before, bit for bit, and others moved."""
    now, before = (each.detach().float().numpy() for each in (module[0].weight, before))
    held = ~(kept & free)
    same = now[held].view("i4") == before[held].view("i4")
    return bool(same.all() and (now[~held] != before[~held]).any() and not now[~kept].any())


def weights_of(module):
    return module[0].weight.detach().clone()


@pytest.fixture(autouse=True, params=["bytes", "bits"])
def ways_of_holding(request, monkeypatch):
    """Masks of one byte an element, and those of bits that large tensors have."""
    if request.param == "bits":
        pytest.importorskip("numba", reason="needs numba")
        monkeypatch.setattr(held_elements, "PACKED_FROM", 1)


@pytest.fixture(autouse=True)
def no_hook_is_left():
    gc.collect()
    OptimizerSteps((), (), Failures()).close()
    hooks = len(_global_optimizer_post_hooks), len(_global_optimizer_pre_hooks)
    yield
    from tb_pastnet.torch.masks.held_places import HELD

    for place in HELD.all():
        HELD.remove(place)
    gc.collect()
    OptimizerSteps((), (), Failures()).close()  # removes those that are left
    assert len(_global_optimizer_post_hooks) <= hooks[0]
    assert len(_global_optimizer_pre_hooks) <= hooks[1]


def test_channels_rows_and_layers_are_held():
    module = network()
    masks = pastnet.torch.Masks(module)
    masks.freeze(module[2])
    masks.freeze("0.weight", channels=[0, 16])
    masks.freeze_rows("0.bias", 9)
    before = [each.detach().clone() for each in module.parameters()]
    train(module, adam(module))
    now = [*module.parameters()]
    assert torch.equal(now[0][[0, 16]], before[0][[0, 16]])
    assert torch.equal(now[1][:9], before[1][:9])
    assert not torch.equal(now[1][9:], before[1][9:])
    assert torch.equal(now[4], before[4])
    assert torch.equal(now[5], before[5])
    with pytest.raises(InvalidArgument):
        masks.freeze_rows("0.bias", 18)
    with pytest.raises(InvalidArgument, match=r"statistic that its layer writes.* eval\(\)"):
        masks.freeze("1.running_mean")
    with pytest.raises(UnknownName):
        masks.freeze("3.weight")


def test_thawed_and_regrown_weights_train_again_from_fresh_slots():
    module = network()
    optimizer = adam(module)
    module, masks = masked(module, optimizer)
    train(module, optimizer)
    moments = optimizer.state[module[0].weight]["exp_avg"]
    moments.fill_(1.0)
    masks.regrow("0.weight")
    assert not moments[~torch.from_numpy(KEPT)].any()
    assert moments[torch.from_numpy(KEPT)].all()
    masks.thaw("0.weight")
    assert module[0].weight._post_accumulate_grad_hooks == {}
    before = weights_of(module)
    train(module, optimizer)
    assert (module[0].weight != before).all()


@pytest.mark.parametrize(("kind", "slot"), [("Adagrad", 0.5), ("Rprop", 0.25)])
def test_slots_get_the_values_that_new_ones_have(kind, slot):
    module = network()
    options = {"initial_accumulator_value": 0.5} if kind == "Adagrad" else {}
    optimizer = getattr(torch.optim, kind)(module.parameters(), lr=0.25, **options)
    module, masks = masked(module, optimizer)
    train(module, optimizer)
    masks.regrow("0.weight")
    own = optimizer.state[module[0].weight]["sum" if kind == "Adagrad" else "step_size"]
    assert (own[~torch.from_numpy(KEPT)] == slot).all()


def test_rules_of_pruning_choose_as_for_other_frameworks():
    module = network()
    masks = pastnet.torch.Masks(module)
    masks.prune_smallest(0.5, scope="layer")
    assert masks.sparsity("0.weight") == pytest.approx(0.5, abs=0.01)
    masks.prune_below("2.weight", 0.1)
    masks.regrow("0.weight")
    assert masks.sparsity("0.weight") == 0
    masks.prune_blocks("0.weight", 1, 3)
    train(module, adam(module))
    blocks = module[0].weight.reshape(17, 3, 3)
    assert ((blocks != 0).sum(-1) <= 1).all()
    large = module[2].weight[torch.from_numpy(masks.kept["2/weight"])]
    assert (large != 0).all()


def test_masks_that_were_only_declared_hold_once_they_are_enforced():
    module = network()
    pastnet.torch.Masks(module, enforce=False).prune("0.weight", kept=KEPT)
    enforced = pastnet.torch.Masks(module)
    assert enforced.zeros("0.weight") == enforced.sparsity("0.weight") > 0
    assert "pruned" in repr(enforced)
    assert "0/weight" in enforced._repr_html_()


def test_an_audit_finds_a_write_through_data_by_its_channel():
    module, masks = masked()
    optimizer = adam(module)
    assert masks.audit() == []
    train(module, optimizer)
    assert masks.audit() == []
    row, column = np.argwhere(KEPT & ~FREE)[5]
    module[0].weight.data[row, column] += 1
    (violation,) = masks.audit()
    assert (violation.variable, violation.channel, violation.cause) == ("0/weight", row, "written")
    assert violation.first_step == 3


def test_tied_weights_have_one_mask():
    module = torch.nn.Module()
    module.embedding, module.head = torch.nn.Embedding(11, 4), torch.nn.Linear(4, 11, bias=False)
    module.head.weight = module.embedding.weight
    masks = pastnet.torch.Masks(module)
    masks.freeze_rows("embedding.weight", upto=8)
    before = module.head.weight.detach().clone()
    optimizer = adam(module)
    module.head(module.embedding(torch.arange(11))).square().mean().backward()
    optimizer.step()
    assert torch.equal(module.head.weight[:8], before[:8])
    assert (module.head.weight[8:] != before[8:]).any(1).all()
    assert pastnet.torch.Masks(module.head).kept["weight"].all()
    assert not pastnet.torch.Masks(module.head).trainable["weight"][:8].any()


# ------------------------------------------------------------------------------------------ loading


@pytest.mark.parametrize("assign", [False, True])
def test_loaded_values_are_held_and_pruned_ones_are_zero(assign, caplog):
    module, _masks = masked()
    train(module, adam(module))
    other = {name: torch.full_like(value, 0.5) for name, value in network().state_dict().items()}
    with caplog.at_level(logging.WARNING, "tb_pastnet"):
        module.load_state_dict(other, assign=assign)
    frozen = torch.from_numpy(KEPT & ~FREE)
    assert (module[0].weight[frozen] == 0.5).all()
    assert not module[0].weight[~torch.from_numpy(KEPT)].any()
    assert f"{int((~(KEPT & FREE)).sum()):,}" in caplog.text
    before = weights_of(module)
    train(module, adam(module))
    assert holds(module, before)
    assert len([each for each in caplog.records if "differ" in each.message]) == 1


def test_values_written_by_hand_are_noted_once(caplog):
    module, _ = masked()
    optimizer = adam(module)
    train(module, optimizer)
    with torch.no_grad():
        module[0].weight.add_(1)
    with caplog.at_level(logging.WARNING, "tb_pastnet"):
        train(module, optimizer)
    assert len(caplog.records) == 1


def test_masks_travel_in_the_metadata_of_a_state_dict():
    module, _ = masked()
    train(module, adam(module))
    file = io.BytesIO()
    torch.save(module.state_dict(), file)
    file.seek(0)
    loaded = torch.load(file, weights_only=True)
    plain = network()
    assert str(plain.load_state_dict(loaded)) == "<All keys matched successfully>"
    other = network()
    masks = pastnet.torch.Masks(other)
    masks.freeze("2.weight")  # which the file doesn't have
    other.load_state_dict(loaded)
    np.testing.assert_array_equal(masks.kept["0/weight"], KEPT)
    assert masks.trainable["2/weight"].all()
    assert masks.resumed
    before = weights_of(other)
    train(other, adam(other))
    assert holds(other, before)


def test_damaged_or_foreign_masks_in_a_state_dict_are_refused():
    module, _ = masked()
    state = module.state_dict()
    narrow = torch.nn.Sequential(torch.nn.Linear(9, 17), torch.nn.BatchNorm1d(17))
    pastnet.torch.Masks(narrow[0])
    (key,) = [key for key in state._metadata["0"] if key != "version"]
    state._metadata["0"][key][200] ^= 255
    with pytest.raises(InvalidArgument):
        network_with_masks().load_state_dict(state)
    other = torch.nn.Linear(8, 17)
    masks = pastnet.torch.Masks(other)
    with pytest.raises(InvalidArgument):
        masks.load_state_dict(pastnet.torch.Masks(module[0]).state_dict())
    with pytest.raises(InvalidArgument):
        masks.load_state_dict({})


def network_with_masks():
    module = network()
    pastnet.torch.Masks(module)
    return module


def test_masks_are_saved_in_a_file_of_their_own():
    module, masks = masked()
    train(module, adam(module))
    values = {name: value.clone() for name, value in module.state_dict().items()}  # no metadata
    other = network()
    other.load_state_dict(values)
    with torch.no_grad():
        row, column = np.argwhere(KEPT & ~FREE)[0]
        other[0].weight[row, column] += 1
    resumed = (again := pastnet.torch.Masks(other)).load_state_dict(masks.state_dict())
    assert resumed.changed == {"0/weight": (row,)}
    assert again.state.origin == masks.state.origin
    before = weights_of(other)
    train(other, adam(other))
    assert holds(other, before)


# ------------------------------------------------------------------------------------------- copies


def test_a_deep_copy_has_masks_of_its_own():
    module, masks = masked()
    copied = copy.deepcopy(module)
    masks.regrow("0.weight")
    masks.thaw("0.weight")
    before = weights_of(copied)
    train(copied, torch.optim.SGD(copied.parameters(), 0.1))
    assert holds(copied, before)
    twin = copy.deepcopy(pastnet.torch.Masks(copied))
    assert twin.model is not copied
    np.testing.assert_array_equal(twin.kept["0/weight"], KEPT)


def test_a_pickled_module_has_its_masks():
    file = io.BytesIO()
    torch.save(masked()[0], file)
    file.seek(0)
    module = torch.load(file, weights_only=False)
    before = weights_of(module)
    train(module, adam(module))
    assert holds(module, before)
    np.testing.assert_array_equal(pastnet.torch.Masks(module).kept["0/weight"], KEPT)


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_masks_stay_if_the_precision_changes(dtype, swapped):
    module, _ = masked()
    train(module, adam(module))
    torch.__future__.set_swap_module_params_on_conversion(swapped)
    try:
        module.to(dtype)
    finally:
        torch.__future__.set_swap_module_params_on_conversion(False)
    before = weights_of(module)
    train(module, adam(module), 6)
    assert holds(module, before)


def test_a_replaced_parameter_is_held_from_its_first_step_on(caplog):
    module, _ = masked()
    module[0].weight = torch.nn.Parameter(weights_of(module))
    before = weights_of(module)
    train(module, adam(module))
    assert holds(module, before)
    assert len([each for each in caplog.records if "aren't those" in each.message]) == 1


def test_weights_that_need_no_gradient_yet_are_masked():
    module = network().requires_grad_(False)
    module, _ = masked(module)
    optimizer = adam(module)
    module.requires_grad_(True)
    before = weights_of(module)
    train(module, optimizer)
    assert holds(module, before)


def test_an_average_holds_the_same_values():
    module, masks = masked()
    with torch.no_grad():
        module[0].weight[np.nonzero(KEPT & ~FREE)] = -0.0
    masks.thaw("0.weight")
    masks.freeze("0.weight", trainable=FREE)
    averaged = torch.optim.swa_utils.AveragedModel(module)
    masks.follow(averaged)
    optimizer = adam(module)
    for _ in range(3):
        train(module, optimizer, 1)
        averaged.update_parameters(module)
        averaged.module[0].weight.data.add_(0.25)
    averaged.eval()(X)
    held = ~torch.from_numpy(KEPT & FREE)
    own, other = (each[0].weight.detach()[held].numpy() for each in (module, averaged.module))
    np.testing.assert_array_equal(own.view("i4"), other.view("i4"))
    copy.deepcopy(averaged)(X)
    with pytest.raises(InvalidArgument):
        masks.follow(torch.nn.Linear(2, 2))


def test_hooks_are_those_that_the_docs_list():
    listed = Path("docs/how_to/torch_masks.md").read_text("utf-8")
    plain, (module, _) = network(), masked()
    for own, other in zip(module.modules(), plain.modules(), strict=True):
        for name, hooks in vars(own).items():
            if "hooks" in name and len(hooks) != len(getattr(other, name)):
                assert len(hooks) == 1
                kind = name.removeprefix("_").removesuffix("_hooks")
                assert f"register_{kind}" in listed
        assert vars(own).keys() == vars(other).keys()
    for parameter in module.parameters():
        held = parameter is module[0].weight
        assert len(parameter._post_accumulate_grad_hooks or ()) == held
        assert vars(parameter) == {}


def hooks_of(*owners):
    own = [vars(each) for each in owners]
    found = [hooks for each in own for name, hooks in each.items() if "hooks" in name]
    return sum(map(len, filter(None, found)))


def test_closing_ends_masks_and_leaves_no_hook():
    module = network()
    averaged, optimizer = torch.optim.swa_utils.AveragedModel(module), adam(module)
    every = [*module.modules(), *averaged.modules(), optimizer]
    before = hooks_of(*every)
    _, masks = masked(module, optimizer)
    masks.follow(averaged)
    masks.audit()
    train(module, optimizer)
    assert hooks_of(averaged) == 2
    pastnet.torch.Masks(module).close()  # another view of the same masks
    masks.close()
    assert hooks_of(*every) == before
    tensors = [*module.parameters(), *averaged.parameters()]
    assert all(not each._post_accumulate_grad_hooks for each in tensors)
    before = weights_of(module)
    train(module, adam(module))
    assert (module[0].weight != before).all()
    assert pastnet.torch.Masks(module).sparsity() == 0


# ----------------------------------------------------------------------------------- pruned models


def test_masks_of_torch_are_taken_over():
    module = network()
    prune.l1_unstructured(module[0], "weight", 0.5)
    optimizer = adam(module)
    masks = pastnet.torch.Masks(module, optimizer)
    with pytest.raises(InvalidArgument):
        masks.freeze("0.weight")
    kept = module[0].weight_mask.numpy().copy() != 0
    assert masks.take_over() == {"0/weight": pytest.approx(0.5, abs=0.01)}
    before = weights_of(module)
    train(module, optimizer)
    assert holds(module, before, kept=kept, free=kept)
    assert masks.take_over() == {}


def test_sparse_parametrizations_are_taken_over():
    from torch.ao.pruning import WeightNormSparsifier

    module = network()
    sparsifier = WeightNormSparsifier(sparsity_level=0.6, sparse_block_shape=(1, 1))
    sparsifier.prepare(module, [{"tensor_fqn": "2.weight"}])
    sparsifier.step()
    masks = pastnet.torch.Masks(module)
    shares = masks.take_over()
    assert {*shares} == {"2/weight"}
    assert masks.sparsity("2.weight") == shares["2/weight"]
    assert not torch.nn.utils.parametrize.is_parametrized(module[2])


def test_zeros_of_a_pruned_model_are_kept():
    module = network()
    module[2].lora_B = torch.nn.Linear(4, 4, bias=False)
    with torch.no_grad():
        module[0].weight *= torch.from_numpy(KEPT)
        module[2].lora_B.weight[:2] = 0
        module[2].weight.zero_()
    masks = pastnet.torch.Masks(module)
    assert masks.keep_zeros() == {"0/weight": pytest.approx(1 - KEPT.mean())}
    np.testing.assert_array_equal(masks.kept["0/weight"], KEPT)
    assert masks.keep_zeros("2.lora_B.weight") == {"2/lora_B/weight": 0.5}


# ---------------------------------------------------------------------------------------- rewinding


def test_a_snapshot_brings_back_weights_and_slots(tmp_path):
    module = network()
    optimizer = adam(module)
    masks = pastnet.torch.Masks(module, optimizer)
    train(module, optimizer)
    masks.snapshot().save(tmp_path / "early.npz")
    early = {name: value.clone() for name, value in module.state_dict().items()}
    slots = optimizer.state[module[2].weight]["exp_avg_sq"].clone()
    train(module, optimizer)
    masks.prune("0.weight", kept=KEPT)
    optimizer.param_groups[0]["lr"] = 0.5
    rewound = masks.rewind(pastnet.Snapshot.load(tmp_path / "early.npz"))
    assert (rewound.slots, rewound.step, rewound.statistics) == ("snapshot", (6, 3), 2)
    kept = torch.from_numpy(KEPT)
    assert torch.equal(module[0].weight[kept], early["0.weight"][kept])
    assert not module[0].weight[~kept].any()
    for name, value in early.items():
        if value.is_floating_point() and name != "0.weight":
            assert torch.equal(module.state_dict()[name], value), name
    assert torch.equal(optimizer.state[module[2].weight]["exp_avg_sq"], slots)
    assert not optimizer.state[module[0].weight]["exp_avg"][~kept].any()
    assert optimizer.param_groups[0]["lr"] == 1e-2
    assert optimizer.param_groups[0]["betas"] == (0.9, 0.999)
    train(module, optimizer)


def test_only_the_schedule_is_set_back():
    module = network()
    optimizer = adam(module)
    masks = pastnet.torch.Masks(module, optimizer)
    snapshot = masks.snapshot()
    train(module, optimizer)
    optimizer.param_groups[0]["lr"] = 0.5
    before = weights_of(module)
    rewound = masks.rewind(snapshot, "learning_rate")
    assert (rewound.weights, rewound.step) == (0, (3, 0))
    assert torch.equal(module[0].weight, before)
    assert optimizer.param_groups[0]["lr"] == 1e-2
    with pytest.raises(InvalidArgument):
        masks.rewind(snapshot, "lr")
    with pytest.raises(InvalidArgument):
        pastnet.torch.Masks(torch.nn.Linear(2, 2)).rewind(snapshot)


def test_an_optimizer_of_another_class_begins_with_new_slots():
    module = network()
    first = adam(module)
    train(module, first)
    snapshot = pastnet.torch.Masks(module, first).snapshot()
    other = torch.optim.SGD(module.parameters(), 0.1, momentum=0.9)
    masks = pastnet.torch.Masks(module, other)
    train(module, other)
    masks.rewind(snapshot)
    train(module, other)


# ----------------------------------------------------------------------------------------- refusals


def test_optimizers_that_keep_another_copy_are_refused():
    class Master(torch.optim.SGD):
        __module__ = "apex.optimizers"

    module = network()
    with pytest.raises(InvalidArgument):
        pastnet.torch.Masks(module, Master(module.parameters(), 0.1))
    with pytest.raises(InvalidArgument):
        pastnet.torch.Masks(module, 0.1)
    pastnet.torch.Masks(module, Master(module.parameters(), 0.1), enforce=False)


def test_a_model_of_another_framework_is_refused_with_the_call_to_write():
    with pytest.raises(InvalidArgument) as error:
        check_subject(network(), KERAS, "hold the weights of")
    assert "pastnet.torch.Masks(model" in str(error.value)
    with pytest.raises(InvalidArgument):
        pastnet.torch.Masks({"weight": np.ones(3)})


def test_what_a_parametrization_computes_is_refused_and_its_parts_are_not():
    module = network()
    torch.nn.utils.parametrizations.weight_norm(module[0])
    masks = pastnet.torch.Masks(module)
    with pytest.raises(InvalidArgument):
        masks.freeze("0/weight")
    name = next(name for name in masks.kept if name.endswith("original1"))
    masks.freeze(name)
    before = module[0].parametrizations.weight.original1.detach().clone()
    train(module, adam(module))
    assert torch.equal(module[0].parametrizations.weight.original1, before)


def test_gradients_that_no_hook_sees_are_masked_before_the_step():
    module, _ = masked()
    before = weights_of(module)
    optimizer = torch.optim.SGD(module.parameters(), 0.1, momentum=0.9)
    for _ in range(3):
        loss = module(X).square().mean()
        gradients = torch.autograd.grad(loss, list(module.parameters()))
        for parameter, gradient in zip(module.parameters(), gradients, strict=True):
            parameter.grad = gradient
        optimizer.step()
    assert holds(module, before)
    momentum = optimizer.state[module[0].weight]["momentum_buffer"]
    assert not momentum[~torch.from_numpy(KEPT & FREE)].any()
