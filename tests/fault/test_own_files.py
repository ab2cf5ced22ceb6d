"""Snapshots and saved masks that are cut, flipped, hostile, or can't be written."""

from __future__ import annotations

import io
import json
import os
import tracemalloc
import zipfile
from contextlib import contextmanager

import h5py
import keras
import ml_dtypes
import numpy as np
import pytest

import tb_pastnet as pastnet
from tb_pastnet import Snapshot
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.record.masks.packed import Bounds, SavedMasks, load, save
from tests.sampled import sampled

pytestmark = pytest.mark.promise("cut_and_flipped")

RNG = np.random.default_rng(0)
SNAPSHOT = Snapshot(
    {"a/k": RNG.normal(size=(3, 2)).astype(np.float32), "b": np.ones(3, ml_dtypes.bfloat16)},
    (("Adam", (np.array(7), np.float32(0.1) * np.ones(()), RNG.normal(size=3))),),
    7,
    "9c1e" * 8,
)
SHAPE, CHANNELS = (5, 3), 3
MASKS = SavedMasks(RNG.random(SHAPE) > 0.5, RNG.random(SHAPE) > 0.5, np.arange(3, dtype=np.uint32))


def damaged(data, first, every):
    """Each cut and each flipped bit, or every so many of them."""
    cases = [(size, None) for size in range(len(data))]
    cases += [(place, bit) for place in range(len(data)) for bit in range(8)]
    for place, bit in cases[first::every]:
        if bit is None:
            yield data[:place]
        else:
            yield data[:place] + bytes([data[place] ^ 1 << bit]) + data[place + 1 :]


def contents(snapshot):
    arrays = [*snapshot.weights.values(), *(v for _, own in snapshot.optimizers for v in own)]
    facts = [
        snapshot.step,
        snapshot.origin,
        *snapshot.weights,
        *(k for k, _ in snapshot.optimizers),
    ]
    return facts, [(each.dtype.name, each.shape, each.tobytes()) for each in arrays]


def saved_masks():
    return save("9c1e", {"w": MASKS})


def loaded_masks(data):
    bounds = Bounds.of({"w": SHAPE}, CHANNELS)

    def check(name, shape):
        if (name, shape) != ("w", SHAPE):
            raise InvalidArgument("Could not load: another weight")
        return CHANNELS

    origin, masks = load(data, bounds, check, "'a.keras'")
    return origin, {name: [each.tobytes() for each in own] for name, own in masks.items()}


@contextmanager
def most_memory(limit):
    tracemalloc.start()
    try:
        yield
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < limit


@pytest.mark.parametrize(("first", "every"), sampled([(n, 40) for n in range(40)], every=40))
def test_a_damaged_snapshot_is_equal_or_refused(first, every, tmp_path, figure):
    SNAPSHOT.save(tmp_path / "a.npz")
    data, expected = (tmp_path / "a.npz").read_bytes(), contents(SNAPSHOT)
    equal, texts = 0, []
    for bad in damaged(data, first, every):
        (tmp_path / "b.npz").write_bytes(bad)
        try:
            with most_memory(1 << 17):
                assert contents(Snapshot.load(tmp_path / "b.npz")) == expected
            equal += 1
        except InvalidArgument as error:
            texts.append(str(error)[:44])
    assert set(texts) == {"Could not load a snapshot from 'b.npz': expe"}
    ways = f"{equal + len(texts):,} ways"
    figure(f"a snapshot cut or flipped in {ways}: {equal} equal, all others refused")


@pytest.mark.parametrize(("first", "every"), sampled([(n, 20) for n in range(20)], every=20))
def test_damaged_masks_are_equal_or_refused(first, every, figure):
    data = saved_masks()
    equal, texts, expected = 0, [], loaded_masks(data)
    for bad in damaged(data, first, every):
        try:
            with most_memory(1 << 17):
                assert loaded_masks(bad) == expected
            equal += 1
        except InvalidArgument as error:
            texts.append(str(error)[:34])
    assert set(texts) == {"Could not load the masks in 'a.kera"[:34]}
    ways = f"{equal + len(texts):,} ways"
    figure(f"saved masks cut or flipped in {ways}: {equal} equal, all others refused")


def member(values):
    stream = io.BytesIO()
    np.save(stream, values)
    return stream.getvalue()


def zipped(members, how=zipfile.ZIP_DEFLATED):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", how) as archive:
        for name, data in members.items():
            with archive.open(f"{name}.npy", "w") as file:
                if isinstance(data, bytes):
                    file.write(data)
                    continue
                # So many zeros.
                form = {"descr": "|u1", "fortran_order": False, "shape": (data,)}
                np.lib.format.write_array_header_1_0(file, form)
                for _ in range(data >> 20):
                    file.write(bytes(1 << 20))
    return stream.getvalue()


def bombs(size):
    """What one megabyte of masks may inflate to: each array, its header, and the head."""
    bits, sums = np.packbits(np.ones(SHAPE, bool)), np.arange(3, dtype=np.uint32)
    head = np.frombuffer(json.dumps({"origin": "", "variables": {"w": SHAPE}}).encode(), np.uint8)
    good = {"head": head, "kept_0": bits, "through_0": bits, "held_0": sums}
    good = {name: member(values) for name, values in good.items()}
    for name in good:
        yield zipped({**good, name: size})
    claimed = good["kept_0"].replace(b"(2,)", b"(9999999999999,)")
    yield zipped({**good, "kept_0": claimed})
    nested = np.frombuffer(b"[" * 2 + b"[]," * (1 << 21) + b"[]]]", np.uint8)
    yield zipped({**good, "head": member(nested)})
    yield zipped({**good, **{f"other_{n}": b"" for n in range(4096)}})


@pytest.mark.parametrize("size", [1 << 24, pytest.param(1 << 30, marks=pytest.mark.prove)])
def test_nothing_is_inflated_beyond_the_models_shapes(size, tmp_path, figure):
    assert loaded_masks(saved_masks())
    count = 0
    for bomb in bombs(size):
        count += 1
        (tmp_path / "a.npz").write_bytes(bomb)
        with most_memory(1 << 18), pytest.raises(InvalidArgument, match="Could not load the masks"):
            loaded_masks(bomb)
        most = (1 << 18) + 8 * len(bomb)
        with most_memory(most), pytest.raises(InvalidArgument, match="a snapshot from 'a.npz'"):
            Snapshot.load(tmp_path / "a.npz")
    figure(f"{count} files that inflate to {size >> 20:,} MiB: less than 0.25 MiB of memory")


def test_a_snapshot_takes_the_memory_of_its_arrays(tmp_path):
    arrays = {f"w{n}": np.ones(1 << 20, np.float32) for n in range(4)}
    Snapshot(arrays, (), 0, "").save(tmp_path / "a.npz")
    with most_memory(2 * (16 << 20)):
        assert len(Snapshot.load(tmp_path / "a.npz").weights) == 4


@pytest.mark.parametrize("fails", ["write", "fsync", "replace"])
@pytest.mark.parametrize("earlier", [True, False])
def test_a_failed_save_leaves_the_earlier_file(fails, earlier, tmp_path, monkeypatch):
    path = tmp_path / "a.npz"
    if earlier:
        SNAPSHOT.save(path)
    before = {each.name: each.read_bytes() for each in tmp_path.iterdir()}

    def fail(*args, **kwargs):
        raise OSError(28, "No space left on device")

    place = {"write": (np, "savez"), "fsync": (os, "fsync"), "replace": (os, "replace")}[fails]
    monkeypatch.setattr(*place, fail)
    if fails == "replace":
        monkeypatch.setattr("pathlib.Path.replace", fail)
    with pytest.raises(OSError, match="No space"):
        Snapshot({}, (), 0, "").save(path)
    assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == before


def test_a_save_replaces_the_target_of_a_link_and_keeps_its_mode(tmp_path):
    SNAPSHOT.save(tmp_path / "a.npz")
    (tmp_path / "a.npz").chmod(0o640)
    (tmp_path / "link").symlink_to("a.npz")
    Snapshot({}, (), 3, "").save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "a.npz").stat().st_mode & 0o777 == 0o640
    assert Snapshot.load(tmp_path / "a.npz").step == 3
    with pytest.raises(FileNotFoundError):
        Snapshot.load(tmp_path / "nowhere.npz")
    with pytest.raises(IsADirectoryError):
        SNAPSHOT.save(tmp_path)


@pytest.fixture(scope="module")
def keras_file(tmp_path_factory):
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((5,)), keras.layers.Dense(3, name="one")])
    pastnet.Masks(model).prune("one/kernel", channels=[1])
    path = tmp_path_factory.mktemp("model") / "model.keras"
    model.save(path)
    return path


def with_masks(source, path, change):
    """The same .keras file with another data set of masks."""
    with zipfile.ZipFile(source) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    weights = io.BytesIO(members["model.weights.h5"])
    with h5py.File(weights, "r+") as file:
        group = file["_pastnet_masks/vars"]
        data = group["masks"][()]
        del group["masks"]
        change(group, data)
    members["model.weights.h5"] = weights.getvalue()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)


BOMB = next(bombs(1 << 24))
HOSTILE = [
    lambda group, data: group.create_dataset("masks", data=np.frombuffer(BOMB, np.uint8)),
    lambda group, data: group.create_dataset(
        "masks", data=np.zeros(1 << 24, np.uint8), compression="gzip"
    ),
    lambda group, data: group.create_dataset(
        "masks", data=data, maxshape=(None,), chunks=(1 << 24,), compression="gzip"
    ),
    lambda group, data: group.create_dataset("masks", data=data.astype(np.float32)),
    lambda group, data: group.create_dataset("masks", data=data[:-9]),
    lambda group, data: group.create_group("masks"),
]


@pytest.mark.parametrize("change", HOSTILE)
def test_hostile_masks_in_a_model_are_refused(change, keras_file, tmp_path):
    path = tmp_path / "bad.keras"
    with_masks(keras_file, path, lambda group, data: group.create_dataset("masks", data=data))
    assert pastnet.Masks(pastnet.load_model(path)).sparsity("one/kernel") == pytest.approx(1 / 3)
    with_masks(keras_file, path, change)
    with most_memory(1 << 23), pytest.raises(InvalidArgument, match=r"the masks in 'bad.keras'"):
        pastnet.load_model(path)
    # Keras tells of all errors of a file by one of its own.
    model = keras.Sequential([keras.Input((5,)), keras.layers.Dense(3, name="one")])
    masks = pastnet.Masks(model)
    with zipfile.ZipFile(path) as archive:
        (tmp_path / "a.weights.h5").write_bytes(archive.read("model.weights.h5"))
    with most_memory(1 << 23), pytest.raises(ValueError, match="Could not load the masks in"):
        model.load_weights(tmp_path / "a.weights.h5")
    assert masks.sparsity() == 0


@pytest.mark.parametrize("seed", sampled(range(20), every=20))
def test_a_damaged_keras_file_is_equal_or_refused(seed, keras_file, tmp_path, figure):
    data, path = keras_file.read_bytes(), tmp_path / "bad.keras"
    expected = pastnet.load_model(keras_file)
    equal, texts = 0, []
    places = np.random.default_rng(seed).integers(0, len(data) * 9, 20)
    for place in places:
        path.write_bytes(next(damaged(data, int(place), 1)))
        try:
            model = pastnet.load_model(path)
        except InvalidArgument as error:
            texts.append(str(error)[:58])
            continue
        equal += 1
        np.testing.assert_array_equal(
            pastnet.Masks(model).kept["one/kernel"], pastnet.Masks(expected).kept["one/kernel"]
        )
        for now, before in zip(model.get_weights(), expected.get_weights(), strict=True):
            assert now.tobytes() == before.tobytes()
    assert set(texts) == {"Could not load 'bad.keras': expected a .keras file, got a "}
    figure(f"a .keras file damaged in {len(places)} ways: {equal} equal, all others refused")


def test_a_zip_without_stored_arrays_is_no_snapshot(tmp_path):
    np.savez_compressed(tmp_path / "a.npz", head=np.zeros(3, np.uint8))
    with pytest.raises(InvalidArgument, match="deflated arrays"):
        Snapshot.load(tmp_path / "a.npz")
