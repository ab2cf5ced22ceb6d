"""What a step passes: the pytree of a network, its leaves by path, and the optimizer state."""

from __future__ import annotations

import re
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Any, NamedTuple

import jax
import numpy as np

from tb_pastnet.errors import InvalidArgument
from tb_pastnet.record.device_array import fetch, values_of
from tb_pastnet.record.weight import Array


class Leaf(NamedTuple):
    """A leaf of a pytree.

    Attributes:
        number: its place in the tree.
        name: its path, such as "layers/0/kernel".
        value: the leaf itself.
        nodes: its ancestors, from the root to its owner.
        box: the Flax variable that holds it; None otherwise.
    """

    number: int
    name: str
    value: Any
    nodes: tuple[Any, ...]
    box: Any


class Tree:
    """Reads the leaves of the pytree that a step passes, and keeps no reference to them.

    A view of a donated buffer would silently keep JAX from reusing it.

    Attributes:
        training: a context for waiting until the values are computed, which counts as training.
        state: the optimizer state, while a step passes it.
    """

    def __init__(self, params: Any) -> None:
        flat, self._structure = jax.tree_util.tree_flatten_with_path(params)
        self._paths = [path for path, _ in flat]
        self._forms = [_form(value) for _, value in flat]
        self._names = frozenset(leaf.name for leaf in leaves(params))
        self._params: Any = None
        self._values: list[Any] | None = None
        self.state: Any = None
        self._slots: dict[str, list[Leaf]] | None = None
        self.training: AbstractContextManager[Any] = nullcontext()

    @contextmanager
    def seen(self, params: Any, state: Any = None) -> Iterator[None]:
        """Reads from these inside the context."""
        self._params, self.state = params, state
        try:
            yield
        finally:
            self._params = self._values = self.state = self._slots = None

    def fetch(self, number: int) -> None:
        """Starts copying a leaf to this machine's memory, if it is elsewhere."""
        fetch(self.leaf(number))

    def read(self, number: int) -> Array:
        """The values of a leaf: a view if they are in this machine's memory.

        Raises InvalidArgument if the tree, or the leaf, isn't as it was at the beginning.
        """
        value, expected = self.leaf(number), self._forms[number]
        if _form(value) != expected:
            raise InvalidArgument(
                f"Could not read {name_of(self._paths[number])!r}: expected {_shown(expected)}, "
                f"got {_shown(_form(value))}. Make a new Recorder where a network "
                f"changes."
            )
        return values_of(value)

    def leaf(self, number: int) -> Any:
        """A leaf of the tree that the step passed."""
        return self.all()[number]

    def all(self) -> list[Any]:
        """The leaves of the tree that the step passed."""
        if self._values is None:
            self._values = self._flat(self._params)
        return self._values

    def latest(self) -> Callable[[], Any] | None:
        """Gives the tree of this step again, as long as the program has all its arrays."""
        structure = self._structure
        try:
            references = [weakref.ref(leaf) for leaf in self.all()]
        except (TypeError, InvalidArgument):  # a number of Python, or another tree
            return None

        def again() -> Any:
            values = [reference() for reference in references]
            if any(each is None or getattr(each, "is_deleted", bool)() for each in values):
                return None
            return jax.tree_util.tree_unflatten(structure, values)

        return again

    def slots(self) -> dict[str, list[Leaf]]:
        """The arrays of the state, by the longest name that their path ends with; else by ""."""
        if self._slots is None:
            self._slots = {}
            for leaf in leaves(self.state):
                parts = leaf.name.split("/")
                ends = ("/".join(parts[start:]) for start in range(len(parts)))
                name = next((end for end in ends if end in self._names), "")
                if np.ndim(leaf.value):
                    self._slots.setdefault(name, []).append(leaf)
        return self._slots

    def _flat(self, params: Any) -> list[Any]:
        values: list[Any]
        values, structure = jax.tree_util.tree_flatten(params)
        if structure != self._structure:
            paths = [path for path, _ in jax.tree_util.tree_flatten_with_path(params)[0]]
            if paths != self._paths:
                where = self._where(params)
                raise InvalidArgument(_changed(self._paths, paths, where and f": {where}"))
            # Another setting that isn't a leaf, such as that of a dropout.
            self._structure = structure
        with self.training:
            jax.block_until_ready(values)
        return values

    def _where(self, params: Any) -> str:
        """The first difference from the tree at the beginning."""
        with suppress(Exception):  # a node of the user's own class
            forms = [jax.ShapeDtypeStruct(shape, dtype) for dtype, shape in self._forms]
            skeleton = jax.tree_util.tree_unflatten(self._structure, forms)
            return difference(skeleton, params, prefix=False)
        return ""


def leaves(params: Any) -> list[Leaf]:
    """All leaves, in the order of the tree; in a dictionary, layer 10 comes after layer 9."""
    flat, _ = jax.tree_util.tree_flatten_with_path(params)
    first: dict[Any, int] = {}
    keyed = []
    for number, (path, value) in enumerate(flat):
        ends = range(1, len(path) + 1)
        order = [_order(path[end - 1], first.setdefault(path[:end], number)) for end in ends]
        keyed.append((order, _leaf(params, number, path, value)))
    return [leaf for _, leaf in sorted(keyed, key=lambda pair: pair[0])]


def _leaf(root: Any, number: int, path: Sequence[Any], value: Any) -> Leaf:
    name = name_of(path)
    if not path:
        return Leaf(number, name, value, (), None)
    nodes = _nodes(root, path)
    last = getattr(path[-1], "name", "")
    # A variable of Flax holds it.
    if last == "value" and type(nodes[-1]).__module__.startswith("flax."):
        return Leaf(number, name.removesuffix("/value"), value, tuple(nodes[:-1]), nodes[-1])
    return Leaf(number, name, value, tuple(nodes), None)


def _order(key: Any, number: int) -> list[Any]:
    if not isinstance(key, jax.tree_util.DictKey) or not isinstance(key.key, str):
        return [number]
    parts = re.split(r"(\d+)", key.key)
    return [int(part) if odd % 2 else part for odd, part in enumerate(parts)]


def name_of(path: Sequence[Any]) -> str:
    """A path as a name with "/"; the root itself is called "params"."""
    return jax.tree_util.keystr(tuple(path), simple=True, separator="/") if path else "params"


def by_name(params: Any, masks: Any, word: str) -> dict[str, Any]:
    """The mask of each leaf, from a pytree of masks, a prefix of one, or a function that makes it.

    Raises InvalidArgument if it doesn't fit params; `word` is the name of the argument.
    """
    if masks is None:
        return {}
    flatten, over = jax.tree_util.tree_leaves, jax.tree_util.tree_map
    if callable(masks) and jax.tree_util.all_leaves([masks]):
        masks = masks(params)
    try:
        spread = flatten(over(lambda mask, below: over(lambda _: mask, below), masks, params))
    except (TypeError, ValueError) as error:
        raise InvalidArgument(
            f"Could not use {word}=: expected a pytree that is a prefix of params, got another: "
            f"{difference(params, masks, str(error).splitlines()[0]):.200}. Pass True or False for "
            "each leaf, or for a node with several."
        ) from error
    return {leaf.name: spread[leaf.number] for leaf in leaves(params)}


def _nodes(root: Any, path: Sequence[Any]) -> list[Any]:
    """The nodes on a path without its leaf, as far as they can be followed."""
    nodes = [root]
    for key in path[:-1]:
        try:
            node = nodes[-1]
            name = getattr(key, "name", None)
            index = getattr(key, "key", getattr(key, "idx", None))
            nodes.append(node[index] if name is None else getattr(node, name))
        except Exception:  # its own container kind
            nodes.append(None)
    return nodes


def _form(value: Any) -> tuple[Any, tuple[int, ...]]:
    return getattr(value, "dtype", type(value).__name__), np.shape(value)


def _shown(form: tuple[Any, tuple[int, ...]]) -> str:
    return f"{form[0]}{list(form[1])}"


def difference(expected: Any, got: Any, otherwise: str = "", *, prefix: bool = True) -> str:
    """The first node of a tree that differs from the expected one: its key, and types or keys.

    In a prefix, a leaf may replace a node; otherwise only types count. `otherwise` is the answer
    where there is no difference.
    """
    pending: list[tuple[tuple[Any, ...], Any, Any]] = [((), expected, got)]
    while pending:
        path, old, new = pending.pop()
        own, other = _children(old), _children(new)
        if other is None and (prefix or own is None):
            continue
        name = repr(name_of(path)) if path else "the root"
        if type(old) is not type(new):
            return f"{name} is {_kind_of(new)} instead of {_kind_of(old)}"
        own, other = own or {}, other or {}
        if prefix and own.keys() != other.keys():
            now, before = (", ".join(map(_key, each)) or "none" for each in (other, own))
            return f"{name} has the keys {now} instead of {before}"
        pending += [((*path, key), own[key], other[key]) for key in reversed(own) if key in other]
    return otherwise


def _children(node: Any) -> dict[Any, Any] | None:
    """The children of a node by key; None for a leaf."""
    pairs, _ = jax.tree_util.tree_flatten_with_path(node, is_leaf=lambda each: each is not node)
    return None if pairs and not pairs[0][0] else {path[0]: child for path, child in pairs}


def _key(key: Any) -> str:
    return name_of((key,))


def _kind_of(node: Any) -> str:
    if node is None:
        return "None"
    return f"{_shown(_form(node))}" if hasattr(node, "dtype") else f"a {type(node).__name__}"


def _changed(old: Sequence[Any], new: Sequence[Any], where: str) -> str:
    former, current = ({name_of(path) for path in paths} for paths in (old, new))
    words = (("without", former - current), ("with", current - former))
    got = [f"{word} {', '.join(sorted(names)[:3])}" for word, names in words if names]
    return (
        f"Could not read the weights: expected the {len(old)} leaves of the Recorder's params, got "
        f"{len(new)}, {' and '.join(got) or 'in another order'}{where}. Make a new Recorder if the "
        "network changes."
    )
