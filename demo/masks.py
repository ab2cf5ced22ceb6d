"""What users write by hand today to prune and to freeze channels: plain Keras, no PastNet."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import tensorflow as tf


class ZeroChannels(keras.constraints.Constraint):
    """Holds whole channels of a kernel and its bias at zero after each update.

    Attributes:
        kept: One number a channel of the last axis: 1 lets it through, 0 holds it at zero.
    """

    def __init__(self, channels: int) -> None:
        self.kept = keras.Variable(np.ones(channels, np.float32), trainable=False)

    def __call__(self, w: Any) -> Any:
        """Zeroes the channels that aren't kept; w is a kernel or a bias, channels last."""
        return w * self.kept


class PruneSmallest(keras.callbacks.Callback):
    """Prunes the channels with the smallest norm of each constrained layer, in equal steps.

    Args:
        epochs: At the start of each of these one more step is pruned.
        share: The share of a layer's channels that is pruned after the last step.
    """

    def __init__(self, epochs: tuple[int, ...], share: float) -> None:
        super().__init__()
        self.epochs = epochs
        self.share = share

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Prunes if a step is due; channels that were pruned stay so, as their norm is 0."""
        if epoch not in self.epochs:
            return
        share = self.share * (self.epochs.index(epoch) + 1) / len(self.epochs)
        for layer in leaves(self.model):
            if isinstance(getattr(layer, "kernel_constraint", None), ZeroChannels):
                kernel = layer.kernel.numpy()
                norms = np.sqrt((kernel**2).reshape(-1, kernel.shape[-1]).sum(0))
                kept = np.ones(len(norms), np.float32)
                kept[np.argsort(norms)[: round(share * len(norms))]] = 0
                layer.kernel_constraint.kept.assign(kept)


class GradientMasks:
    """One factor a channel for the gradients of some kernels: 1 lets through, 0 holds back."""

    def __init__(self, layers: list[Any]) -> None:
        kernels = [layer.kernel for layer in layers]
        self.factors = {
            kernel.path: keras.Variable(np.ones(kernel.shape[-1], np.float32), trainable=False)
            for kernel in kernels
        }

    def freeze(self, channels: slice) -> None:
        """Holds back these channels in each of the kernels."""
        for factor in self.factors.values():
            values = factor.numpy()
            values[channels] = 0
            factor.assign(values)

    def apply(self, gradient: Any, variable: Any) -> Any:
        """The gradient of a variable, masked if it is one of the kernels."""
        factor = self.factors.get(variable.path)
        return gradient if factor is None else gradient * factor


class MaskedGradients(keras.Model):
    """A model that is meant to freeze channels, and does it wrong: only their gradients are masked.

    Momentum and weight decay move a weight without any gradient.
    """

    masks: GradientMasks

    def train_step(self, data: Any) -> Any:
        """One update with masked gradients."""
        x, y = data
        with tf.GradientTape() as tape:
            prediction = self(x, training=True)
            loss = self.compute_loss(y=y, y_pred=prediction)
        variables = self.trainable_variables
        gradients = tape.gradient(loss, variables)
        masked = [self.masks.apply(*pair) for pair in zip(gradients, variables, strict=True)]
        self.optimizer.apply(masked, variables)
        return self.compute_metrics(x, y, prediction)


def leaves(model: Any) -> list[Any]:
    """The layers of a model that have weights and hold no other layers, in forward order."""
    found = []
    for layer in model.layers:
        found += leaves(layer) if hasattr(layer, "layers") else [layer]
    return [layer for layer in found if layer.weights]
