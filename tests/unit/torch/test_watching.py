"""A module, or what a trainer trains, that one call records."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import tb_pastnet as pastnet
from tb_pastnet.core.quantize import PRECISION
from tb_pastnet.errors import InvalidArgument

torch = pytest.importorskip("torch", reason="torch isn't installed: an extra of its own")


def parts():
    return torch.nn.Linear(2, 3), torch.nn.Linear(3, 1)


def step(model, *optimizers):
    for optimizer in optimizers:
        optimizer.zero_grad()
    model(torch.ones(4, 2)).square().sum().backward()
    for optimizer in optimizers:
        optimizer.step()


def test_each_step_of_the_optimizer_is_one_of_the_training(tmp_path):
    model = torch.nn.Sequential(*parts())
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    other = torch.optim.SGD(torch.nn.Linear(2, 1).parameters(), 1.0)
    recorder = pastnet.watch(model, tmp_path, every=2, config={"lr": 0.01})
    at = [model[0].weight.detach().double().numpy().copy()]
    for _ in range(6):
        step(model, optimizer, other)  # another one's steps don't count
        at.append(model[0].weight.detach().double().numpy().copy())
    recorder.close()
    (run,) = pastnet.read(tmp_path).runs.values()
    assert (run.steps.tolist(), run.config) == ([1, 2, 4, 6], {"lr": 0.01})
    expected = [np.linalg.norm(at[s] - at[s - 1], axis=1) for s in (1, 2, 4, 6)]
    np.testing.assert_allclose(run.variables["0/weight"].delta_norm, expected, rtol=2 * PRECISION)
    step(model, optimizer)  # it is closed
    assert recorder.last_step == 6


@pytest.mark.parametrize("named", [[1], [0, 1], []], ids=["one", "both", "none"])
def test_of_several_optimizers_the_named_one_counts_or_each(tmp_path, named):
    model = torch.nn.Sequential(*parts())
    both = [torch.optim.SGD(part.parameters(), 0.01) for part in model]
    recorder = pastnet.watch(model, tmp_path, [both[number] for number in named], every=1)
    for _ in range(3):
        step(model, *both)
    recorder.close()
    (run,) = pastnet.read(tmp_path).runs.values()
    assert recorder.last_step == (3 if len(named) == 1 else 6)
    assert len(run.notes) == (0 if len(named) == 1 else 1)


@pytest.mark.parametrize("steps", [0, 1])
def test_a_training_without_a_step_of_an_optimizer_says_so(tmp_path, caplog, steps):
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    recorder = pastnet.watch(model, tmp_path / "run", every=1)
    for _ in range(steps):
        step(model, optimizer)
    model.weight.data.mul_(0.9)  # as in a loop that updates by itself
    recorder.close()
    recorder.close()
    told = [record for record in caplog.records if str(tmp_path / "run") in record.getMessage()]
    assert len(told) == 1 - steps


def test_the_end_of_the_program_closes_the_log(tmp_path):
    program = f"""
import torch, tb_pastnet
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
tb_pastnet.watch(model, {str(tmp_path)!r}, every=10)
for _ in range(13):
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert done.stderr.startswith("PastNet: 3 records; nothing was frozen; no violations")
    (run,) = pastnet.read(tmp_path).runs.values()
    assert (run.steps.tolist(), run.closed) == ([1, 10, 13], True)


def test_a_directory_of_its_own_is_named_by_time(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = torch.nn.Linear(2, 1)
    recorder = pastnet.watch(model, every=1)
    step(model, torch.optim.SGD(model.parameters(), 0.1))
    recorder.close()
    (run,) = pastnet.read(tmp_path / "runs").runs.values()
    assert run.steps.tolist() == [1]


@pytest.mark.filterwarnings("ignore")  # Lightning's own
def test_a_trainer_of_lightning_gets_the_callback(tmp_path):
    lightning = pytest.importorskip("lightning.pytorch", reason="lightning isn't installed")

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.own = torch.nn.Linear(2, 1)

        def training_step(self, batch):
            return self.own(batch).sum()

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 0.1)

    quiet = dict.fromkeys(
        ("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary"), False
    )
    trainer = lightning.Trainer(accelerator="cpu", default_root_dir=tmp_path, max_epochs=1, **quiet)
    callback = pastnet.watch(trainer, every=2)
    assert callback in trainer.callbacks
    trainer.fit(Module(), torch.utils.data.DataLoader(torch.ones(5, 2)))
    (run,) = pastnet.read(tmp_path / "pastnet").runs.values()
    assert run.steps.tolist() == [1, 2, 4, 5]


@pytest.mark.filterwarnings("ignore")  # that library's own
def test_a_trainer_of_hugging_face_gets_the_callback(tmp_path):
    transformers = pytest.importorskip("transformers", reason="transformers isn't installed")
    pytest.importorskip("accelerate", reason="accelerate isn't installed")

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.own = torch.nn.Linear(2, 1)

        def forward(self, x, labels):
            return {"loss": (self.own(x) - labels).sum()}

    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path), report_to=[], use_cpu=True, disable_tqdm=True, max_steps=5,
        save_strategy="no", logging_strategy="no", per_device_train_batch_size=1,
    )  # fmt: skip
    data = [{"x": torch.ones(2), "labels": torch.ones(1)}] * 5
    trainer = transformers.Trainer(Model(), arguments, train_dataset=data)
    pastnet.watch(trainer, every=2)
    trainer.train()
    (run,) = pastnet.read(tmp_path / "pastnet").runs.values()
    assert run.steps.tolist() == [1, 2, 4, 5]


def test_an_optimizer_may_take_over_from_another(tmp_path):
    model = torch.nn.Sequential(*parts())
    recorder = pastnet.watch(model, tmp_path, every=1)
    for make in (torch.optim.SGD, torch.optim.Adam):
        optimizer = make(model.parameters(), 0.01)
        for _ in range(2):
            step(model, optimizer)
    recorder.close()
    (run,) = pastnet.read(tmp_path).runs.values()
    assert (run.steps.tolist(), dict(run.notes)) == ([1, 2, 3, 4], {})


def test_stop_is_for_a_trainer(tmp_path):
    with pytest.raises(InvalidArgument, match="a loop that no Recorder can end"):
        pastnet.watch(torch.nn.Linear(2, 1), tmp_path, on_violation="stop")
    lightning = pytest.importorskip("lightning.pytorch", reason="lightning isn't installed")
    trainer = lightning.Trainer(default_root_dir=tmp_path, accelerator="cpu", logger=False)
    assert pastnet.watch(trainer, on_violation="stop") in trainer.callbacks
