"""Recipes of torch in the hands of Lightning and PEFT."""

from __future__ import annotations

from typing import Any

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.callbacks import BackboneFinetuning, BaseFinetuning
from peft import LoraConfig, get_peft_model
from torch import nn

import tb_pastnet as pastnet
from tests.leaks.recipe import Recipe, Watch
from tests.leaks.torch_loop import network, train, values_of


class _Module(LightningModule):
    """A backbone with a normalization, and a head."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(4)
        self.backbone = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Tanh())
        self.head = nn.Linear(4, 2)

    def training_step(self, batch: Any, _: int) -> torch.Tensor:
        return (self.head(self.backbone(batch[0])) - 1).square().mean()

    def configure_optimizers(self) -> Any:
        trained = [each for each in self.parameters() if each.requires_grad]
        return torch.optim.AdamW(trained, lr=0.01, weight_decay=0.1)


class _Keep(Callback):
    """Keeps weights at each step."""

    def __init__(self, watch: Watch, names: list[str]) -> None:
        self.watch, self.names = watch, names

    def on_train_start(self, trainer: Any, module: Any) -> None:
        self.watch.keep(0, values_of(module, self.names))

    def on_train_batch_end(self, trainer: Any, module: Any, *_: object) -> None:
        self.watch.keep(trainer.global_step, values_of(module, self.names))


def _fit(
    watch: Watch, finetuning: Callback, names: Any, masks: Any = None, epochs: int = 1
) -> None:
    batches = torch.utils.data.TensorDataset(torch.linspace(-1, 2, 60).reshape(20, 3))
    recorder = pastnet.torch.LightningCallback(watch.folder, every=1, trainable=masks)
    Trainer(
        max_epochs=epochs, accelerator="cpu", logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False,
        callbacks=[finetuning, recorder, _Keep(watch, list(names))],
    ).fit(_Module(), torch.utils.data.DataLoader(batches, batch_size=5))  # fmt: skip


class _Freeze(BaseFinetuning):
    """Freezes the backbone before training, as Lightning's guide does."""

    def __init__(self, *, train_bn: bool) -> None:
        super().__init__()
        self.train_bn = train_bn

    def freeze_before_training(self, pl_module: Any) -> None:
        self.freeze(pl_module.backbone, train_bn=self.train_bn)

    def finetune_function(self, pl_module: Any, epoch: int, optimizer: Any) -> None:
        pass


LINEAR = {"backbone/0/weight": None, "backbone/0/bias": None}
NORM = {"backbone/1/weight": None, "backbone/1/bias": None}


def _backbone(watch: Watch) -> None:
    _fit(watch, BackboneFinetuning(unfreeze_backbone_at_epoch=5, verbose=False), LINEAR)


def _frozen(watch: Watch) -> None:
    _fit(watch, _Freeze(train_bn=False), {**LINEAR, **NORM}, masks={"backbone/1/weight": False})


def _frozen_but_norms(watch: Watch) -> None:
    _fit(
        watch,
        _Freeze(train_bn=True),
        NORM,
        masks={"backbone/1/weight": False, "backbone/1/bias": False},
    )


def _unfrozen_early(watch: Watch) -> None:
    finetuning = BackboneFinetuning(
        unfreeze_backbone_at_epoch=1, backbone_initial_ratio_lr=0.5, verbose=False
    )
    masks = dict.fromkeys(LINEAR, False)
    _fit(watch, finetuning, LINEAR, masks=masks, epochs=2)


BASE = {"0/weight": None}


def _adapted(dtype: torch.dtype, *, merged: bool) -> Any:
    """LoRA beside a frozen layer, merged for an evaluation, and taken out again, at the step 5."""

    def program(watch: Watch) -> None:
        config = LoraConfig(r=2, lora_alpha=16, target_modules=["0"], init_lora_weights=False)
        model = get_peft_model(network(), config).to(dtype)
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.1)

        def evaluate() -> None:
            model.merge_adapter()
            model.unmerge_adapter()

        x = torch.linspace(-1, 2, 15).reshape(5, 3).to(dtype)
        loss = lambda module: (module(x) - 1).square().mean()  # noqa: E731
        changes = {5: evaluate} if merged else None
        train(watch, model, optimizer, BASE, loss=loss, on_updated=changes)

    return program


def _of(
    name: str, framework: str, program: Any, advice: str, stays: Any, **settings: Any
) -> Recipe:
    return Recipe(name, framework, program, stays, advice, **settings)


RECIPES = [
    _of("`BackboneFinetuning`, before the backbone is unfrozen", "Lightning", _backbone, "frozen before the optimizer is created", LINEAR),
    _of("`BaseFinetuning.freeze(…, train_bn=False)`", "Lightning", _frozen, "frozen before the optimizer is created", {**LINEAR, **NORM}),
    _of("`BaseFinetuning.freeze(…)`: `train_bn=True` is its default", "Lightning", _frozen_but_norms, "`train_bn=False`", NORM, moved_by="gradient", begins=1),
    _of("`BackboneFinetuning` that unfreezes an epoch too early", "Lightning", _unfrozen_early, "`unfreeze_backbone_at_epoch=` counts from 0", LINEAR, moved_by="gradient", begins=5),
    _of("LoRA with a frozen base, AdamW over all parameters", "PEFT", _adapted(torch.float32, merged=False), "the base has no gradient", BASE),
    _of("LoRA with a frozen base in bfloat16", "PEFT", _adapted(torch.bfloat16, merged=False), "the base has no gradient", BASE),
    _of("`merge_adapter()` and `unmerge_adapter()` in bfloat16", "PEFT", _adapted(torch.bfloat16, merged=True), "merge into a copy", BASE, moved_by="written", begins=5, since=3),
]  # fmt: skip
