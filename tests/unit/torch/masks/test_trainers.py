"""Masks in trainings of Lightning and Hugging Face, which are killed and resumed."""

from __future__ import annotations

import logging

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs torch")

import tb_pastnet as pastnet  # noqa: E402
from tb_pastnet.errors import InvalidArgument  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")  # those libraries' own

KEPT = np.random.default_rng(1).random((5, 3)) > 0.3


class Killed(Exception):
    pass


def model_of(base):
    class Model(base):
        def __init__(self):
            super().__init__()
            torch.manual_seed(1)
            self.layer, self.head = torch.nn.Linear(3, 5), torch.nn.Linear(5, 1)

        def forward(self, x, labels=0):
            return {"loss": (self.head(self.layer(x)) - labels).square().mean()}

        def training_step(self, batch):
            return self(batch)["loss"]

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters(), 0.01, weight_decay=0.1)

    return Model()


def lightning_run(folder, steps, callback=None, model=None, resume=False):
    lightning = pytest.importorskip("lightning.pytorch", reason="lightning isn't installed")

    class Kill(lightning.Callback):
        def on_train_batch_start(self, trainer, *_):
            if trainer.global_step == steps:
                raise Killed

    saving = lightning.callbacks.ModelCheckpoint(folder, every_n_train_steps=2, save_last=True)
    trainer = lightning.Trainer(
        max_steps=8,
        accelerator="cpu",
        callbacks=[*([callback] if callback else []), saving, Kill()],
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    # Lightning begins with the first batch again.
    data = torch.randn(1, 2, 3, generator=torch.Generator().manual_seed(2)).repeat(8, 1, 1)
    loader = torch.utils.data.DataLoader(data, batch_size=None)
    trainer.fit(model, loader, ckpt_path=str(folder / "last.ckpt") if resume else None)


def hugging_face_run(folder, steps, callback=None, model=None, resume=False):
    transformers = pytest.importorskip("transformers", reason="transformers isn't installed")
    pytest.importorskip("accelerate", reason="accelerate isn't installed")

    class Kill(transformers.TrainerCallback):
        def on_step_begin(self, args, state, control, **_):
            if state.global_step == steps:
                raise Killed

    arguments = transformers.TrainingArguments(
        output_dir=str(folder),
        per_device_train_batch_size=2,
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        logging_strategy="no",
        save_strategy="steps",
        save_steps=2,
        num_train_epochs=1,
        weight_decay=0.1,
    )
    rows = torch.randn(16, 3, generator=torch.Generator().manual_seed(2))
    data = [{"x": row, "labels": torch.ones(1)} for row in rows]
    callbacks = [*([callback] if callback else []), Kill()]
    trainer = transformers.Trainer(model, arguments, train_dataset=data, callbacks=callbacks)
    trainer.train(resume_from_checkpoint=resume or None)


TRAINERS = {
    "Lightning": lambda: (
        pytest.importorskip("lightning.pytorch").LightningModule,
        lightning_run,
        pastnet.torch.LightningMasksCallback,
    ),
    "HuggingFace": lambda: (
        torch.nn.Module,
        hugging_face_run,
        pastnet.torch.HuggingFaceMasksCallback,
    ),
}


@pytest.mark.parametrize("trainer", TRAINERS)
def test_a_killed_training_resumes_with_its_masks(trainer, tmp_path, caplog):
    base, run, callback = TRAINERS[trainer]()
    whole = model_of(base)
    masks = pastnet.torch.Masks(whole)
    masks.prune("layer.weight", kept=KEPT)
    masks.freeze("head.weight", channels=[0])
    head = whole.head.weight.detach().clone()
    run(tmp_path / "whole", 99, callback(masks), whole)

    begun = model_of(base)
    masks = pastnet.torch.Masks(begun)
    masks.prune("layer.weight", kept=KEPT)
    masks.freeze("head.weight", channels=[0])
    with pytest.raises(Killed):
        run(tmp_path / "parts", 4, callback(masks), begun)
    resumed = model_of(base)
    masks = pastnet.torch.Masks(resumed)
    with caplog.at_level(logging.INFO, "tb_pastnet"):
        run(tmp_path / "parts", 99, callback(masks), resumed, resume=True)
    np.testing.assert_array_equal(masks.kept["layer/weight"], KEPT)
    assert masks.resumed
    assert "2 of 2" in caplog.text
    for own, other in zip(resumed.parameters(), whole.parameters(), strict=True):
        assert torch.equal(own, other)
    assert torch.equal(resumed.head.weight, head)
    assert not resumed.layer.weight[~torch.from_numpy(KEPT)].any()
    assert (resumed.layer.weight != model_of(base).layer.weight).all()


@pytest.mark.parametrize("trainer", TRAINERS)
def test_masks_are_pruned_by_a_schedule(trainer, tmp_path):
    base, run, callback = TRAINERS[trainer]()
    model = model_of(base)
    masks = pastnet.torch.Masks(model)
    schedule = pastnet.PolynomialDecay(0, 0.6, 0, 6, power=1)
    run(tmp_path, 99, callback(masks, schedule, every=2, scope="layer"), model)
    assert masks.sparsity("layer.weight") == masks.zeros("layer.weight") == 0.6
    other = callback(pastnet.torch.Masks(model_of(base)))
    with pytest.raises(InvalidArgument):
        run(tmp_path / "other", 99, other, model)
    for wrong in (lambda: callback(3), lambda: callback(masks, every=2)):
        with pytest.raises(InvalidArgument):
            wrong()


def test_a_training_that_resumes_without_a_file_of_masks_keeps_those_set(tmp_path, caplog):
    base, run, callback = TRAINERS["HuggingFace"]()
    with pytest.raises(Killed):
        run(tmp_path, 4, None, model_of(base))
    model = model_of(base)
    masks = pastnet.torch.Masks(model)
    masks.prune("layer.weight", kept=KEPT)
    run(tmp_path, 99, callback(masks), model, resume=True)
    assert "Could not restore masks" in caplog.text
    assert not model.layer.weight[~torch.from_numpy(KEPT)].any()
