"""Masks of torch's pruning, which may come, change and go while a module is recorded."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch isn't installed: an extra of its own")

from torch import nn  # noqa: E402
from torch.ao.pruning import FakeSparsity  # noqa: E402
from torch.nn.utils import parametrize, prune  # noqa: E402

import tb_pastnet as pastnet  # noqa: E402
from tb_pastnet.record.masks.declared_masks import declared_table  # noqa: E402
from tb_pastnet.torch.module_weights import network_of  # noqa: E402
from tb_pastnet.torch.pruned_masks import PrunedMasks  # noqa: E402


def test_each_change_of_a_mask_has_a_version():
    module = nn.Linear(3, 2)
    weights = network_of(module).weights
    find = PrunedMasks(weights, declared_table(weights)).table
    versions = [find().version]

    def changed():
        versions.append(find().version)
        assert find().version == versions[-1]
        return versions[-1] != versions[-2]

    assert not find().masked
    prune.l1_unstructured(module, "weight", amount=2)
    assert changed()
    assert find().masked.keys() == {"weight"}
    prune.l1_unstructured(module, "weight", amount=1)
    assert changed()
    module.weight_mask[0, 0] = 1 - module.weight_mask[0, 0]
    assert changed()
    kept, trainable = find().read("weight")
    np.testing.assert_array_equal(kept, module.weight_mask.numpy() == 1)
    assert trainable.all()
    prune.remove(module, "weight")
    assert changed()
    assert not find().masked
    assert find().read("weight")[0].all()


def test_a_mask_that_is_written_through_data_changes_once_it_settles():
    module = nn.Linear(3, 2)
    prune.l1_unstructured(module, "weight", amount=2)
    weights = network_of(module).weights
    table = PrunedMasks(weights, declared_table(weights)).table()
    versions = []
    for write in (lambda mask: None, lambda mask: mask.zero_(), lambda mask: None):
        write(module.weight_mask.data)
        table.registry.settle()
        versions.append(table.version)
    assert versions[0] < versions[1] == versions[2]


def test_a_mask_that_takes_the_place_of_a_lost_one_is_another():
    module = nn.Linear(30, 20)
    weights = network_of(module).weights
    find = PrunedMasks(weights, declared_table(weights)).table
    seen = set()
    for _ in range(20):
        for _ in range(3):  # masks in between are freed, and their ids used again
            prune.l1_unstructured(module, "weight", amount=1)
        table = find()
        seen.add(table.version)
        np.testing.assert_array_equal(table.read("weight")[0], module.weight_mask.numpy() == 1)
    assert len(seen) == 20


def test_a_sparsifier_may_come_later():
    module = nn.Linear(3, 2)
    weights = network_of(module).weights
    find = PrunedMasks(weights, declared_table(weights)).table
    version = find().version
    mask = torch.tensor([[1.0, 0, 1], [0, 1, 1]])
    parametrize.register_parametrization(module, "weight", FakeSparsity(mask))
    assert find().version != version
    np.testing.assert_array_equal(find().read("weight")[0], mask.numpy() == 1)


def test_a_mask_in_the_place_of_another_buffer_is_found(tmp_path):
    model = torch.nn.Linear(4, 3)
    model.register_buffer("count", torch.ones(1, dtype=torch.int64))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with pastnet.torch.Recorder(tmp_path, model, optimizer, every=1) as recorder:
        for step in range(1, 6):
            model(torch.ones(2, 4)).sum().backward()
            optimizer.step()
            if step == 3:
                del model.count
                prune.custom_from_mask(
                    model, "weight", torch.tensor([[0.0], [1], [1]]).expand(3, 4)
                )
            recorder.record(step)
    (run,) = pastnet.read(tmp_path).runs.values()
    assert run.variables["weight"].kept[:, 0].tolist() == [1, 1, 0, 0, 0]
