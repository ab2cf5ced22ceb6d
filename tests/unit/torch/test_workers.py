"""Two workers of DistributedDataParallel: one of them writes."""

from __future__ import annotations

import subprocess
import sys

import pytest

import tb_pastnet as pastnet
from tb_pastnet.errors import InvalidArgument

torch = pytest.importorskip("torch", reason="torch isn't installed: an extra of its own")

PROGRAM = """
import sys
import torch
import tb_pastnet as pastnet

rank, folder = int(sys.argv[1]), sys.argv[2]
torch.distributed.init_process_group(
    "gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2
)
torch.manual_seed(0)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
recorder = pastnet.torch.Recorder(f"{folder}/log", model, optimizer, every=2)
for step in range(1, 7):
    optimizer.zero_grad()
    model(torch.full((2, 3), float(rank))).square().sum().backward()
    optimizer.step()
    recorder.record(step)
assert recorder.flush()
print(recorder.records, recorder.notes.counts())
recorder.close()
torch.distributed.destroy_process_group()
"""


@pytest.mark.skipif(not torch.distributed.is_available(), reason="this torch has no workers")
def test_one_of_two_workers_writes_under_the_names_of_one(tmp_path, monkeypatch):
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(rank), str(tmp_path)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in (0, 1)
    ]
    assert [worker.communicate()[0] for worker in workers] == ["4 {}\n", "0 {}\n"]
    (run,) = pastnet.read(tmp_path / "log").runs.values()
    assert run.steps.tolist() == [1, 2, 4, 6]
    assert list(run.variables) == ["weight", "bias"]


@pytest.fixture
def only_worker(tmp_path, monkeypatch):
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    meeting = f"file://{tmp_path}/meet"
    torch.distributed.init_process_group("gloo", init_method=meeting, rank=0, world_size=1)
    yield torch.distributed.device_mesh.init_device_mesh("cpu", (1,))
    torch.distributed.destroy_process_group()


@pytest.mark.skipif(not torch.distributed.is_available(), reason="this torch has no workers")
@pytest.mark.filterwarnings("ignore:FSDP:UserWarning")
def test_weights_that_are_spread_over_workers_are_refused(only_worker, tmp_path):
    fsdp = pytest.importorskip("torch.distributed.fsdp", reason="this torch has no FSDP")
    layers = [torch.nn.Linear(3, 2) for _ in range(3)]
    cpu = torch.device("cpu")
    for spread in (
        fsdp.fully_shard(layers[0], mesh=only_worker),
        fsdp.FullyShardedDataParallel(layers[1], device_id=cpu),
        fsdp.FullyShardedDataParallel(layers[2], device_id=cpu, use_orig_params=True),
    ):
        with pytest.raises(InvalidArgument, match=r"got a part of them: FSDP or a DTensor"):
            pastnet.torch.Recorder(tmp_path / "log", spread)
