"""What users write by hand to freeze channels, and what leaks: masks on gradients alone."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import tensorflow as tf


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
