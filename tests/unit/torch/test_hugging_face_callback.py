"""A training of Hugging Face's Trainer, in its own steps."""

from __future__ import annotations

import numpy as np
import pytest

import tb_pastnet as pastnet
from tb_pastnet.core.quantize import PRECISION

torch = pytest.importorskip("torch", reason="torch isn't installed: an extra of its own")
transformers = pytest.importorskip("transformers", reason="transformers isn't installed")
pytest.importorskip("accelerate", reason="accelerate isn't installed")

pytestmark = pytest.mark.filterwarnings("ignore")  # those libraries' own


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.layer = torch.nn.Linear(3, 2)
        self.head = torch.nn.Linear(2, 1)

    def forward(self, x, labels):
        return {"loss": (self.head(self.layer(x)) - labels).square().mean()}


def train(folder, *callbacks, model=None, resume=None, **settings):
    arguments = transformers.TrainingArguments(
        output_dir=str(folder / "out"),
        per_device_train_batch_size=2,
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        logging_strategy="no",
        **{"num_train_epochs": 1, "save_strategy": "no", **settings},
    )
    data = [{"x": torch.full((3,), number / 8), "labels": torch.ones(1)} for number in range(16)]
    trainer = transformers.Trainer(
        model or Model(),
        arguments,
        train_dataset=data,
        eval_dataset=data,
        callbacks=[*callbacks],
    )
    trainer.train(resume_from_checkpoint=resume)
    return trainer


def run_in(folder):
    (run,) = pastnet.read(folder / "log").runs.values()
    assert dict(run.notes) == {}
    return run


def test_steps_are_those_of_the_trainer(tmp_path):
    callback = pastnet.torch.HuggingFaceCallback(tmp_path / "log", every=3)
    train(tmp_path, callback)
    run = run_in(tmp_path)
    assert run.steps.tolist() == [1, 3, 6, 8]  # the last one, too
    assert list(run.variables) == ["layer/weight", "layer/bias", "head/weight", "head/bias"]
    assert callback.recorder is None


def test_batches_of_an_accumulated_gradient_are_no_steps(tmp_path):
    callback = pastnet.torch.HuggingFaceCallback(tmp_path / "log", every=1)
    train(tmp_path, callback, gradient_accumulation_steps=4)
    assert run_in(tmp_path).steps.tolist() == [1, 2]


def test_a_checkpoint_goes_on_in_the_log(tmp_path):
    callback = pastnet.torch.HuggingFaceCallback(tmp_path / "log", every=4)
    train(tmp_path, callback, save_strategy="epoch")
    train(tmp_path, callback, resume=True, num_train_epochs=2)
    assert run_in(tmp_path).steps.tolist() == [1, 4, 8, 9, 12, 16]


def test_a_training_that_was_interrupted_is_closed_by_the_next(tmp_path):
    class Interrupted(transformers.TrainerCallback):
        def on_step_begin(self, args, state, control, **_):
            if state.global_step == 3:
                raise KeyboardInterrupt

    callback = pastnet.torch.HuggingFaceCallback(tmp_path / "log", every=2)
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path, callback, Interrupted())
    train(tmp_path, callback)
    run = run_in(tmp_path)
    assert (run.steps.tolist(), len(run.lineages)) == ([1, 2, 4, 6, 8], 2)
    assert [each.closed for each in run.lineages] == [False, True]


def test_the_best_weights_that_are_loaded_at_the_end_are_recorded(tmp_path):
    model = Model()
    callback = pastnet.torch.HuggingFaceCallback(tmp_path / "log", every=3)
    settings = dict.fromkeys(("save_strategy", "eval_strategy"), "epoch")
    train(
        tmp_path, callback, model=model, num_train_epochs=3, load_best_model_at_end=True,
        metric_for_best_model="loss", greater_is_better=True, learning_rate=0.1, **settings,
    )  # fmt: skip
    run = run_in(tmp_path)
    assert run.steps[-2:].tolist() == [24, 25]
    for name, weight in model.state_dict().items():
        expected = np.linalg.norm(weight.double().numpy().reshape(len(weight), -1), axis=1)
        variable = run.variables[name.replace(".", "/")]
        np.testing.assert_allclose(variable.norm[-1], expected, PRECISION)
        assert (variable.norm[-1] != variable.norm[-2]).any()


def test_a_violation_may_end_the_training(tmp_path):
    model = Model()
    model.layer.requires_grad_(False)

    class Leak(transformers.TrainerCallback):
        def on_step_begin(self, args, state, control, **_):
            if state.global_step == 3:
                model.layer.weight.data.add_(1)

    callback = pastnet.torch.HuggingFaceCallback(tmp_path / "log", every=1, on_violation="stop")
    trainer = train(tmp_path, callback, Leak(), model=model)
    assert trainer.state.global_step == 4
    assert {violation.cause for violation in run_in(tmp_path).violations} == {"written"}
