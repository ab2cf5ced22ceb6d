"""The callback of Hugging Face's Trainer."""

from __future__ import annotations

import math
import tempfile
from types import SimpleNamespace
from typing import Any

import torch
import transformers

import tb_pastnet as pastnet
from tests.conformance.adaptors import trainer


class Model(torch.nn.Module):
    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        for name, layer in model.named_children():
            self.add_module(name, layer)

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"loss": trainer.loss_of(self)}


class Values(transformers.TrainerCallback):
    def __init__(self, room: Adaptor) -> None:
        self.room = room

    def on_step_end(self, *_: Any, **__: Any) -> None:
        self.room.seen.append(self.room.values())


class Adaptor(trainer.Adaptor):
    def callback_of(self, **settings: Any) -> Any:
        return pastnet.torch.HuggingFaceCallback(self.logdir, **settings)

    def call(self, hook: str, step: Any) -> None:
        """Calls the callback as a Trainer does."""
        state = SimpleNamespace(global_step=step, max_steps=math.inf)
        control = SimpleNamespace(should_training_stop=False)
        optimizer = self.optimizers or None
        given = {"model": self.model, "optimizer": optimizer}
        getattr(type(self.callback), hook)(self.callback, None, state, control, **given)

    def started(self, step: int) -> None:
        self.call("on_train_begin", step)

    def recorded_at(self, step: Any) -> None:
        self.call("on_step_end", step)

    def ended(self) -> None:
        self.call("on_train_end", 0)

    def fit(self, steps: int) -> None:
        callbacks: list[Any] = [Values(self)]
        if self.recorder is not None:
            callbacks.append(self.callback)
            for hook in ("on_train_begin", "on_train_end"):
                setattr(self.callback, hook, lambda *_, **__: None)  # the log goes on
        (optimizer,) = self.optimizers
        with tempfile.TemporaryDirectory() as folder:
            arguments = transformers.TrainingArguments(
                output_dir=folder,
                max_steps=steps,
                per_device_train_batch_size=1,
                max_grad_norm=0.0,
                use_cpu=True,
                disable_tqdm=True,
                report_to=[],
                logging_strategy="no",
                save_strategy="no",
            )
            transformers.Trainer(
                Model(self.model),
                arguments,
                train_dataset=[{"x": each} for each in trainer.STEPS[:steps]],
                callbacks=callbacks,
                optimizers=(optimizer, self.schedule(optimizer)),
            ).train()
