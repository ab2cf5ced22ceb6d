"""Commands on masks, and the audit of what they hold, of a framework of NumPy arrays."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tb_pastnet.core import pruning_rules
from tb_pastnet.core.axes import explicit_axis
from tb_pastnet.errors import InvalidArgument, UnknownName
from tb_pastnet.record.audit.causes import DECLARED, Facts
from tb_pastnet.record.audit.freeze_audit import Audit, AuditSource, CauseFinder, Channels
from tb_pastnet.record.masks.commands import MaskCommands, unmaskable
from tb_pastnet.record.masks.mask_table import MaskRegistry, MaskTable
from tb_pastnet.record.weight import Weight

KERNEL, BIAS, MEAN = "dense/kernel", "dense/bias", "norm/moving_mean"


class ArrayWeight(Weight):
    def __init__(self, name, array, *, statistic=False):
        axis = explicit_axis(-1, array.shape, name)
        super().__init__(name, array.shape, array.dtype.name, axis, statistic=statistic)
        self.array = array

    def read(self):
        return self.array


class ArrayMasks:
    """The masks of an array, and its value when they were set."""

    def __init__(self, weight):
        self.variable = weight
        self.kept = self.trainable = np.ones(weight.shape, bool)
        self.enforced, self.generation = True, 0
        weight.stored = self

    def read(self):
        return self.kept, self.trainable

    def write(self, kept, trainable):
        self.kept, self.trainable = kept, trainable
        self.reference = np.where(kept, self.variable.array, 0)


class Zeroing:
    """Sets what is pruned to zero, and remembers which slots to clear."""

    def __init__(self):
        self.cleared = []

    def enforce_now(self, masks):
        masks.variable.array[~masks.kept] = 0

    def clear_slots(self, variable, where):
        self.cleared.append((variable.name, int(where.sum())))


class Commands(MaskCommands):
    def __init__(self, weights, **settings):
        self.table, self.enforcer = MaskTable(weights, MaskRegistry(), ArrayMasks), Zeroing()
        super().__init__(self.table, self.enforcer, **settings)


@pytest.fixture
def weights():
    kernel = np.array([[1, -2, 3], [-4, 5, -6.0]], np.float32)
    return [
        ArrayWeight(KERNEL, kernel),
        ArrayWeight(BIAS, np.ones(3, np.float32)),
        ArrayWeight(MEAN, np.zeros(3, np.float32), statistic=True),
    ]


@pytest.fixture
def masks(weights):
    return Commands(weights)


def test_prune_and_regrow(masks, weights):
    masks.prune(KERNEL, channels=[1])
    masks.prune("kernel", [[0, 1, 1], [1, 1, 1]])
    assert weights[0].array.tolist() == [[0, 0, 3], [-4, 0, -6]]
    assert masks.kept["kernel"].tolist() == [[False, False, True], [True, False, True]]
    assert masks.trainable[KERNEL].all()
    assert (masks.sparsity(), masks.sparsity(BIAS), masks.zeros()) == (0.5, 0, 0.5)
    masks.regrow(KERNEL, [[1, 0, 0], [1, 0, 0]])
    assert masks.enforcer.cleared == [(KERNEL, 1)]
    masks.regrow(KERNEL)
    assert masks.enforcer.cleared[1:] == [(KERNEL, 2)]
    assert masks.kept[KERNEL].all()


def test_freeze_and_thaw(masks):
    masks.freeze(KERNEL, channels=[0, 2])
    masks.prune(KERNEL, channels=[0])
    assert masks.trainable[KERNEL].tolist() == [[True, True, False]] * 2
    masks.thaw(KERNEL, channels=[2])
    assert masks.trainable[KERNEL].all()
    masks.freeze(BIAS)
    assert not masks.trainable["bias"].any()
    assert masks.table.version == 4


def cells_of(masks):
    cells = re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", masks._repr_html_())
    return [cells[first : first + 6] for first in range(0, len(cells), 6)]


def test_a_notebook_shows_kernels_and_what_is_held(masks):
    masks.prune(KERNEL, channels=[1])
    assert cells_of(masks) == [
        ["weight", "shape", "elements", "sparsity", "pruned", "frozen"],
        [KERNEL, "(2, 3)", "6", "33.3%", "2", "0"],
    ]
    masks.freeze(BIAS)
    assert cells_of(masks)[2:] == [[BIAS, "(3,)", "3", "0.0%", "0", "3"]]


def test_below_a_threshold_smallest_and_in_blocks(masks, weights):
    masks.prune_below(KERNEL, 2)
    assert masks.kept[KERNEL].sum() == 5
    masks.prune_smallest(0.5)
    assert weights[0].array.tolist() == [[0, 0, 0], [-4, 5, -6]]
    masks.regrow(KERNEL)
    weights[0].array[:] = [[1, -2, 3], [-4, 5, -6]]
    masks.prune_blocks(KERNEL, 1, 2)
    assert weights[0].array.tolist() == [[0, 0, 0], [-4, 5, -6]]


def test_any_rule_reaches_every_way_of_pruning(masks):
    def last(weights, sparsity, **options):
        def score(rows, kept):
            return np.arange(len(rows), 0, -1.0)

        return pruning_rules.smallest(weights, sparsity, score=score, **options)

    masks._prune_by(last, None, 0.5)
    assert masks.kept[KERNEL].tolist() == [[True] * 3, [False] * 3]
    with masks._at_once():
        masks._edited(BIAS).prune_by(last, 1 / 3)
    assert masks.kept[BIAS].tolist() == [True, True, False]


def test_the_path_of_a_layer_means_its_variables(masks):
    masks.freeze("dense")
    assert not masks.trainable[KERNEL].any()
    assert not masks.trainable[BIAS].any()
    masks.prune_below("dense", 2.5)
    assert masks.kept[KERNEL].tolist() == [[False, False, True], [True, True, True]]
    assert masks.kept[BIAS].all()
    with pytest.raises(UnknownName, match="expected something that fits one, got 2"):
        masks.prune("dense", np.ones((2, 3)))


def test_a_command_changes_all_weights_of_a_layer_or_none(weights):
    narrow = ArrayWeight("dense/narrow/kernel", np.ones((3, 1), np.float32))
    masks = Commands([*weights, narrow])
    with pytest.raises(InvalidArgument, match="'dense/narrow/kernel': expected some of its 3"):
        masks.prune("dense", channels=[0])
    assert not masks.table.masked
    masks.regrow("dense")
    assert not masks.table.masked


def test_freezing_a_layer_leaves_out_what_is_pruned(masks):
    masks.prune(BIAS, [0, 1, 0])
    masks.freeze("dense", channels=[0])
    assert masks.trainable[KERNEL].tolist() == [[False, True, True]] * 2
    masks.prune(BIAS, [0, 0, 0])
    masks.freeze("dense")
    assert not masks.trainable[KERNEL].any()
    assert masks.trainable[BIAS].all()
    with pytest.raises(InvalidArgument, match="expected weights that aren't pruned, got 3"):
        masks.freeze(BIAS)


def test_a_layer_of_statistics_is_refused_with_what_freezes_it(masks):
    with pytest.raises(InvalidArgument, match=r"got a statistic .* set layer\.trainable = False"):
        masks.freeze("norm")


def test_what_changes_nothing_makes_no_masks(masks):
    masks.regrow(KERNEL)
    masks.thaw(MEAN)
    masks.prune_below(MEAN, 0)
    assert (dict(masks.table.masked), masks.table.version) == ({}, 0)


@pytest.mark.parametrize(
    ("command", "text"),
    [
        (lambda m: m.prune(MEAN, [0, 1, 1]), "a weight that an optimizer trains, got a statistic"),
        (lambda m: m.prune_smallest(0.5, variables=[KERNEL, MEAN]), "Could not mask 'norm/moving"),
        (lambda m: m.prune(KERNEL), "expected either kept= or channels=, got none"),
        (
            lambda m: m.regrow(KERNEL, [[1]], [0]),
            "not regrow .* either kept= or channels=, got both",
        ),
        (lambda m: m.thaw(KERNEL, [[1]], [0]), "Could not thaw .* either trainable= or channels="),
        (lambda m: m.freeze(KERNEL, [[1]], [0]), "either trainable= or channels=, got both"),
        (lambda m: m.prune(KERNEL, channels=[0, 1, 2]), "of its 6 weights to stay, got none"),
        (lambda m: m.prune(BIAS, [1, 2, 1]), "expected only 0 and 1, got 1 other values"),
    ],
)
def test_refusals_change_nothing(masks, weights, command, text):
    old = weights[0].array.copy()
    with pytest.raises(InvalidArgument, match=text):
        command(masks)
    assert (weights[0].array == old).all()
    assert not masks.table.masked


def test_all_of_a_bias_may_be_pruned_and_is_not_frozen_then(masks):
    masks.prune(BIAS, channels=[0, 1, 2])
    with pytest.raises(InvalidArgument, match="got 3 that are all pruned"):
        masks.freeze(BIAS, [0, 0, 0])
    with pytest.raises(UnknownName):
        masks.freeze("beta")


def test_what_a_framework_can_not_hold(weights):
    def refuse(weight):
        raise unmaskable(weight.name, "an array", "a mirage", "Look twice.")

    masks = Commands(weights, refuse=refuse)
    with pytest.raises(InvalidArgument, match="expected an array, got a mirage. Look twice"):
        masks.freeze(KERNEL)


class Held:
    """An array that is held, compared with what it was."""

    flagged = False

    def __init__(self, weight):
        self.name, self.axis, self.weight = weight.name, weight.axis, weight

    def follow(self, masks, *, flagged):
        self.masks = masks
        return True

    def channels(self):
        held = ~(self.masks.kept & self.masks.trainable)
        values = self.axis.split(np.where(held, self.weight.array, 0))
        expected = self.axis.split(np.where(held, self.masks.reference, 0))
        size = abs(values - expected)
        prints = (array.view(np.int32).sum(1, dtype=np.int64) for array in (values, expected))
        return Channels((size > 0).sum(1), self.axis.split(held).sum(1), size.max(1), *prints)


class Causes(CauseFinder):
    def facts(self, held, channels):
        return Facts(held_by=DECLARED, assigned=True)


class Source(AuditSource):
    def __init__(self, weights):
        self.weights = [weight for weight in weights if not weight.statistic]
        self.causes = Causes()

    def held(self, weight):
        return Held(weight)

    def moved(self, held):
        return [bool(weight.channels().differ.any()) for weight in held]


def test_an_audit_sees_what_moves_until_it_is_back(masks, weights):
    audit = Audit(Source(weights), lambda: masks.table)
    kernel = weights[0].array
    assert audit.check(1) == []
    masks.freeze(KERNEL, channels=[2])
    kernel[0] += 1
    (found,) = audit.check(2)
    assert (found.variable, found.channel, found.elements, found.held) == (KERNEL, 2, 1, 2)
    assert (found.first_step, found.largest, found.cause) == (2, 1, "loaded")
    assert audit.check(3) == []
    kernel[0] -= 1
    assert audit.check(4) == []
    kernel[1, 2] = 0
    assert [each.first_step for each in audit.check(5)] == [5]
    assert [(each.first_step, each.last_step) for each in audit.violations] == [(2, 2), (5, 5)]
    masks.thaw(KERNEL)
    assert audit.check(6) == []


class Looks:
    """An observer that counts."""

    def __init__(self):
        self.count = 0

    def look(self):
        self.count += 1


def test_a_command_tells_of_its_changes_once_even_if_it_fails():
    registry, looks = MaskRegistry(), Looks()
    registry.observed_by(looks.look)
    registry.changed()
    assert looks.count == 1
    with registry.together():
        with registry.together():
            registry.changed()
            registry.changed()
        assert (looks.count, registry.version) == (1, 3)
    assert looks.count == 2

    def change_and_fail():
        with registry.together():
            registry.changed()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        change_and_fail()
    assert looks.count == 3
    with registry.together():
        pass
    assert looks.count == 3


def test_a_rule_that_prunes_several_weights_is_one_change():
    weights = [ArrayWeight(f"{at}/kernel", np.arange(1.0, 7).reshape(2, 3)) for at in range(3)]
    registry, looks = MaskRegistry(), Looks()
    table = MaskTable(weights, registry, ArrayMasks)
    registry.observed_by(looks.look)
    MaskCommands(table, Zeroing()).prune_smallest(0.5)
    assert all(not table.read(weight.name)[0].all() for weight in weights)
    assert looks.count == 1


@pytest.mark.parametrize(
    "prune",
    [
        lambda masks: masks.prune_below("*", 3.5),
        lambda masks: masks.prune_blocks("*", 1, 4),
    ],
    ids=["below", "blocks"],
)
def test_a_rule_that_one_weight_refuses_prunes_none(prune):
    first = ArrayWeight("a/kernel", np.arange(8, dtype=np.float32).reshape(4, 2))
    second = ArrayWeight("b/kernel", np.ones((2, 3), np.float32))
    masks = Commands([first, second])
    with pytest.raises(InvalidArgument, match="'b/kernel'"):
        prune(masks)
    assert (masks.sparsity(), dict(masks.table.masked)) == (0, {})
    assert np.count_nonzero(first.array) == 7


def test_what_masks_can_not_hold_is_not_ranked_with_others(masks):
    with pytest.raises(InvalidArgument, match=f"Could not mask '{MEAN}'"):
        masks.prune_smallest(0, variables=[KERNEL, MEAN])
