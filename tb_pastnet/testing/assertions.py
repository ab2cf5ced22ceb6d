"""Assertions about what a piece of a program changes: see `tb_pastnet.testing`."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from tb_pastnet.core.arguments import answered
from tb_pastnet.core.counted import counted
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.testing.bits import Array, as_floats
from tb_pastnet.testing.block_causes import Causes, causes_of
from tb_pastnet.testing.subjects import Tensor, Tensors, chosen, fits_any, is_tree, tensors_in

STILL = "still"

_NOT_SHOWN = (
    "Nothing in the tree changed, which shows nothing about what trains. Pass the trained tree: "
    "`with assert_… as now: …; now(params)`"
)

_LISTED = 12
"""Tensors, and channels of one, that a failure names."""


class Now:
    """What `with … as now` gives: `now(tree)` passes the tree that is compared at the end.

    JAX's arrays don't change, so a training returns new ones.
    """

    def __init__(self, subject: Any) -> None:
        self._subject = subject
        self.told = False

    def __call__(self, subject: Any) -> None:
        """Compares this one at the end, instead of the one from the beginning."""
        self._subject, self.told = subject, True

    def get(self) -> Any:
        """The subject at the end."""
        return self._subject


@answered
@contextmanager
def assert_frozen(model: Any, *patterns: Any, statistics: str | None = None) -> Iterator[Now]:
    """Asserts that not one bit of some weights changes in a `with` block.

    Bits are compared: -0.0 isn't 0.0, and a NaN is equal to itself. Weights of any dtype and shape
    count. An exception of the block passes through, and nothing is asserted.

    Args:
        model: a torch module, a Keras model, a tf.Module, a pytree, or a mapping of arrays. For JAX
            call `now(params)` in the block with the new tree. That is needed for each tree or
            mapping of which nothing changes in place.
        patterns: names, patterns such as `"base.*"`, tensors or layers, as in `variables=` of a
            Recorder; "." and "/" are the same. None: all weights.
        statistics: "still": statistics that match, such as the mean of a BatchNorm, must not change
            either. None: they don't count, as for `pastnet verify --frozen`.

    Yields:
        A function that takes the model as it is after training.

    Raises:
        AssertionError: a weight changed, was replaced by other values, came or went; or nothing in
            a tree changed and `now` wasn't called, which shows nothing.
        InvalidArgument: there is nothing to compare.
        UnknownName: a pattern fits no weight.

    Example:
        >>> import numpy as np
        >>> weights = {"base/kernel": np.ones((2, 3)), "head/kernel": np.ones((3, 2))}
        >>> with assert_frozen(weights, "base.*"):
        ...     weights["head/kernel"] -= 0.1
    """
    _check_statistics(statistics)
    subject = Now(model)
    copies = _Before(model, patterns or ["*"], "assert_frozen", statistics)
    with copies.causes:
        yield subject
        _report(copies.changed(subject, frozen=copies.named))


@answered
@contextmanager
def assert_learns(model: Any, *patterns: Any) -> Iterator[Now]:
    """Asserts that each of some weights changes in a `with` block, by at least one bit.

    The failure names those that don't, and the cause as far as the framework shows it: no optimizer
    has them, their gradient is None or zero, the learning rate is 0, `requires_grad` is False.

    Args:
        model: see `assert_frozen`.
        patterns: see `assert_frozen`; statistics don't count. None: all weights.

    Yields:
        See `assert_frozen`.

    Raises:
        AssertionError: a weight is what it was before, bit for bit, or isn't there any more.
        InvalidArgument: there is nothing to compare.
        UnknownName: a pattern fits no weight.

    Example:
        >>> import numpy as np
        >>> weights = {"kernel": np.ones((2, 3)), "bias": np.zeros(3)}
        >>> with assert_learns(weights):
        ...     weights["kernel"] -= 0.1
        Traceback (most recent call last):
        AssertionError: Expected 2 weights to change, but 1 didn't:
          bias (3,): not one bit moved
    """
    subject = Now(model)
    copies = _Before(model, patterns or ["*"], "assert_learns", None)
    with copies.causes:
        yield subject
        _report(copies.changed(subject, trains=copies.named))


@answered
@contextmanager
def assert_only_trains(model: Any, *patterns: Any, statistics: str | None = None) -> Iterator[Now]:
    """Asserts that each of some weights changes in a `with` block, and no bit of the others.

    Args:
        model: see `assert_frozen`.
        patterns: what should change, see `assert_frozen`.
        statistics: "still": statistics of the others must not change either. None: they don't
            count.

    Yields:
        See `assert_frozen`.

    Raises:
        AssertionError: a weight that matches didn't change, or another one did.
        InvalidArgument: there is no pattern, or none of the weights is left to be frozen.
        UnknownName: a pattern fits no weight.

    Example:
        >>> import numpy as np
        >>> weights = {"base/kernel": np.ones((2, 3)), "head/kernel": np.ones((3, 2))}
        >>> with assert_only_trains(weights, "head.*"):
        ...     weights["head/kernel"] -= 0.1
    """
    _check_statistics(statistics)
    if not patterns:
        raise InvalidArgument(
            "Could not assert_only_trains: expected patterns of what trains, got none. For all "
            "weights use assert_learns(model)."
        )
    subject = Now(model)
    copies = _Before(model, patterns, "assert_only_trains", statistics, with_others=True)
    with copies.causes:
        yield subject
        _report(copies.changed(subject, frozen=copies.others, trains=copies.named))


def _check_statistics(statistics: object) -> None:
    if statistics not in (None, STILL):
        raise InvalidArgument(
            f"Could not use statistics={statistics!r:.60}: expected 'still' or None, got another "
            f"value. Write statistics='still' if they must not change."
        )


@dataclass(frozen=True)
class _Copied:
    """A tensor at the beginning: what it was, and a copy of its bits."""

    tensor: Tensor
    form: tuple[str, tuple[int, ...]]
    bits: Array


@dataclass(frozen=True)
class _Change:
    """How a tensor fares: `differs` are elements whose bits changed; None if it isn't as before."""

    kept: _Copied
    differs: Array | None
    size: float = 0.0
    text: str = ""

    @property
    def moved(self) -> bool:
        """Whether it isn't as before."""
        return self.differs is None or bool(self.differs.any())

    @property
    def still(self) -> bool:
        """Whether it didn't train; what has no elements can't."""
        return self.differs is None or bool(self.differs.size and not self.differs.any())


class _Before:
    """The weights at the beginning: one copy of those that the assertion is about."""

    def __init__(
        self,
        model: Any,
        patterns: Iterable[Any],
        task: str,
        statistics: str | None,
        *,
        with_others: bool = False,
    ) -> None:
        self._patterns = list(patterns)
        tensors = tensors_in(model)
        named = chosen(tensors, self._patterns)
        counts = _counting(tensors, statistics)
        # No gradient trains statistics: they don't have to change.
        self.named = [
            name
            for name in named
            if name in counts and not (with_others and tensors[name].statistic)
        ]
        if not any(tensors[name].bits().size for name in self.named):
            raise InvalidArgument(
                f"Could not {task}: expected weights with elements, got only statistics or empty "
                f"ones: {', '.join(named[:4])}. For statistics use assert_frozen(…, "
                f"statistics='still')."
            )
        self._statistics, self._all = statistics, set(tensors)
        self.others = [name for name in tensors if name in counts and name not in named]
        if with_others and not self.others:
            raise InvalidArgument(
                f"Could not {task}: expected patterns that leave weights to be frozen, got "
                f"some that match all {len(self.named)}. Use assert_learns."
            )
        wanted = {*self.named, *(self.others if with_others else ())}
        self._kept = {
            name: _Copied(tensor, tensor.form, np.array(tensor.bits()))
            for name, tensor in tensors.items()
            if name in wanted
        }
        # A tree that isn't changed in place shows nothing.
        self._digest = _digest(tensors) if is_tree(model) else b""
        bits = {name: (kept.bits, kept.form[0]) for name, kept in self._kept.items()}
        self.causes: Causes = causes_of(model, bits)

    def changed(
        self, subject: Now, frozen: Iterable[str] = (), trains: Iterable[str] = ()
    ) -> list[str]:
        """The lines of a failure; none if all is as it should be."""
        later = tensors_in(subject.get())
        if self._digest and not subject.told and self._digest == _digest(later):
            return [_NOT_SHOWN]
        changes = {name: self._compare(name, later) for name in self._kept}
        own_frozen = [changes[name] for name in frozen]
        moved = [each for each in own_frozen if each.moved]
        own_trains = [changes[name] for name in trains]
        still = [each for each in own_trains if each.still]
        came = self._came(later, own_frozen, own_trains)
        return [
            *_lines(f"Expected {counted(len(own_frozen), 'weight')} to stay frozen, but "
                    f"{len(moved)} changed:", moved, self._moved_line),
            *_lines(f"Expected {counted(len(own_trains), 'weight')} to change, but "
                    f"{len(still)} didn't:", still, self._still_line),
            *_lines(f"Expected the same weights as before, but {len(came)} came:", came,
                    lambda tensor: f"{tensor.name} {tensor.form[1]}"),
        ]  # fmt: skip

    def _came(self, later: Tensors, frozen: list[_Change], trains: list[_Change]) -> list[Tensor]:
        """New tensors that the assertion is about."""
        new = [later[name] for name in _counting(later, self._statistics) if name not in self._all]
        if frozen and trains:
            return new
        return [tensor for tensor in new if fits_any(tensor, self._patterns)]

    def _compare(self, name: str, later: Mapping[str, Tensor]) -> _Change:
        kept = self._kept[name]
        if name not in later:
            return _Change(kept, None, text="it isn't there any more")
        form = later[name].form
        if form != kept.form:
            was, got = (f"{dtype}{list(shape)}" for dtype, shape in (kept.form, form))
            return _Change(kept, None, text=f"it was {was} and is {got}")
        bits = later[name].bits()
        differs = (bits != kept.bits).any(axis=-1)
        return _Change(kept, differs, _largest(kept, bits) if differs.any() else 0.0)

    def _moved_line(self, change: _Change) -> str:
        if change.differs is None:
            return f"{_shown(change.kept)}: {change.text}"
        number = int(np.count_nonzero(change.differs))
        values = f"{number:,} of {change.differs.size:,} values changed"
        size = f", by at most {change.size:.3g}" if change.size else ""
        cause = self.causes.of_moved(change.kept.tensor)
        return f"{_shown(change.kept)}: {values}{_channels(change)}{size}{_because(cause)}"

    def _still_line(self, change: _Change) -> str:
        if change.differs is None:
            return f"{_shown(change.kept)}: {change.text}"
        cause = self.causes.of_still(change.kept.tensor)
        return f"{_shown(change.kept)}: not one bit moved{_because(cause)}"


def _digest(tensors: Mapping[str, Tensor]) -> bytes:
    """A hash of names and bits of all tensors."""
    hashed = hashlib.blake2b(digest_size=16)
    for name, tensor in tensors.items():
        hashed.update(repr((name, tensor.form)).encode())
        own: Any = np.ascontiguousarray(tensor.bits())
        hashed.update(own)
    return hashed.digest()


def _counting(tensors: Mapping[str, Tensor], statistics: str | None) -> dict[str, None]:
    """Names of the tensors that count."""
    return {
        name: None
        for name, tensor in tensors.items()
        if statistics == STILL or not tensor.statistic
    }


def _largest(kept: _Copied, bits: Array) -> float:
    """The largest |change|; 0 if the dtype isn't floating or it isn't finite."""
    old, new = as_floats(kept.bits, kept.form[0]), as_floats(bits, kept.form[0])
    if old is None or new is None:
        return 0.0
    with np.errstate(invalid="ignore", over="ignore"):
        size = abs(new - old)
    return float(size[np.isfinite(size)].max(initial=0))


def _shown(kept: _Copied) -> str:
    return f"{kept.tensor.name} {kept.form[1]}"


def _channels(change: _Change) -> str:
    """The channels that changed, if it has several."""
    axis, differs = change.kept.tensor.axis, change.differs
    # A tensor that is spread over ranks has only the rows of this one here.
    if differs is None or axis.channels < 2 or differs.size != axis.channels * axis.elements:
        return ""
    numbers = np.flatnonzero(axis.split(differs).any(axis=1)).tolist()
    if len(numbers) == axis.channels:
        return f", in all {axis.channels:,} channels"
    more = ", …" if len(numbers) > _LISTED else ""
    word = "channel" if len(numbers) == 1 else "channels"
    return f", in {word} {', '.join(map(str, numbers[:_LISTED]))}{more} of {axis.channels:,}"


def _because(cause: str) -> str:
    return f". Likely cause: {cause}" if cause else ""


def _lines(head: str, items: list[Any], line: Callable[[Any], str]) -> list[str]:
    if not items:
        return []
    rest = len(items) - _LISTED
    more = [f"  and {rest:,} more"] if rest > 0 else []
    return [head, *(f"  {line(item)}" for item in items[:_LISTED]), *more]


def _report(lines: list[str]) -> None:
    if lines:
        raise AssertionError("\n".join(lines))
