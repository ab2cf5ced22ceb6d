"""A plain model, and what the recorder calls its variables."""

from __future__ import annotations

import keras
from keras import layers

from tb_pastnet.keras.model.tf_weights import network


def ids(model, **settings):
    return [record.text.id for record in network(model, **settings).weights]


def texts(model, **settings):
    return {record.text.id: record.text for record in network(model, **settings).weights}


def plain():
    return keras.Sequential(
        [
            keras.Input((8, 8, 2)),
            layers.Conv2D(4, 3),
            layers.BatchNormalization(),
            layers.Conv2D(3, 3, name="second"),
            layers.Flatten(),
            layers.Dropout(0.5),
            layers.Dense(5),
            layers.Dense(2),
        ]
    )
