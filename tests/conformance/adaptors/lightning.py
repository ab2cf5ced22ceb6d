"""The callback of Lightning's Trainer."""

from __future__ import annotations

import math
import warnings
from types import SimpleNamespace
from typing import Any

import lightning.pytorch as lightning
import torch

import tb_pastnet as pastnet
from tests.conformance.adaptors import trainer


class Module(lightning.LightningModule):
    def __init__(self, room: Adaptor) -> None:
        super().__init__()
        self.room = [room]  # not a submodule, nor a hyperparameter
        for name, layer in room.model.named_children():
            self.add_module(name, layer)

    def training_step(self, batch: Any) -> torch.Tensor:
        return trainer.loss_of(self)

    def configure_optimizers(self) -> Any:
        (room,) = self.room
        (optimizer,) = room.optimizers
        schedule = {"scheduler": room.schedule(optimizer), "interval": "step"}
        return {"optimizer": optimizer, "lr_scheduler": schedule}

    def on_train_batch_end(self, *_: Any) -> None:
        (room,) = self.room
        room.seen.append(room.values())


class Adaptor(trainer.Adaptor):
    def callback_of(self, **settings: Any) -> Any:
        return pastnet.torch.LightningCallback(self.logdir, **settings)

    def at(self, step: Any) -> Any:
        """What the callback reads of a Trainer."""
        return SimpleNamespace(
            global_step=step,
            optimizers=self.optimizers,
            estimated_stepping_batches=math.inf,
            should_stop=False,
        )

    def started(self, step: int) -> None:
        self.callback.on_train_start(self.at(step), self.model)

    def recorded_at(self, step: Any) -> None:
        self.callback.on_train_batch_end(self.at(step), self.model, None, None, 0)

    def ended(self) -> None:
        type(self.callback).teardown(self.callback, None, self.model, "fit")

    def fit(self, steps: int) -> None:
        callbacks = []
        if self.recorder is not None:
            callbacks = [self.callback]
            for hook in ("on_train_start", "teardown"):
                setattr(self.callback, hook, lambda *_, **__: None)  # the log goes on
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Lightning's own, of workers and deprecations
            made = lightning.Trainer(
                accelerator="cpu",
                max_steps=steps,
                callbacks=callbacks,
                default_root_dir=self.logdir,
                logger=False,
                enable_checkpointing=False,
                enable_progress_bar=False,
                enable_model_summary=False,
            )
            made.fit(Module(self), torch.utils.data.DataLoader(trainer.STEPS[:steps]))
