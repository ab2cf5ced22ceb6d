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
        ((CURRENT, PAST[:2]), r"expected past= of shape \(3, 4\), got \(2, 4\)"),
        ((CURRENT[0, 0], PAST[0, 0]), r"expected \(\) for a scalar, got 0. Pass channel_axis=\(\)"),
        ((CURRENT[:, :0], PAST[:, :0]), r"expected at least one element, got shape \(3, 0\)"),
        ((CURRENT.to_sparse(), PAST), "expected a dense torch.Tensor, got torch.sparse_coo"),
        ((CURRENT, PAST.to_sparse()), "expected a dense torch.Tensor, got torch.sparse_coo"),
        ((CURRENT.numpy(), PAST), "expected a dense torch.Tensor, got ndarray"),
        ((CURRENT, PAST.numpy()), "expected a dense torch.Tensor, got ndarray"),
    ],
)
def test_values_that_cannot_be_compared_are_refused(arguments, text, tmp_path):
    with (
        SummaryWriter(tmp_path) as writer,
        pytest.raises(InvalidArgument, match=f"'w'.*{text}"),
    ):
        pastnet.torch.summary.channels(writer, "w", *arguments, step=1)


@pytest.mark.parametrize(
    ("mask", "text"),
    [
        (torch.ones(3), r"the trainable mask of 'w': expected shape \(3, 4\), got \(3,\)"),
        (torch.full((3, 4), 0.5), "'w': expected only 0 and 1, got 12 other values, the first 0.5"),
        (np.ones((3, 4)), "trainable= of 'w': expected a dense torch.Tensor, got ndarray"),
        (torch.ones(3, 4).to_sparse(), "trainable= of 'w': expected a dense torch.Tensor, got"),
    ],
)
def test_a_mask_that_cannot_be_used_is_refused(mask, text, tmp_path):
    with SummaryWriter(tmp_path) as writer, pytest.raises(InvalidArgument, match=text):
        pastnet.torch.summary.channels(writer, "w", CURRENT, PAST, 1, trainable=mask)


def test_what_is_no_writer_is_refused():
    with pytest.raises(InvalidArgument, match=r"'w': expected writer= a .*SummaryWriter, got str"):
        pastnet.torch.summary.channels("runs", "w", CURRENT, PAST, 1)
