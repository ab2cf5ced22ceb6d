"""Names of variables."""

import pytest

from tb_pastnet.core import names
from tb_pastnet.core.names import Called, Names
from tb_pastnet.errors import InvalidArgument, UnknownName


@pytest.mark.parametrize(
    ("class_name", "expected"),
    [
        ("Dense", "dense"),
        ("Conv2D", "conv2d"),
        ("MultiHeadAttention", "multi_head_attention"),
        ("LSTM", "lstm"),
        ("ReLU", "re_lu"),
    ],
)
def test_automatic_names_are_those_of_keras(class_name, expected):
    assert names.snake_case(class_name) == expected


def test_unnamed_layers_are_counted_within_their_parent():
    second_model = [("Dense", "dense_4"), ("ReLU", "re_lu_9"), ("Dense", "dense_5")]
    assert names.renumber(second_model) == ["dense", "re_lu", "dense_1"]


def test_chosen_names_stay_and_nothing_collides():
    siblings = [("Dense", "a"), ("Dense", "dense_3"), ("Mine", "dense"), ("Dense", "a")]
    found = names.renumber(siblings)
    assert found == ["a", "dense_1", "dense", "a_1"]
    assert names.renumber([]) == []


def test_a_suffix_that_fits_one_variable_is_its_name():
    known = ["block/conv1/kernel", "block/conv1/bias", "head/kernel"]
    assert names.resolve("head/kernel", known) == "head/kernel"
    assert names.resolve("conv1/kernel", known) == "block/conv1/kernel"
    assert names.resolve("bias", known) == "block/conv1/bias"


def test_a_name_that_fits_several_is_refused():
    with pytest.raises(UnknownName, match=r"got 2 with this ending: a/kernel, b/kernel\. Write"):
        names.resolve("kernel", ["a/kernel", "b/kernel"])


def test_a_name_that_fits_nothing_is_refused():
    with pytest.raises(UnknownName, match="expected one of a/kernel, got no match"):
        names.resolve("ernel", ["a/kernel"])
    with pytest.raises(UnknownName, match="expected one of none at all"):
        names.resolve("x", [])
    many = [f"v{i}" for i in range(9)]
    with pytest.raises(UnknownName, match="v7, …, got no match"):
        names.resolve("x", many)


def test_the_nearest_names_are_told_first():
    known = [f"block_{i}/dense/{kind}" for i in range(20) for kind in ("kernel", "bias")]
    for typo in ("block_17/dens/kernel", "block_17/dense/kernal"):
        with pytest.raises(UnknownName, match="expected one of block_17/dense/kernel, "):
            names.resolve(typo, known)
    with pytest.raises(
        UnknownName, match=r"expected one of block_0/dense/bias, block_1/dense/bias, .*, …"
    ):
        names.resolve("bios", known)
    deep = ["head/bias", "backbone/of_many_stages/and_blocks/head/kernel"]
    with pytest.raises(UnknownName, match="expected one of backbone/of_many_stages"):
        names.resolve("head/kernal", deep)


KERNEL, SECOND, INNER = object(), object(), object()

# A second model of a process: Keras counts on, the log from the first.
NAMES = Names(
    {
        "dense/kernel": Called((4, 2), ("dense_1/kernel",), (KERNEL,)),
        "dense_1/kernel": Called((2, 3), ("dense_2/kernel",), (SECOND,)),
        "inner/dense/kernel": Called((3, 3), ("inner/dense_5/kernel", "dense_5/kernel"), (INNER,)),
        "inner/dense/bias": Called((3,), ("inner/dense_5/bias", "dense_5/bias"), (INNER,)),
    }
)


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ("dense/kernel", "dense/kernel"),
        ("dense_2/kernel", "dense_1/kernel"),
        ("dense_5/kernel", "inner/dense/kernel"),
        ("inner/dense/bias", "inner/dense/bias"),
        ("bias", "inner/dense/bias"),
        (KERNEL, "dense/kernel"),
        ([SECOND], "dense_1/kernel"),
        ("*/bias", "inner/dense/bias"),
    ],
)
def test_a_variable_goes_by_either_name_and_by_itself(wanted, expected):
    assert NAMES.one(wanted) == expected
    assert NAMES.all(wanted) == [expected]


def test_two_readings_are_an_error_with_both():
    text = r"got 2, .*: dense/kernel \(4, 2\), .*_1/kernel, dense_1/kernel \(2, 3\), .*_2/kernel"
    with pytest.raises(UnknownName, match=text):
        NAMES.one("dense_1/kernel")
    with pytest.raises(UnknownName, match="only by one of them: dense/kernel"):
        NAMES.all("dense_[1-3]/*")


def test_layers_patterns_and_lists_give_all_in_the_order_of_the_network():
    assert NAMES.all([INNER, "dense/kernel"]) == [
        "dense/kernel",
        "inner/dense/kernel",
        "inner/dense/bias",
    ]
    assert NAMES.groups([INNER, ["dense/kernel"]]) == [
        ["inner/dense/kernel", "inner/dense/bias"],
        ["dense/kernel"],
    ]
    assert NAMES.all("*/kernel") == ["dense/kernel", "dense_1/kernel", "inner/dense/kernel"]
    assert NAMES.all([]) == []


def test_a_pattern_that_fits_none_is_a_slip():
    with pytest.raises(
        UnknownName, match="fits some of dense/kernel, dense_1/kernel, .* fits none"
    ):
        NAMES.all(["dense/kernel", "*nothing*"])


def test_a_layer_with_several_is_no_single_variable():
    with pytest.raises(
        UnknownName, match=r"expected something that fits one, got 2: inner/dense/kernel"
    ):
        NAMES.one(INNER)
    with pytest.raises(UnknownName, match="expected something that fits one, got 0: none at all"):
        NAMES.one([])


def test_what_is_written_like_a_pattern_may_be_a_name():
    names = Names(dict.fromkeys(["b[1]/kernel", "b1/kernel", "b1/bias"], Called()))
    assert names.all("b[1]/kernel") == names.all("b[1]") == ["b[1]/kernel"]
    assert names.all("b[12]/*") == ["b1/kernel", "b1/bias"]


@pytest.mark.parametrize("wanted", ["a/w", "w", "a/b/w"])
def test_a_whole_path_comes_before_the_end_of_another(wanted):
    names = Names(dict.fromkeys(["a/b/w", "b/a/w", "a/w", "w"], Called()))
    assert names.all(wanted) == [wanted]


@pytest.mark.parametrize(
    ("foreign", "got"), [(object(), "object"), (3, "int"), ([KERNEL, object()], "object")]
)
def test_what_is_not_of_the_network_is_refused(foreign, got):
    text = f"expected a variable or layer of this network, or a name, got another {got}. Choose "
    with pytest.raises(InvalidArgument, match=text):
        NAMES.all(foreign)


def test_what_is_given_by_what_a_user_calls_variables_goes_by_their_names():
    given = {KERNEL: 0, "*/bias": (0,), "dense_2/kernel": -1}
    expected = {"dense/kernel": 0, "inner/dense/bias": (0,), "dense_1/kernel": -1}
    assert NAMES.keyed(given, "channel_axis") == expected
    assert NAMES.keyed(None, "channel_axis") == {}
    with pytest.raises(InvalidArgument, match=r"read channel_axis=: .*mapping from names, got -1"):
        NAMES.keyed(-1, "channel_axis")


@pytest.mark.parametrize("name", ["inner", "inner/dense", "inner/dense_5", "dense_5"])
def test_the_path_of_a_layer_is_all_of_its_variables(name):
    assert NAMES.all(name) == ["inner/dense/kernel", "inner/dense/bias"]
    with pytest.raises(UnknownName, match="by '.*': expected something that fits one, got 2"):
        NAMES.one(name)


def test_a_layer_goes_by_its_name_in_the_log_or_in_the_framework():
    assert NAMES.all("dense") == ["dense/kernel"]
    assert NAMES.one("dense_2") == "dense_1/kernel"
    with pytest.raises(UnknownName, match="only by one of them: dense/kernel"):
        NAMES.all("dense_1")
    for part in ("inn", "outer", ""):
        with pytest.raises(UnknownName, match=r"Use a variable's path below the model"):
            NAMES.all(part)


def test_a_variable_with_the_name_of_a_layer_wins():
    both = Names({"scale": Called(), "norm/scale": Called(), "scale/kernel": Called()})
    assert both.all("scale") == ["scale"]
    with pytest.raises(UnknownName, match="got 2 with this ending"):
        Names({"a/w": Called(), "b/w": Called(), "w/kernel": Called()}).all("w")


def test_where_nothing_else_reads_layers_their_name_is_answered_with_a_pattern():
    with pytest.raises(UnknownName, match=r"Write 'inner/\*' for all that are in it\."):
        names.resolve("inner", ["inner/kernel", "inner/bias"])


@pytest.mark.parametrize("wanted", ["target", ["target/*"]])
def test_what_follows_may_be_the_layer_itself(wanted):
    assert NAMES.following(INNER) == {"inner/dense/kernel", "inner/dense/bias"}
    with pytest.raises(
        UnknownName, match=r"Could not .*\. Or pass the layer itself: follows=model\.target\.$"
    ):
        NAMES.following(wanted)


def test_a_number_is_no_name():
    with pytest.raises(InvalidArgument, match="a layer by 0: expected its name, got int. Choose"):
        names.resolve(0, ["first"], "layer")


def test_a_name_out_of_the_log_means_only_its_variable():
    # Each has the other's name in its framework.
    called = {"a/w": Called((2,), ("b/w",)), "b/w": Called((2,), ("a/w",))}
    with pytest.raises(UnknownName, match="got 2, counting names in the log and the framework's"):
        Names(called).one("a/w")
    assert Names(called).one(names.LogName("a/w")) == "a/w"
