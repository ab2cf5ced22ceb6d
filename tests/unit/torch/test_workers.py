"""Two workers of DistributedDataParallel: one of them writes."""

from __future__ import annotations

import pytest

import tb_pastnet as pastnet
from tb_pastnet.errors import InvalidArgument

torch = pytest.importorskip("torch", reason="torch isn't installed: an extra of its own")

from tb_pastnet.torch.recording_callback import RecordingCallback  # noqa: E402

PROGRAM = """
import torch
import tb_pastnet as pastnet
from tb_pastnet.torch.recording_callback import RecordingCallback

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
try:
    RecordingCallback(f"{folder}/stops", on_violation="stop")._begin(model, optimizer, 6, 9)
except pastnet.errors.InvalidArgument as error:
    assert "got 'stop' in one of 2 processes" in str(error)
else:
    raise AssertionError("one of two would stop alone")
print(recorder.records, recorder.notes.counts())
recorder.close()
torch.distributed.destroy_process_group()
"""


@pytest.mark.skipif(not torch.distributed.is_available(), reason="this torch has no workers")
def test_one_of_two_workers_writes_under_the_names_of_one(run_ranks, tmp_path):
    assert run_ranks(PROGRAM, folder=str(tmp_path)) == ["4 {}\n", "0 {}\n"]
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
@pytest.mark.parametrize("original", [False, True])
def test_flat_parameters_of_the_older_fsdp_are_refused(only_worker, tmp_path, original):
    fsdp = pytest.importorskip("torch.distributed.fsdp", reason="this torch has no FSDP")
    spread = fsdp.FullyShardedDataParallel(
        torch.nn.Linear(3, 2), device_id=torch.device("cpu"), use_orig_params=original
    )
    with pytest.raises(InvalidArgument, match=r"a flat parameter: .*Shard with .*\.fully_shard to"):
        pastnet.torch.Recorder(tmp_path / "log", spread)


def sharded(mesh):
    fsdp = pytest.importorskip("torch.distributed.fsdp", reason="this torch has no FSDP")
    return fsdp.fully_shard(torch.nn.Linear(3, 2), mesh=mesh)


@pytest.mark.skipif(not torch.distributed.is_available(), reason="this torch has no workers")
def test_shards_over_several_axes_of_a_mesh_are_refused(only_worker, tmp_path):
    names = {"mesh_dim_names": ("replicate", "shard")}
    mesh = torch.distributed.device_mesh.init_device_mesh("cpu", (1, 1), **names)
    with pytest.raises(
        InvalidArgument,
        match=r"'weight': expected shards over one axis of all 1 ranks, got .* of shape \(1, 1\)",
    ):
        pastnet.torch.Recorder(tmp_path / "log", sharded(mesh))


@pytest.mark.skipif(not torch.distributed.is_available(), reason="this torch has no workers")
@pytest.mark.parametrize("setting", [{"budget": 0.1}, {"on_violation": "stop"}])
def test_settings_by_which_ranks_may_differ_are_refused(only_worker, tmp_path, setting):
    ((name, value),) = setting.items()
    with pytest.raises(
        InvalidArgument,
        match=f"expected settings that act the same on each rank, got {name}={value!r}",
    ):
        RecordingCallback(tmp_path / "log", **setting)._begin(sharded(only_worker), None, 0, 9)


@pytest.mark.skipif(not torch.distributed.is_available(), reason="this torch has no workers")
def test_what_is_computed_of_shards_is_skipped_with_the_reason(only_worker, tmp_path):
    fsdp = pytest.importorskip("torch.distributed.fsdp", reason="this torch has no FSDP")
    module = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Linear(2, 2))
    torch.nn.utils.parametrizations.weight_norm(module[0])
    with pastnet.torch.Recorder(
        tmp_path / "log", fsdp.fully_shard(module, mesh=only_worker), every=1
    ) as recorder:
        recorder.record(1)
        recorder.flush()
    (run,) = pastnet.read(tmp_path / "log").runs.values()
    assert "0/weight" not in run.variables
    assert "1/weight" in run.variables
    assert recorder.notes.counts() == {}
