"""A graph, and the session in which its variables have their values."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import tensorflow.compat.v1 as tf

from tb_pastnet.errors import InvalidArgument
from tb_pastnet.keras.measure.runner import Runner
from tb_pastnet.keras.types import TensorLike
from tb_pastnet.v1.graph.graph_variables import GraphVariable, open_graph

SCOPE = "pastnet/"
"""The name scope of all ops added to a graph, wherever they are built.

The names of masks, which a Saver uses, thus depend only on those of their variables.
"""


class GraphSession(Runner):
    """The `Runner` of a graph: code builds ops at once, a session runs them."""

    def __init__(self, graph: tf.Graph | None = None) -> None:
        self.graph = open_graph(graph, "add ops")
        self.session: tf.Session | None = None
        self.groups: defaultdict[str, list[GraphWeight]] = defaultdict(list)
        self._weights: dict[str, GraphWeight] = {}
        self._read: dict[GraphWeight, Any] | None = None
        self._written: dict[GraphWeight, Any] = {}

    def of(self, graph: tf.Graph | None) -> GraphSession:
        """Itself, for a command whose `graph=` has to be this one or None; otherwise it raises."""
        open_graph(self.graph, "add ops")
        if graph is not None and graph is not self.graph:
            raise InvalidArgument(
                "Could not add ops for masks: expected the masks' graph, got another one."
                " Leave graph= out."
            )
        return self

    @contextmanager
    def building(self) -> Iterator[None]:
        """A context for adding ops, independent of what is being built around it."""
        with self.graph.as_default(), tf.control_dependencies(None), tf.name_scope(SCOPE):
            yield

    @contextmanager
    def using(self, session: tf.Session | None) -> Iterator[None]:
        """A context in which another session runs the ops; None: the same one as before."""
        previous = self.session
        self.session = previous if session is None else session
        try:
            yield
        finally:
            self.session = previous

    @property
    def current(self) -> Any:
        """The session that would run them, None without one of this graph."""
        session = tf.get_default_session() if self.session is None else self.session
        return session if getattr(session, "graph", None) is self.graph else None

    def run(self, fetches: Any, feeds: Mapping[Any, Any] | None = None) -> Any:
        """The session's results for some fetches; raises InvalidArgument if it fails."""
        session = self.current
        if session is None:
            raise InvalidArgument(
                "Could not run ops of a graph: expected a session for it, got none. Pass session=, "
                "or make yours the default one: with session.as_default()."
            )
        try:
            return session.run(fetches, feeds)
        except tf.errors.FailedPreconditionError as error:
            raise InvalidArgument(
                "Could not run ops of a graph: expected variables that have values, got some "
                "without in this session. Initialize or restore them; the initializer of masks is "
                "masks.initializer."
            ) from error

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """A context without other changes of variables: read in groups, and written at the end.

        In a large graph, a session takes long to prepare each new set of fetches.
        """
        if self._read is not None:
            yield
            return
        self._read = {}
        try:
            yield
            if self._written:
                feeds = {face.fed: value for face, value in self._written.items()}
                self.run([face.written for face in self._written], feeds)
        finally:
            self._read = None
            self._written.clear()

    def value_of(self, face: GraphWeight) -> Any:
        """The value of a variable, an array."""
        if self._read is None:
            return self.run(face.read)
        if face not in self._read:
            faces = self.groups[face.group]
            values = self.run([member.read for member in faces])
            self._read = {**dict(zip(faces, values, strict=True)), **self._read}
        return self._read[face]

    def write(self, face: GraphWeight, value: TensorLike) -> None:
        """Writes an array."""
        if self._read is None:
            self.run(face.written, {face.fed: value})
        else:
            self._read[face] = self._written[face] = value

    def variable(self, build: Callable[[], Any], name: str) -> GraphWeight:
        """See `Runner`. It is in no collection, so Savers and initializers skip it."""
        with self.building():
            value = build()
            return self.own(tf.zeros(value.shape, value.dtype), name)

    def own(self, initial: tf.Tensor, name: str, *collections: str, group: str = "") -> GraphWeight:
        """Our own untrained variable, listed in some collections."""
        variable = tf.Variable(
            initial, trainable=False, collections=[*collections], name=name, use_resource=True
        )
        owned = GraphVariable(variable.op.name, (variable,), False)
        return GraphWeight(self, owned, writable=True, group=group)

    def initialized(self, variables: Sequence[Any]) -> Any:
        """Builds an operation that initializes variables, unless all of them have values.

        A MonitoredTrainingSession runs it as a `tf.tables_initializer`, after a checkpoint is
        restored. Local variables would be reset there.
        """
        with self.building():
            complete = tf.reduce_all([tf.is_variable_initialized(each) for each in variables])

            def begin() -> Any:
                with tf.control_dependencies(
                    [each.assign(each.initial_value, read_value=False) for each in variables]
                ):
                    return tf.constant(True)

            done = tf.cond(complete, lambda: tf.constant(False), begin).op
        self.graph.add_to_collection(tf.GraphKeys.TABLE_INITIALIZERS, done)
        return done

    def variable_of(self, variable: GraphVariable, *, writable: bool = False) -> GraphWeight:
        """The weight of a user's variable, one object for each."""
        name = variable.name
        if name not in self._weights:
            self._weights[name] = GraphWeight(self, variable, writable=writable, group="weights")
        return self._weights[name]

    def function(self, build: Callable[[], Any]) -> Callable[[], Any]:
        """See `Runner`. Results are arrays."""
        with self.building():
            fetches = build()
        return lambda: self.run(fetches)

    fetch = function


class GraphWeight:
    """A variable of a graph with the interface of an eager one.

    Within `at_once` the variables of a `group` are read together; "": it has its own.
    """

    def __init__(
        self,
        site: GraphSession,
        variable: GraphVariable,
        *,
        writable: bool = False,
        group: str = "",
    ) -> None:
        self.variable = variable
        self.name = variable.name
        self.group = group or self.name
        self.shape = tf.TensorShape(variable.shape)
        self.dtype = variable.dtype
        self.trainable = variable.trainable
        self._site = site
        with site.building():
            self.read = variable.tensor()
            if writable:  # the operation `written` writes the array that is `fed`
                self.fed = tf.placeholder(self.dtype, self.shape)
                self.written = variable.assign(self.fed)
        site.groups[self.group].append(self)

    def numpy(self) -> Any:
        """The value in the session, an array."""
        return self._site.value_of(self)

    def read_value(self) -> Any:
        """Builds a read, a tensor."""
        return self.variable.tensor()

    def assign(self, value: TensorLike, read_value: bool = True) -> Any:
        """Builds the op that writes a tensor; an array is written at once, in the session."""
        if isinstance(value, tf.Tensor):
            # A read of a reference variable is its storage, which ours would share.
            return self.variable.assign(tf.raw_ops.DeepCopy(x=value))
        return self._site.write(self, value)

    def __tf_tensor__(self, dtype: Any = None, name: str | None = None) -> Any:
        return tf.convert_to_tensor(self.read_value(), dtype, name=name)
