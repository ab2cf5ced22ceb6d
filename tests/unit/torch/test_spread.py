"""Weights that ranks share: they train as without a recorder, and the log is that of one rank."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import tb_pastnet as pastnet
from tb_pastnet.core.quantize import PRECISION
from tb_pastnet.core.statistics import STATISTICS

torch = pytest.importorskip("torch", reason="torch isn't installed: an extra of its own")

from torch import nn  # noqa: E402

from tb_pastnet.torch.module_weights import network_of  # noqa: E402
from tb_pastnet.torch.spread import Ranks, parts_of  # noqa: E402


@pytest.fixture
def only_rank(tmp_path, monkeypatch):
    if not torch.distributed.is_available():
        pytest.skip("this torch has no workers")
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    meeting = f"file://{tmp_path}/meet"
    torch.distributed.init_process_group("gloo", init_method=meeting, rank=0, world_size=1)
    yield Ranks()
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


def test_one_rank_has_its_own(only_rank):
    sums, largest = np.array([[1, -2]]), np.array([0.5, -np.inf])
    only_rank.total(sums)
    only_rank.maximum(largest)
    assert only_rank.count == 1
    assert (sums.tolist(), largest.tolist()) == ([[1, -2]], [0.5, -np.inf])
    assert only_rank.all(("a", 1)) == [("a", 1)]


def test_leaving_twice_or_after_the_training_ended_its_groups_is_no_error(only_rank):
    torch.distributed.destroy_process_group()
    assert only_rank.leave() is None
    assert only_rank.leave() is None


LAYERS = {
    "rows": (lambda: nn.Linear(3, 5), None),
    "units": (lambda: nn.LSTM(3, 5), None),
    "heads": (lambda: nn.MultiheadAttention(6, 2, add_bias_kv=True), None),
    "groups": (lambda: nn.ConvTranspose2d(4, 6, 3, groups=2), None),
    "outputs that come second": (lambda: nn.ConvTranspose1d(4, 6, 3), None),
    "columns": (lambda: nn.Linear(3, 5), {"weight": 1}),
    "elements": (lambda: nn.Linear(3, 5), {"weight": (1, 0)}),
    "a whole weight": (lambda: nn.Linear(3, 5), {"weight": ()}),
}


def shards(whole, axis, rank, ranks):
    """Stands for a DTensor: what one rank sees of it."""
    chunks = whole.detach().chunk(ranks, axis)
    local = chunks[rank] if rank < len(chunks) else whole.detach().narrow(axis, 0, 0)
    mesh = SimpleNamespace(ndim=1, shape=(ranks,), size=lambda: ranks, get_local_rank=lambda: rank)
    placement = SimpleNamespace(dim=axis, is_shard=lambda: True, is_partial=lambda: False)
    tensor = SimpleNamespace(shape=whole.shape, ndim=whole.ndim, to_local=lambda: local)
    tensor.device_mesh, tensor.placements, tensor.detach = mesh, (placement,), lambda: tensor
    return tensor


def channels_on_ranks(weight, axis, ranks):
    """Of each rank the elements, by number, that it has of each channel."""
    owner, key = weight.entry.owner, weight.entry.key
    whole = owner._parameters[key]
    numbers = torch.arange(whole.numel()).reshape(whole.shape)
    for rank in range(ranks):
        owner._parameters[key] = shards(numbers, axis, rank, ranks)
        part = parts_of([weight], ranks, first=rank == 0)[weight.name]
        rows = part.weight.axis.split(owner._parameters[key].to_local().numpy())
        owner._parameters[key] = whole
        assert part.weight.shape == tuple(shards(numbers, axis, rank, ranks).to_local().shape)
        channels = [[] for _ in range(part.total)]
        for channel, row in zip(part.channels, rows, strict=True):
            channels[channel] += row.tolist()
        yield channels


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("ranks", [1, 2, 3, 8])
def test_ranks_together_have_each_channel_whole_and_no_element_twice(name, ranks):
    make, axes = LAYERS[name]
    for weight in network_of(make(), channel_axes=axes).weights:
        numbers = np.arange(np.prod(weight.shape)).reshape(weight.shape)
        for axis in range(len(weight.shape)):
            united = [[] for _ in range(weight.axis.channels)]
            for channels in channels_on_ranks(weight, axis, ranks):
                united = [mine + own for mine, own in zip(united, channels, strict=True)]
            expected = np.sort(weight.axis.split(numbers), axis=1).tolist()
            assert [sorted(channel) for channel in united] == expected, (weight.name, axis)


def test_rows_of_a_rank_are_whole_channels():
    (weight, _) = network_of(nn.Linear(3, 5)).weights
    first, second = channels_on_ranks(weight, 0, 2)
    assert [len(channel) for channel in first] == [3, 3, 3, 0, 0]
    assert [len(channel) for channel in second] == [0, 0, 0, 3, 3]


def test_what_is_not_spread_counts_on_the_first_rank_alone():
    weights = network_of(nn.Linear(3, 5)).weights
    assert list(parts_of(weights, 2, first=True)) == ["weight", "bias"]
    assert parts_of(weights, 2, first=False) == {}


STEPS = [1, 2, 4, 6, 7]


@pytest.fixture(scope="module")
def trained(trained_by_ranks):
    kinds = ("sharded", "sharded:plain", "copies", "copies:plain", "alone")
    return trained_by_ranks(*kinds)


@pytest.fixture(scope="module")
def troubled(trained_by_ranks):
    return trained_by_ranks("failing", "back", "parallel", "chosen")


def values(trained, kind, rank=0, *, recorded=True):
    return dict(np.load(trained.folder / f"{kind}.{recorded}.{rank}.npz"))


def log(folder):
    (run,) = pastnet.read(folder).runs.values()
    return run


def by_channels(name, value):
    """A row for each channel of a weight, as torch's documentation has its axes."""
    if name.startswith("gates/"):  # 4 gates of 4 units, one gate behind the other
        return value.reshape(4, 4, -1).swapaxes(0, 1).reshape(4, -1)
    if name.startswith("heads/in_proj"):  # query, key and value of 2 heads of 3 outputs each
        return value.reshape(3, 2, 3, -1).swapaxes(0, 1).reshape(2, -1)
    if name == "heads/out_proj/weight":  # its inputs come from the heads
        return value.reshape(6, 2, 3).swapaxes(0, 1).reshape(2, -1)
    if name == "groups/weight":  # (inputs, outputs of a group, 3), 2 groups
        return value.reshape(2, 2, 1, 3).swapaxes(1, 2).reshape(2, -1)
    return value.reshape(len(value), -1)


@pytest.mark.parametrize("kind", ["sharded", "copies"])
@pytest.mark.parametrize("rank", [0, 1])
def test_training_is_bit_for_bit_that_without_a_recorder(trained, kind, rank):
    plain, recorded = (values(trained, kind, rank, recorded=flag) for flag in (False, True))
    assert {name: plain[name].tobytes() for name in plain} == {
        name: recorded[name].tobytes() for name in recorded
    }


def test_only_rank_0_writes_and_nothing_fails(trained):
    notes = "Statistics of frozen layers"
    for rank, done in enumerate(trained.done):
        assert done["sharded"]["records"] == (0 if rank else len(STEPS))
        assert not [text for text in done["sharded"]["notes"] if notes not in text]


def test_the_log_is_that_of_the_same_training_on_one_rank(trained):
    sharded, alone = log(trained.folder / "sharded"), log(trained.folder / "alone")
    one_rank, ranks = values(trained, "alone"), values(trained, "sharded")
    assert {name: ranks[name].tobytes() for name in ranks} == {
        name: one_rank[name].tobytes() for name in one_rank
    }
    assert sharded.steps.tolist() == alone.steps.tolist() == STEPS
    assert list(sharded.variables) == list(alone.variables)
    for name, variable in alone.variables.items():
        # Sums of channels that lie on several ranks may be rounded to the next code.
        several = name.startswith(("gates", "heads", "columns", "groups"))
        for row in STATISTICS:
            np.testing.assert_allclose(
                getattr(sharded.variables[name], row),
                getattr(variable, row),
                rtol=2 * PRECISION if several else 0,
                err_msg=f"{row} of {name}",
            )


def test_sketches_are_those_of_the_same_training_on_one_rank(trained):
    sharded, alone = (
        log(trained.folder / kind)._reader.sketches() for kind in ("sharded", "alone")
    )
    assert sharded.variables == alone.variables
    assert sharded.steps.tolist() == alone.steps.tolist() == STEPS
    apart = np.linalg.norm(sharded.values - alone.values, axis=2)
    assert (apart <= 1e-6 * np.linalg.norm(alone.values, axis=2) + 8 * alone.grid).all()


def test_copies_give_the_log_of_one_rank(trained):
    copies, alone = log(trained.folder / "copies"), log(trained.folder / "alone")
    assert list(copies.variables) == list(alone.variables)
    until_it_freezes = slice(3)
    for name, variable in alone.variables.items():
        for row in STATISTICS:
            np.testing.assert_array_equal(
                np.asarray(getattr(copies.variables[name], row))[until_it_freezes],
                np.asarray(getattr(variable, row))[until_it_freezes],
            )


def test_numbers_are_those_of_the_whole_weights(trained):
    compare_with_numpy(log(trained.folder / "sharded"), values(trained, "sharded"), STEPS)


def test_tensor_parallelism_is_recorded_alike(troubled):
    assert troubled.done[0]["parallel"] == {"records": 3, "notes": {}}
    run = log(troubled.folder / "parallel")
    assert list(run.variables) == [
        f"{layer}/{key}" for layer in "023" for key in ("weight", "bias")
    ]
    compare_with_numpy(run, values(troubled, "parallel"), [1, 2, 3])


def test_where_no_chosen_weight_is_sharded_rank_0_records_alone(troubled):
    assert [done["chosen"] for done in troubled.done] == [
        {"records": 1, "notes": {}},
        {"records": 0, "notes": {}},
    ]


def compare_with_numpy(run, saved, steps):
    assert run.steps.tolist() == steps
    for name, variable in run.variables.items():
        key = name.replace("/", ".")
        for place, step in enumerate(steps):
            now, past = (
                by_channels(name, saved[f"{number}/{key}"].astype(np.float64))
                for number in (step, step - 1)
            )
            expected = {
                "norm": np.sqrt((now**2).sum(1)),
                "past_norm": np.sqrt((past**2).sum(1)),
                "delta_norm": np.sqrt(((now - past) ** 2).sum(1)),
                "delta_max": abs(now - past).max(1),
                "changed": (now != past).mean(1),
                "nonfinite": (~np.isfinite(now)).sum(1),
            }
            for row, numbers in expected.items():
                recorded = np.asarray(getattr(variable, row))[place]
                np.testing.assert_allclose(
                    recorded, numbers, rtol=1.01 * PRECISION, err_msg=f"{row} of {name} at {step}"
                )


def test_a_rank_that_fails_leaves_its_rows_without_numbers_and_no_rank_waits(troubled):
    first, second = (done["failing"] for done in troubled.done)
    assert first == {
        "records": 4,
        "notes": {
            "Could not measure the rows of another rank": 1,
            "Could not make a record: MemoryError: no room": 1,
        },
    }
    assert second["notes"] == {
        "Could not measure the rows of this rank: MemoryError: no room": 1,
    }
    run = log(troubled.folder / "failing")
    assert run.steps.tolist() == [1, 2, 4, 8]
    for row in ("norm", "past_norm", "delta_norm", "delta_max", "changed", "nonfinite"):
        numbers = np.asarray(getattr(run.variables["weight"], row), float)
        assert np.isnan(numbers[2]).tolist() == [False, False, True, True], row
        assert np.isfinite(numbers[[0, 1, 3]]).all(), row


def test_steps_that_go_back_and_past_values_by_hand(troubled):
    run = log(troubled.folder / "back")
    assert troubled.done[0]["back"] == {"records": 7, "notes": {}}
    assert run.steps.tolist() == [1, 2, 4, 6, 11, 12]
    assert np.isfinite(np.asarray(run.variables["weight"].delta_norm)).all()


@pytest.fixture(scope="module")
def runs(trained):
    return {kind: log(trained.folder / kind) for kind in ("sharded", "alone")}


def facts(violation):
    return (
        *(violation.variable, violation.channel, violation.first_step, violation.last_step),
        *(violation.elements, violation.held, violation.largest),
    )


def test_violations_are_those_of_one_rank(runs):
    sharded, alone = (sorted(map(facts, runs[kind].violations)) for kind in ("sharded", "alone"))
    assert sharded == alone
    assert {each[:2] for each in sharded} == {
        *(("rows/weight", channel) for channel in range(5)),
        *(("rows/bias", channel) for channel in range(5)),
        ("table/weight", 6),
    }


def test_a_row_of_another_rank_is_named_by_its_number_in_the_whole(runs):
    (row,) = [each for each in runs["sharded"].violations if each.variable == "table/weight"]
    assert (row.channel, row.first_step, row.elements, row.held) == (6, 6, 6, 6)
    assert row.largest == pytest.approx(1, rel=1e-6)


def test_causes_are_found_by_the_rows_of_rank_0(runs):
    causes = {each.variable: each.cause for each in runs["sharded"].violations}
    assert causes["rows/weight"] == causes["rows/bias"] == "momentum"
