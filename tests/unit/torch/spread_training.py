"""A program of several ranks: it trains sharded, by copies, and alone, with a recorder and without.

`main` takes the rank, how many there are, a folder, and which trainings, each as "kind" or
"kind:plain" for one without a recorder. Values, losses and what was noted go to files there.
"""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

import tb_pastnet as pastnet
from tb_pastnet.record.source import ArraySource

STEPS = 7
EVERY = 2


class Network(nn.Module):
    """Layers whose channels lie on one rank, on several, or on rank 0 alone."""

    def __init__(self) -> None:
        super().__init__()
        self.rows = nn.Linear(4, 5)
        self.gates = nn.LSTM(5, 4)
        self.columns = nn.Linear(4, 6)
        self.heads = nn.MultiheadAttention(6, 2)
        self.norm = nn.BatchNorm1d(6)
        self.table = nn.Embedding(7, 6)
        self.groups = nn.ConvTranspose1d(4, 2, 3, groups=2)
        self.single = nn.Linear(6, 1)

    def forward(self, x: Any) -> Any:
        hidden = self.gates(torch.relu(self.rows(x)).unsqueeze(1))[0]
        hidden = self.columns(hidden)
        hidden = self.heads(hidden, hidden, hidden)[0].squeeze(1)
        hidden = self.norm(hidden) + self.table(torch.arange(len(hidden)) % 7)
        return self.single(hidden).squeeze(1) + self.groups(hidden[:, :4, None]).sum((1, 2))


def shard(model: Any) -> None:
    mesh = dist.device_mesh.init_device_mesh("cpu", (dist.get_world_size(),))
    by_columns = {"shard_placement_fn": lambda each: Shard(1) if each.ndim == 2 else None}
    fully_shard(model.columns, mesh=mesh, **by_columns)
    fully_shard(model.rows, mesh=mesh)
    fully_shard(model, mesh=mesh)


def whole(tensor: Any) -> Any:
    tensor = tensor.detach()
    return (tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor).numpy().copy()


def write_a_frozen_row(model: Any, kind: str, rank: int) -> None:
    """Row 6 of a table that is frozen; of shards it lies on the last rank."""
    table = model.table.weight
    with torch.no_grad():
        if kind != "sharded":
            table[6] += 1
        elif rank == dist.get_world_size() - 1:
            table.to_local()[-1] += 1


def train(kind: str, rank: int, folder: Path, *, recorded: bool) -> dict[str, Any]:
    torch.manual_seed(0)
    model = Network()
    model.table.requires_grad_(False)
    network = nn.parallel.DistributedDataParallel(model) if kind == "copies" else model
    if kind == "sharded":
        shard(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    if recorded:
        network(torch.zeros(8, 4))  # leaves parameters of the root whole
        recorder = pastnet.torch.Recorder(
            folder / kind, network, optimizer, every=EVERY, initial_step=0
        )
        recorder.expect_end(STEPS)
    else:
        network(torch.zeros(8, 4))
    x, losses = torch.randn(8, 4), []
    values = {f"0/{name}": whole(each) for name, each in model.state_dict().items()}
    for step in range(1, STEPS + 1):
        optimizer.zero_grad(set_to_none=False)
        loss = network(x).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if step == 5:
            write_a_frozen_row(model, kind, rank)
        with torch.no_grad():
            network.eval()(x)
            network.train()
        if recorded:
            recorder.record(step)
        if step == 4 and kind != "copies":  # these can't be frozen later
            if kind == "sharded":
                model.rows.reshard()
            model.rows.requires_grad_(False)
        values |= {f"{step}/{name}": whole(each) for name, each in model.state_dict().items()}
    np.savez(folder / f"{kind}.{recorded}.{rank}.npz", losses=losses, **values)
    if not recorded:
        return {}
    recorder.flush(closed=True)
    recorder.close()
    return {"records": recorder.records, "notes": recorder.notes.counts()}


def small(rank: int, folder: Path, **settings: Any) -> Any:
    torch.manual_seed(0)
    model = nn.Linear(3, 4, bias=False)
    fully_shard(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    recorder = pastnet.torch.Recorder(folder, model, optimizer, **{"every": EVERY, **settings})

    def step(number: int) -> None:
        optimizer.zero_grad()
        model(torch.ones(2, 3)).square().sum().backward()
        optimizer.step()
        recorder.record(number)

    return SimpleNamespace(recorder=recorder, step=step, model=model)


def broken(*_: object, **__: object) -> None:
    raise MemoryError("no room")


def fail(rank: int, folder: Path) -> dict[str, Any]:
    """Rank 1 can't measure at step 4, nor rank 0 write at step 6."""
    training, compare = small(rank, folder / "failing"), ArraySource.compare
    measuring = training.recorder._measuring
    measure = measuring.measure
    for number in range(1, 9):
        if rank == 1 and number == 4:
            ArraySource.compare = broken
        if rank == 0:
            measuring.measure = broken if number == 6 else measure
        training.step(number)
        ArraySource.compare = compare
    training.recorder.flush()
    training.recorder.close()
    return {"records": training.recorder.records, "notes": training.recorder.notes.counts()}


def go_back(rank: int, folder: Path) -> dict[str, Any]:
    """Steps that go back, one that the log is told of, and past values by hand."""
    training = small(rank, folder / "back", past="epoch")
    for number in (1, 2, 3, 4, 3, 4, 5, 6):
        training.step(number)
        if number == 5:
            training.recorder.sync()
    training.recorder.restart(10)
    for number in (11, 12):
        training.step(number)
    training.recorder.flush()
    training.recorder.close()
    training.recorder.close()
    return {"records": training.recorder.records, "notes": training.recorder.notes.counts()}


def parallel(rank: int, folder: Path) -> dict[str, Any]:
    """Tensor parallelism: outputs of one layer, inputs of the next, and a norm that isn't cut."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3), nn.LayerNorm(3))
    mesh = dist.device_mesh.init_device_mesh("cpu", (dist.get_world_size(),))
    parallelize_module(model, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, foreach=False)
    values = {f"0/{name}": whole(each) for name, each in model.named_parameters()}
    recorder = pastnet.torch.Recorder(folder / "parallel", model, optimizer, every=1)
    for step in (1, 2, 3):
        optimizer.zero_grad()
        model(torch.arange(8.0).reshape(2, 4)).square().sum().backward()
        optimizer.step()
        recorder.record(step)
        values |= {f"{step}/{name}": whole(each) for name, each in model.named_parameters()}
    np.savez(folder / f"parallel.True.{rank}.npz", **values)
    recorder.flush()
    recorder.close()
    return {"records": recorder.records, "notes": recorder.notes.counts()}


def choose(rank: int, folder: Path) -> dict[str, Any]:
    """Statistics alone are recorded: of these each rank has its own."""
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    fully_shard(model)
    recorder = pastnet.torch.Recorder(
        folder / "chosen", model, every=1, variables=["1.running_mean"], budget=0.5
    )
    model(torch.ones(2, 3))
    recorder.record(1)
    recorder.flush()
    recorder.close()
    return {"records": recorder.records, "notes": recorder.notes.counts()}


OTHERS = {
    "chosen": choose,
    "parallel": parallel,
    "failing": fail,
    "back": go_back,
}


def main(rank: int, ranks: int, folder: Path, kinds: list[str]) -> None:
    torch.set_num_threads(1)
    meeting = f"file://{folder}/meeting"
    dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=ranks)
    done = {}
    for kind in kinds:
        name, _, plain = kind.partition(":")
        if name in OTHERS:
            done[kind] = OTHERS[name](rank, folder)
        elif name != "alone" or rank == 0:
            done[kind] = train(name, rank, folder, recorded=not plain)
    (folder / f"done.{rank}.json").write_text(json.dumps(done))
    dist.destroy_process_group()
