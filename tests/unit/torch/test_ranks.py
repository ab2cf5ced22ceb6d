"""What ranks put together; with one rank it is its own."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch isn't installed: an extra of its own")
if not torch.distributed.is_available():
    pytest.skip("this torch has no workers", allow_module_level=True)

from tb_pastnet.torch.ranks import Ranks  # noqa: E402


@pytest.fixture
def ranks(tmp_path, monkeypatch):
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    meeting = f"file://{tmp_path}/meet"
    torch.distributed.init_process_group("gloo", init_method=meeting, rank=0, world_size=1)
    yield Ranks()
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


def test_one_rank_has_its_own(ranks):
    sums, largest = np.array([[1, -2]]), np.array([0.5, -np.inf])
    ranks.total(sums)
    ranks.maximum(largest)
    assert ranks.count == 1
    assert (sums.tolist(), largest.tolist()) == ([[1, -2]], [0.5, -np.inf])
    assert ranks.all(("a", 1)) == [("a", 1)]


def test_leaving_twice_or_after_the_training_ended_its_groups_is_no_error(ranks):
    torch.distributed.destroy_process_group()
    assert ranks.leave() is None
    assert ranks.leave() is None
