"""Summaries in a file of torch's own writer, as the tab reads them."""

from __future__ import annotations

import numpy as np
import pytest

import tb_pastnet as pastnet
from tb_pastnet.core.quantize import PRECISION
from tb_pastnet.errors import InvalidArgument

torch = pytest.importorskip("torch", reason="torch isn't installed: an extra of its own")

from torch.utils.tensorboard import SummaryWriter  # noqa: E402

PAST = torch.arange(12, dtype=torch.float32).reshape(3, 4)
CURRENT = PAST + torch.tensor([[0.0], [0.5], [2.0]])


def test_summaries_are_read_as_a_run(tmp_path):
    with SummaryWriter(tmp_path / "own") as writer:
        for step in (1, 2):
            writer.add_scalar("loss", 0.5, step)
            kept = torch.tensor([[1], [1], [0]]).expand(3, 4)
            pastnet.torch.summary.channels(
                writer, "dense/weight", CURRENT.to(torch.bfloat16), PAST, step, kept=kept
            )
    (run,) = pastnet.read(tmp_path).runs.values()
    weight = run.variables["dense/weight"]
    assert run.steps.tolist() == [1, 2]
    np.testing.assert_allclose(weight.delta_norm[1], [0, 1, 4], rtol=PRECISION)
    np.testing.assert_array_equal(weight.kept[0], [1, 1, 0])
    np.testing.assert_allclose(weight.past_norm[0, 0], np.sqrt(14), rtol=PRECISION)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((torch.ones(2, dtype=torch.int32), PAST), r"floating dtype, got int32. Cast it first"),
        ((CURRENT, PAST[:2]), r"its past copy: expected shape \(3, 4\), got \(2, 4\)"),
    ],
)
def test_values_that_cannot_be_compared_are_refused(arguments, text, tmp_path):
    with (
        SummaryWriter(tmp_path) as writer,
        pytest.raises(InvalidArgument, match=f"'w'.*{text}"),
    ):
        pastnet.torch.summary.channels(writer, "w", *arguments, step=1)


def test_a_mask_of_another_shape_is_refused(tmp_path):
    mask = torch.ones(3)
    with (
        SummaryWriter(tmp_path) as writer,
        pytest.raises(InvalidArgument, match=r"'w' with its trainable: expected shape \(3, 4\)"),
    ):
        pastnet.torch.summary.channels(writer, "w", CURRENT, PAST, 1, trainable=mask)
