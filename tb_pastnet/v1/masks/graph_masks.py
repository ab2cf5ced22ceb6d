"""Masks on the single weights of a TF1-style graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import tensorflow.compat.v1 as tf

from tb_pastnet.core.arguments import answered
from tb_pastnet.core.violation import Violation
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.keras.model.weights import AxisOverrides
from tb_pastnet.record.audit.freeze_audit import Audit
from tb_pastnet.record.masks.commands import MaskCommands
from tb_pastnet.v1.graph.graph_variables import open_graph
from tb_pastnet.v1.graph.layers import Chosen, network_in
from tb_pastnet.v1.graph.session import GraphSession
from tb_pastnet.v1.masks.graph_audit import GraphAudit, GraphCauses
from tb_pastnet.v1.masks.session_masks import HeldOptimizer, Holding, SessionMasks


@answered
class Masks(MaskCommands):
    """Prunes and freezes single weights, or whole channels, of the variables of a graph.

    Its commands are those of `pastnet.Masks`. They take effect at once, without a new op: make the
    masks before the graph is finalized, and build updates through `wrap` or `hold`. Held weights
    are copied before an update and restored after it, bit for bit, whatever the optimizer does.

    The masks are variables in the collection `pastnet.v1.MASK_VARIABLES`, not among the global
    ones, so earlier checkpoints still restore. A MonitoredTrainingSession initializes them,
    otherwise run `initializer`. To save them, make a `tf.train.Saver` of `tf.global_variables() +
    masks.variables`; restored values are kept.

    Make them after the network is built: TensorFlow derives the seed of a random op from the number
    of ops before it.

    Args:
        variables: the exact name of a scope; names, patterns or variables; a mapping of names to
            variables. None: all that are trained. Each takes a copy of its values, and two bytes
            per weight.
        channel_axis: corrections of channel axes by name.
        graph: a tf.Graph; None: the default graph.

    Attributes:
        kept: the kept mask of each variable by name, bool arrays; read at each access.
        trainable: the trainable mask of each variable, read at each access. Pruned elements count
            as trainable.
        variables: the tf.Variables that store the masks.
        initializer: an operation that initializes the masks to let everything through; initialized
            ones stay.
        session: the session for commands. None: the default session.
        state: the masks that a Recorder reads.
        witness: finds the causes of violations, for a Recorder.

    Raises:
        InvalidArgument: the graph is finalized, or there is nothing to mask.
        UnknownName: a name fits no variable, or several.

    Example:
        >>> with tf.Graph().as_default(), tf.Session() as session:
        ...     kernel = tf.get_variable("dense/kernel", initializer=tf.ones((1, 2)))
        ...     masks = Masks()
        ...     optimizer = masks.wrap(tf.train.MomentumOptimizer(0.25, 0.9))
        ...     train = optimizer.minimize(tf.reduce_sum(kernel))
        ...     _ = session.run([tf.global_variables_initializer(), masks.initializer])
        ...     masks.prune("dense/kernel", channels=[1])
        ...     _ = session.run(train)
        ...     session.run(kernel).tolist()
        [[0.75, 0.0]]
    """

    state: SessionMasks
    still_statistics = (
        "Statistics move by their update ops: call the layer with training=False, or leave these "
        "ops out."
    )

    def __init__(
        self,
        variables: Chosen = None,
        channel_axis: AxisOverrides | None = None,
        graph: tf.Graph | None = None,
    ) -> None:
        self.site = GraphSession(graph)
        weights = network_in(self.site, variables, channel_axis, writable=True).weights
        state = SessionMasks(weights, self.site)
        self._holding = Holding(state)
        super().__init__(state, self._holding, at_once=self.site.at_once)
        self.witness = GraphCauses(self.site.graph, self._holding)
        self.variables = [own for masks in state.made.values() for own in masks.variables]
        self.initializer = self.site.initialized(self.variables)
        audited = GraphAudit(weights, state, self.witness)
        # Observes changes from its first call on.
        self._audit = cache(lambda: Audit(audited, lambda: state))

    @property
    def session(self) -> Any:
        """See the class."""
        return self.site.session

    @session.setter
    def session(self, session: Any) -> None:
        self.site.session = session

    def wrap(self, optimizer: tf.train.Optimizer) -> Any:
        """Returns an optimizer that trains with the masks.

        Its `compute_gradients` returns zeros for held weights, before you clip. Its
        `apply_gradients` and `minimize` leave held weights unchanged.

        Args:
            optimizer: a tf.train.Optimizer. Wrap it before others that add to its updates, or use
                `hold` around the whole update.

        Returns:
            A tf.train.Optimizer with the slots of the given one.

        Raises:
            InvalidArgument: it isn't one.
        """
        if not isinstance(optimizer, tf.train.Optimizer):
            raise InvalidArgument(
                f"Could not hold masks on {optimizer!r:.60}: expected a "
                f"tf.compat.v1.train.Optimizer, got {type(optimizer).__name__}. Build its update "
                f"through hold(), or use pastnet.Masks for Keras."
            )
        return HeldOptimizer(optimizer, self._holding)

    @answered
    def hold(self, update: Callable[[], Any], variables: Iterable[Any] | None = None) -> Any:
        """Builds any update, and restores held weights after it.

        Args:
            update: a function that builds it, and returns its operation, or tensors.
            variables: the variables that it writes, or their names. None: all with masks. Required
                if two updates run in one `session.run`.

        Returns:
            The operation to run instead.

        Raises:
            InvalidArgument: the update is no function, or returns nothing to wait for.
            UnknownName: a name fits no variable, or several.
        """
        open_graph(self.site.graph, "hold weights in an update")
        if not callable(update):
            raise InvalidArgument(
                f"Could not hold weights in an update: expected update= a function that builds it, "
                f"got {type(update).__name__}. Write hold(lambda: update)."
            )
        return self._holding.around(update, self.state.chosen(variables))

    def refresh(self) -> None:
        """Reads the masks from the session, after a Saver has restored others during it.

        Raises:
            InvalidArgument: they have no values, or there is no session.
        """
        self.state.refresh()

    def audit(self, step: int = 0) -> list[Violation]:
        """Compares held weights with their earlier values, like `pastnet.Masks.audit`.

        Raises:
            InvalidArgument: the masks have no values, or there is no session.
        """
        self.state.look()
        with self.site.at_once():
            self._audit().check(step)
        return self._audit().violations
