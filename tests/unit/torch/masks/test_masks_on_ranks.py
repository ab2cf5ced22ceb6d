"""Masks of weights that ranks copy or share, in processes of gloo."""

from __future__ import annotations

import pytest

pytest.importorskip("torch.distributed.fsdp", reason="needs torch with FSDP")

PROGRAM = """
import logging
import os
import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Shard, distribute_tensor
import tb_pastnet as pastnet

torch.set_num_threads(1)
dist.init_process_group("gloo", init_method=f"file://{folder}/{kind}", rank=rank, world_size=ranks)
mesh = dist.device_mesh.init_device_mesh("cpu", (ranks,))
if kind == "rows":
    from tb_pastnet.torch.masks import held_elements
    held_elements.PACKED_FROM = 1
drawn = torch.rand(17, 10, generator=torch.Generator().manual_seed(5))
kept, free = drawn > 0.3, drawn > 0.6
logged = []
handler = logging.Handler()
handler.emit = lambda record: logged.append(record.getMessage())
logging.getLogger("tb_pastnet").addHandler(handler)


def shard(module):
    by = {"shard_placement_fn": lambda each: Shard(1) if each.ndim == 2 else None}
    if kind == "reshard_never":
        by = {"reshard_after_forward": False}
    fully_shard(module[0], mesh=mesh, **(by if kind != "rows" else {}))
    fully_shard(module, mesh=mesh)


def local(tensor, like):
    if not hasattr(like, "placements"):
        return tensor
    return distribute_tensor(tensor, like.device_mesh, like.placements).to_local()


def own(tensor):
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor


def train(ours):
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(10, 17), nn.Tanh(), nn.Linear(17, 1))
    before = torch.where(kept, module[0].weight.detach(), 0)
    place = tuple((kept & ~free).nonzero()[3])
    before[place] = module[0].weight.data[place] = -0.0
    late = kind == "sharded_later" and ours
    copies = kind == "copies"
    if late:
        masks = pastnet.torch.Masks(module)
        masks.prune("0.weight", kept=kept)
        masks.freeze("0.weight", trainable=free)
    network = module
    if copies:
        network = nn.parallel.DistributedDataParallel(module)
    else:
        shard(module)
    optimizer = torch.optim.AdamW(network.parameters(), 1e-2, weight_decay=0.1)
    weight = module[0].weight
    if ours and not late:
        masks = pastnet.torch.Masks(network, optimizer)
        masks.prune("0.weight", kept=kept)
        masks.freeze("0.weight", trainable=free)
    recorder = None
    if ours and kind == "rows":
        recorder = pastnet.torch.Recorder(f"{folder}/log", network, optimizer, every=2, masks=masks)
    held, values = ~local(kept & free, weight), local(before, weight)
    if not ours:
        with torch.no_grad():
            own(weight).copy_(torch.where(held, values, own(weight)))
    random = torch.Generator().manual_seed(10 + rank)
    for step in range(8):
        optimizer.zero_grad()
        for part in range(2):
            x = torch.randn(16, 10, generator=random)
            last = part == 1
            if copies and not last:
                with network.no_sync():
                    network(x).square().mean().backward()
            else:
                if not copies:
                    module.set_requires_gradient_sync(last)
                network(x).square().mean().backward()
        if not ours:
            own(weight.grad).masked_fill_(held, 0)
        if not late or step:
            nn.utils.clip_grad_norm_(network.parameters(), 0.05)
        optimizer.step()
        if not ours:
            with torch.no_grad():
                own(weight).copy_(torch.where(held, values, own(weight)))
        if recorder is None:
            continue
        row, column = (kept & ~free).nonzero()[-1]
        last = step == 7 and rank == ranks - 1  # it has that element
        value = own(weight)[-1, column].item()
        if last:
            own(weight).data[-1, column] += 1
        recorder.record(step + 1)
        if last:
            own(weight).data[-1, column] = value
    if recorder is not None:
        recorder.close()
        if rank == 0:
            run = pastnet.read(f"{folder}/log").runs["."]
            shown = run.variables["0/weight"].masks(8)
            np.testing.assert_array_equal(shown.kept, kept.numpy())
            np.testing.assert_array_equal(shown.trainable | ~shown.kept, (free | ~kept).numpy())
            assert run.verified.values == (~(kept & free)).sum()
            (violation,) = run.violations
            assert (violation.channel, violation.elements, violation.first_step) == (row, 1, 8)
            assert abs(violation.largest - 1) < 1e-6
            assert violation.cause == "written", violation
            assert len(logged) == 1, logged
            logged.clear()
    whole = weight.full_tensor() if hasattr(weight, "full_tensor") else weight
    if ours and kind == "rows":
        saved = masks.state_dict()
        assert masks.load_state_dict(saved)
        masks.prune_smallest(0.6)
        assert abs(masks.sparsity() - 0.6) < 0.02
        assert masks.zeros() == masks.sparsity()
        for refused in (masks.audit, masks.snapshot):
            try:
                refused()
            except pastnet.errors.InvalidArgument:
                continue
            raise AssertionError(refused)
        again = pastnet.torch.Masks(network)
        assert again.sparsity() == masks.sparsity()
    return whole.detach().clone(), before


ours, before = train(True)
rule, _ = train(False) if kind != "sharded_later" else (None, None)
held = ~(kept & free)
assert torch.equal(ours[held].view(torch.int32), before[held].view(torch.int32))
assert (ours[~held] != before[~held]).any()
if rule is not None:
    assert torch.equal(ours[~held], rule[~held]), (ours - rule).abs().max()
    assert logged == [], logged
else:
    assert len(logged) == 1, logged
dist.destroy_process_group()
"""


@pytest.mark.prove
@pytest.mark.promise("torch_masks")
@pytest.mark.parametrize("kind", ["copies", "rows", "columns", "reshard_never", "sharded_later"])
def test_ranks_hold_every_bit_and_train_by_the_rule(kind, run_ranks, tmp_path):
    run_ranks(PROGRAM, kind=kind, folder=str(tmp_path))
