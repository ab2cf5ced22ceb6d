"""Numba's kernels, for the tests that ask for them."""

import pytest


@pytest.fixture(scope="session")
def kernels():
    """Brought where a test asks: each process of tests would wait for numba otherwise."""
    pytest.importorskip("numba", reason="numba isn't installed: an extra of its own")
    from tb_pastnet.core import kernels

    return kernels
