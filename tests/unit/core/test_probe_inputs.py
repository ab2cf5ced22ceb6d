"""Names of the inputs of a probe, and which batches are refused with which words."""

import re

import pytest

from tb_pastnet.core.probe_inputs import named_leaves, refused, sample_count
from tb_pastnet.errors import InvalidArgument


def test_leaves_are_named_by_their_path_in_the_order_of_keys():
    nest = {"b": (1, [2]), "a": {"x": 4}}
    assert named_leaves(nest) == [("a/x", 4), ("b/0", 1), ("b/1/0", 2)]
    assert named_leaves(5) == [("", 5)]
    assert named_leaves([]) == []


def test_samples_are_those_along_the_first_axis():
    assert sample_count([("", (7,))], "array") == 7
    assert sample_count([("x", (4, 2)), ("y", (4, 3, 1))], "dict") == 4


@pytest.mark.parametrize(
    ("shapes", "words"),
    [
        ([], "expected at least one array or tensor, got a dict without one"),
        ([("", ())], "expected samples along the first axis, got shape ()."),
        ([("x", (0, 3))], "expected samples along the first axis, got shape (0, 3) in 'x'"),
        ([("x", (2,)), ("y", (2, 0))], "expected samples along the first axis, got shape (2, 0)"),
        ([("x", (2,)), ("y", (3,))], "expected 2 samples in each input, got shape (3,) in 'y'"),
    ],
)
def test_a_batch_that_fits_nowhere_is_refused(shapes, words):
    with pytest.raises(InvalidArgument, match=re.escape(words)):
        sample_count(shapes, "dict")


def test_a_refusal_says_what_to_pass():
    assert "Pass a fixed batch" in str(refused("a", "b"))
