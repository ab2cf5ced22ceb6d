"""Leaves are measured where JAX has them, whichever way they lie."""

import numpy as np
import pytest

import tb_pastnet as pastnet
from tests.python_calls import PackageCalls

jax = pytest.importorskip("jax", reason="its room is tested where JAX is installed")


def transposed(array):
    """The same values, the columns first in memory."""
    layouts = pytest.importorskip("jax.experimental.layout", reason="this JAX has no layouts")
    names = [name for name in ("Format", "Layout") if hasattr(layouts, name)]
    if len(names) < 2:
        pytest.skip("this JAX has no layouts by these names")
    form = layouts.Format(layouts.Layout((1, 0)), array.sharding)
    return jax.jit(lambda values: values * 1, out_shardings=form)(array)


CHANGES = {
    "default": lambda array: array * 1,
    "transposed": transposed,
    "numpy": np.asarray,
    "view": lambda array: np.asarray(array)[::-1][::-1].T.copy().T,
}


@pytest.mark.parametrize("first", CHANGES)
@pytest.mark.parametrize("then", CHANGES)
def test_values_count_however_they_lie(first, then, tmp_path):
    values = [np.random.default_rng(step).normal(size=(3, 3)).astype("f4") for step in range(7)]

    def params(step):
        change = CHANGES[first if step < 4 else then]
        return {"w": change(jax.numpy.asarray(values[step])), "v": jax.numpy.ones(4097) * step}

    with pastnet.jax.Recorder(tmp_path, params(0), every=1) as recorder:
        for step in range(1, 7):
            recorder.record(step, params(step))
    run = pastnet.read(tmp_path).runs["."]
    assert run.steps.tolist() == [1, 2, 3, 4, 5, 6]
    deltas = [np.linalg.norm(values[step] - values[step - 1], axis=0) for step in range(1, 7)]
    stored = run.variables["w"].delta_norm
    np.testing.assert_allclose(stored, deltas, rtol=0.03)  # codes are right within 2.2 %


@pytest.mark.parametrize("leaves", [6, 200])
def test_a_record_takes_as_many_calls_for_any_number_of_leaves(leaves, tmp_path):
    pytest.importorskip("numba", reason="without it, each shape is measured by itself")
    params = {f"w{number}": jax.numpy.ones((4, 4)) for number in range(leaves)}
    update = jax.jit(lambda params: jax.tree.map(lambda w: w * 0.5, params))
    calls, counts = PackageCalls(), []
    with pastnet.jax.Recorder(tmp_path, params, every=1) as recorder:
        for step in range(1, 20):
            params = update(params)
            with calls:
                recorder.record(step, params)
            counts.append(calls.count)
    assert sorted(counts)[len(counts) // 2] <= 130
