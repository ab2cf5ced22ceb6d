"""NumPy's kernels give what numba's give, which `test_memory_layout` holds against the definition."""

import numpy as np
import pytest

from tb_pastnet.core import plain_kernels
from tb_pastnet.core.memory_layout import Contiguous, Interleaved
from tb_pastnet.core.statistics import CHANGED, DELTA_MAX, NONFINITE

LAYOUTS = [
    Interleaved(1, 700, 64, 1),
    Interleaved(1, 20_001, 3, 1),
    Interleaved(5, 3, 7, 2),
    Interleaved(1, 1, 50_000, 1),
    Contiguous(1, 1, 64, 1152),
    Contiguous(2, 3, 5, 9),
    Contiguous(1, 1, 1, 100_000),
]


def arrays(layout):
    rng = np.random.default_rng(0)
    past = rng.normal(size=layout.shape).astype(np.float32)
    return np.where(rng.random(past.shape) < 0.5, past, past * np.float32(1.001)), past


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_they_agree(kernels, layout):
    current, past = arrays(layout)
    (cut,) = layout.cuts(1)
    by_numba = layout.measure(kernels, current, past.copy(), cut, replace=False)
    by_numpy = layout.measure(plain_kernels, current, past, cut, replace=True)
    np.testing.assert_allclose(by_numpy, by_numba, rtol=1e-12)
    exact = [DELTA_MAX, CHANGED, NONFINITE]
    np.testing.assert_array_equal(by_numpy[exact], by_numba[exact])
    np.testing.assert_array_equal(past, current)
