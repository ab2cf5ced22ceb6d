"""The fingerprint of a channel: equal on every path, and no change of bits is missed."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tb_pastnet.core import fingerprint
from tb_pastnet.core.axes import ChannelAxis, explicit_axis
from tb_pastnet.core.numba_switch import SWITCH

Array = np.ndarray
Path = Callable[[Array, ChannelAxis], Array]

PLAIN = "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64"
DTYPES = {
    **{name: np.dtype(name) for name in [*PLAIN.split(), "complex64", "complex128"]},
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
    "float8_e4m3fn": np.dtype(ml_dtypes.float8_e4m3fn),
}
SOME: list[tuple[tuple[int, ...], Any]] = [
    *[((65, 3), 0), ((4097, 2), -1), ((8195,), ()), ((), ()), ((0, 3), -1), ((3, 0), -1)],
    *[((3, 3, 4, 5), (-1, 0)), ((4, 3, 2, 2), 1), ((2, 3, 2, 3, 2, 3), (0, 2, 4))],
]
ALL = [
    *SOME,
    *[((size, 3), 0) for size in (1, 7, 8, 9, 63, 64, 65, 129, 4097)],
    *[((3, size), 0) for size in (1, 7, 8, 9, 63, 64, 65, 129, 4097)],
    *[((3, size), -1) for size in (1, 7, 8, 9, 63, 64, 65, 129, 4097)],
    *[((5,), 0), ((3, 3, 4, 5), (-2, -1)), ((2, 3, 2, 3, 2, 3, 2), 1)],
]
GATES = ChannelAxis((3, 4, 5), (2,), "-1 mod 5", True, (1, 2))


def axes(of: list[Any]) -> list[ChannelAxis]:
    return [GATES, *(explicit_axis(axis, shape, "w") for shape, axis in of)]


def made(dtype: np.dtype[Any], shape: tuple[int, ...], seed: int = 0) -> Array:
    """Any bits, NaN and infinity among them."""
    count = int(np.prod(shape, dtype=np.int64))
    raw = np.random.default_rng(seed).integers(0, 256, count * dtype.itemsize, np.uint8)
    return (raw & 1 if dtype.kind == "b" else raw).view(dtype).reshape(shape)


def splitmix(number: int, seed: int) -> int:
    state = ((number + 1) * 0x9E3779B97F4A7C15 + seed) % 2**64
    state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    state = (state ^ (state >> 27)) * 0x94D049BB133111EB % 2**64
    return (state ^ (state >> 31)) | 1


A = [splitmix(number, 1) for number in range(4096)]
B = [splitmix(number, 2) for number in range(16)]


@cache
def by_definition(dtype: str, axis: ChannelAxis) -> list[int]:
    """Of what is made, with Python's integers."""
    array = made(DTYPES[dtype], axis.shape)
    size, found = min(array.dtype.itemsize, 4), []
    for channel in axis.split(array) if array.size else [array] * axis.channels:
        raw = np.ascontiguousarray(channel).tobytes()
        words = [raw[at : at + size] for at in range(0, len(raw), size)]
        each = enumerate(int.from_bytes(word, "little", signed=True) for word in words)
        found.append(sum(A[p % 4096] * B[p // 4096] * word for p, word in each) % 2**64)
    return found


def layouts(array: Array) -> list[Array]:
    """The same values, otherwise in memory."""
    wide = np.zeros([2 * size for size in array.shape], array.dtype)
    back = wide[(*(slice(None, None, -2) for _ in array.shape), ...)]
    back[...] = array
    field = np.zeros(array.shape, np.dtype([("a", "u1"), ("b", array.dtype)]))["b"]
    field[...] = array
    return [array, np.asfortranarray(array), back, field]


@pytest.fixture(params=["numba", "NumPy", "NumPy in pieces"])
def numpy_path(request: Any, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(SWITCH, str(int(request.param == "numba")))
    if request.param.endswith("pieces"):
        monkeypatch.setattr(fingerprint, "_PIECE", 100)
    return fingerprint.fingerprints


@pytest.mark.parametrize("dtype", DTYPES)
def test_it_is_as_defined_in_every_layout(dtype: str, numpy_path: Path) -> None:
    for axis in axes(ALL):
        for array in layouts(made(DTYPES[dtype], axis.shape)):
            found = numpy_path(array, axis)
            assert found.dtype == np.uint64
            assert found.tolist() == by_definition(dtype, axis), (axis, array.strides)


def torch_paths(array: Array, axis: ChannelAxis) -> list[Any]:
    import torch

    from tb_pastnet.torch import fingerprint as own

    names = {"c": array.dtype.name}
    bits = array.view(names.get(array.dtype.kind, f"i{array.dtype.itemsize}"))
    tensor = torch.from_numpy(bits.copy()).view(getattr(torch, array.dtype.name))
    apart = torch.empty([2 * size for size in array.shape], dtype=tensor.dtype)
    apart = apart[(*(slice(1, None, 2) for _ in array.shape), ...)]
    apart.copy_(tensor)
    alike = [tensor, apart]
    alike += [tensor.contiguous(memory_format=torch.channels_last)] if tensor.ndim == 4 else []
    found = [path(one, axis) for one in alike for path in (own.fingerprints, own.by_operations)]
    return [each.numpy() for each in found]


def jax_paths(array: Array, axis: ChannelAxis) -> list[Any]:
    import jax.numpy as jnp

    from tb_pastnet.jax import fingerprint as own

    with own._wide(array.dtype.itemsize > 4):  # as those have it who have values of 8 bytes
        value = jnp.asarray(array)
    return [own.fingerprints(value, axis), own.by_operations(value, axis)]


def tensorflow_paths(array: Array, axis: ChannelAxis) -> list[Any]:
    import tensorflow as tf

    from tb_pastnet.keras.measure import fingerprint as own

    return [own.fingerprints(value, axis).numpy() for value in (tf.constant(array), array)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("paths", "module"),
    [
        (torch_paths, "tb_pastnet.torch.fingerprint"),
        (jax_paths, "tb_pastnet.jax.fingerprint"),
        (tensorflow_paths, "tb_pastnet.keras.measure.fingerprint"),
    ],
    ids=["torch", "jax", "tensorflow"],
)
def test_it_is_the_same_in_each_framework(
    dtype: str, paths: Any, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip(paths.__name__.split("_")[0], reason="not installed: an extra of its own")
    monkeypatch.setattr(f"{module}._PIECE", 1000)
    if paths is tensorflow_paths and dtype.startswith("float8"):
        pytest.skip("TensorFlow can't tell the bits of float8, and Keras has no weights of it")
    for axis in axes(SOME):
        array = made(DTYPES[dtype], axis.shape)
        want = fingerprint.fingerprints(array, axis)
        for found in paths(array, axis):
            assert np.asarray(found).dtype == np.uint64
            np.testing.assert_array_equal(found, want, str(axis))


# ------------------------------------------------------------------------------------ what it sees


def bits_of(array: Array) -> Array:
    return array.view(f"u{array.dtype.itemsize}")


def sign(array: Array) -> Any:
    return bits_of(array).dtype.type(1 << (8 * array.dtype.itemsize - 1))


def one_element(row: Array, draw: np.random.Generator) -> None:
    at, bits = draw.integers(row.size), bits_of(row)
    bits[at] ^= bits.dtype.type(1 << int(draw.integers(8 * row.dtype.itemsize)))


def swapped(row: Array, draw: np.random.Generator) -> None:
    i, j = draw.integers(row.size, size=2)
    row[[i, j]] = row[[j, i]]


def a_period_apart(row: Array, draw: np.random.Generator) -> None:
    at = draw.integers(row.size - 4096)
    row[[at, at + 4096]] = row[[at + 4096, at]]


def two_signs(row: Array, draw: np.random.Generator) -> None:
    bits_of(row)[draw.choice(row.size, 2, replace=False)] ^= sign(row)


def all_signs(row: Array, draw: np.random.Generator) -> None:
    row[draw.integers(row.size)] = draw.integers(100)
    before = row.copy()
    bits_of(row)[:] = bits_of(before) ^ sign(row)


def rolled(row: Array, draw: np.random.Generator) -> None:
    row[:] = np.roll(row, draw.integers(1, row.size))


def permuted(row: Array, draw: np.random.Generator) -> None:
    bits_of(row)[:] = draw.permutation(bits_of(row))


def signed_zero(row: Array, draw: np.random.Generator) -> None:
    bits_of(row)[draw.integers(row.size)] = sign(row)


def payload(row: Array, draw: np.random.Generator) -> None:
    bits_of(row)[draw.integers(row.size)] ^= bits_of(row).dtype.type(1)


CHANGES = one_element, swapped, a_period_apart, two_signs, all_signs, rolled, permuted
BEFORE: dict[Any, Any] = {signed_zero: 0, payload: np.nan}
"""What is changed before the change, in all elements."""
SEEN = "int8", "int16", "int32", "int64", "float16", "float32", "float64", "bfloat16"


def missed(change: Any, dtype: str, count: int) -> tuple[int, int]:
    """Of so many rows, how many changed, and of how many the fingerprint stayed."""
    draw, changed, lost, rows = np.random.default_rng(0), 0, 0, 100
    kind = DTYPES[dtype]
    for start in range(0, count, rows):
        before = made(kind, (rows, 4133 if change is a_period_apart else 133), start)
        if change in BEFORE:
            before[...] = BEFORE[change]
        after = before.copy()
        for row in after:
            change(row, draw)
        axis = explicit_axis(0, before.shape, "w")
        moved = (bits_of(before) != bits_of(after)).any(axis=1)
        same = fingerprint.fingerprints(before, axis) == fingerprint.fingerprints(after, axis)
        assert same[~moved].all()
        changed, lost = changed + int(moved.sum()), lost + int((moved & same).sum())
    return changed, lost


@pytest.mark.parametrize("dtype", SEEN)
def test_no_change_is_missed(dtype: str) -> None:
    for change in changes(dtype):
        changed, lost = missed(change, dtype, 300)
        assert changed > 250
        assert lost == 0, change


@pytest.mark.prove
@pytest.mark.parametrize("dtype", SEEN)
@pytest.mark.promise("fingerprint")
def test_of_100_000_changes_none_is_missed(dtype: str, figure: Any) -> None:
    found = [missed(change, dtype, 100_000) for change in changes(dtype)]
    changed, lost = map(sum, zip(*found, strict=True))
    figure(f"{dtype}: {lost} of {changed:,} changes of {len(found)} kinds missed")
    assert lost == 0


def changes(dtype: str) -> list[Any]:
    floats = np.issubdtype(DTYPES[dtype], np.floating) or dtype == "bfloat16"
    return [*CHANGES, *(BEFORE if floats else ())]


# ---------------------------------------------------------------------------------- what it takes


@pytest.mark.parametrize(
    ("shape", "axis"), [((256, 40_000), 0), ((40_000, 256), -1), ((1 << 23,), ())]
)
def test_no_array_of_the_size_of_a_weight_is_made(shape: Any, axis: Any, numpy_path: Path) -> None:
    array = np.ones(shape, np.float32)
    if fingerprint._PIECE == 100:
        pytest.skip("pieces of 100 words take minutes for so many")
    numpy_path(array[:1], explicit_axis((), array[:1].shape, "w"))  # compiled
    tracemalloc.start()
    numpy_path(array, explicit_axis(axis, shape, "w"))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 40 << 20


def test_torch_takes_pieces_of_64_mib() -> None:
    torch = pytest.importorskip("torch", reason="not installed: an extra of its own")
    from torch.utils._python_dispatch import TorchDispatchMode

    from tb_pastnet.torch.fingerprint import by_operations

    class Largest(TorchDispatchMode):
        size = 0

        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            made = func(*args, **(kwargs or {}))
            if isinstance(made, torch.Tensor) and made._base is None:
                self.size = max(self.size, made.nbytes)
            return made

    weight = torch.ones(2500, 4096, dtype=torch.bfloat16)
    with Largest() as largest:
        by_operations(weight, explicit_axis(0, weight.shape, "w"))
    assert 0 < largest.size <= 64 << 20


@pytest.mark.parametrize("axis", [0, -1, ()])
def test_jax_takes_pieces_of_64_mib(axis: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    jnp = pytest.importorskip("jax.numpy", reason="not installed: an extra of its own")
    from tb_pastnet.jax import fingerprint as own

    taken, whole = [], own._sums

    def counted(*arguments: Any) -> Any:
        memory = whole.lower(*arguments).compile().memory_analysis()
        taken.append(memory.temp_size_in_bytes + memory.output_size_in_bytes)
        return whole(*arguments)

    monkeypatch.setattr(own, "_sums", counted)
    weight = jnp.ones((2500, 4096), jnp.bfloat16)
    own.by_operations(weight, explicit_axis(axis, weight.shape, "w"))
    assert len(taken) > 1
    assert max(taken) <= 64 << 20
