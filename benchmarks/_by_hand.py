"""What one writes without us: five statistics of each channel, one summary a variable."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf


class ByHand:
    """Records a model with NumPy and `tf.summary.write`.

    Args:
        model: a Keras model.
        logdir: of the event file.
    """

    def __init__(self, model: Any, logdir: str) -> None:
        self._weights = model.weights
        self._past = [np.array(weight) for weight in self._weights]
        self._writer = tf.summary.create_file_writer(logdir)
        self._metadata = tf.compat.v1.SummaryMetadata(
            plugin_data={"plugin_name": "by_hand"}, data_class="DATA_CLASS_TENSOR"
        )

    def record(self, step: int) -> None:
        """Writes how far each channel is from where it was at the last record."""
        with self._writer.as_default(step):
            for at, weight in enumerate(self._weights):
                now, past = np.array(weight), self._past[at]
                delta, over = now - past, tuple(range(now.ndim - 1))
                rows = [
                    np.sqrt(np.square(now).sum(over)),
                    np.sqrt(np.square(past).sum(over)),
                    np.sqrt(np.square(delta).sum(over)),
                    np.abs(delta).max(over),
                    (now != past).mean(over, dtype=np.float32),
                ]
                tf.summary.write(weight.path, tf.constant(np.stack(rows)), metadata=self._metadata)
                self._past[at] = now
