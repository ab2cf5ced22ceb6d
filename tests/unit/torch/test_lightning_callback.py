"""A training of Lightning's Trainer, in its own steps."""

from __future__ import annotations

import numpy as np
import pytest

import tb_pastnet as pastnet
from tb_pastnet.core.quantize import PRECISION

torch = pytest.importorskip("torch", reason="torch isn't installed: an extra of its own")
lightning = pytest.importorskip("lightning.pytorch", reason="lightning isn't installed")

pytestmark = pytest.mark.filterwarnings("ignore")  # Lightning's own, of workers and deprecations


class Module(lightning.LightningModule):
    def __init__(self, optimizers=1):
        super().__init__()
        torch.manual_seed(1)
        self.layer = torch.nn.Linear(3, 2)
        self.head = torch.nn.Linear(2, 1)
        self.automatic_optimization = optimizers == 1

    def training_step(self, batch):
        loss = self.head(self.layer(batch)).square().mean()
        if self.automatic_optimization:
            return loss
        for optimizer in self.optimizers():
            optimizer.zero_grad()
        self.manual_backward(loss)
        for optimizer in self.optimizers():
            optimizer.step()
        return None

    def configure_optimizers(self):
        if self.automatic_optimization:
            return torch.optim.SGD(self.parameters(), lr=0.1)
        layers = (self.layer, self.head)
        return [torch.optim.SGD(layer.parameters(), lr=0.1) for layer in layers]


def fit(folder, module, callback, checkpoint=None, others=(), **settings):
    trainer = lightning.Trainer(
        accelerator="cpu",
        default_root_dir=folder,
        logger=False,
        callbacks=[callback, *others],
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        **{"max_epochs": 1, **settings},
    )
    trainer.fit(module, torch.utils.data.DataLoader(torch.ones(12, 3)), ckpt_path=checkpoint)
    return trainer


def steps(folder):
    (run,) = pastnet.read(folder / "log").runs.values()
    assert dict(run.notes) == {}
    return run.steps.tolist()


def test_steps_are_those_of_the_trainer(tmp_path):
    callback = pastnet.torch.LightningCallback(tmp_path / "log", every=5)
    try:
        raise MemoryError  # of a larger batch, say
    except MemoryError:
        fit(tmp_path, Module(), callback)
    assert steps(tmp_path) == [1, 5, 10, 12]  # the last one, too
    assert pastnet.read(tmp_path / "log").runs["."].closed
    assert callback.recorder is None


def test_batches_of_an_accumulated_gradient_are_no_steps(tmp_path):
    callback = pastnet.torch.LightningCallback(tmp_path / "log", every=1)
    fit(tmp_path, Module(), callback, accumulate_grad_batches=4)
    assert steps(tmp_path) == [1, 2, 3]


def test_the_steps_of_several_optimizers_are_all_counted(tmp_path):
    callback = pastnet.torch.LightningCallback(tmp_path / "log", every=8)
    trainer = fit(tmp_path, Module(2), callback)
    assert trainer.global_step == 24
    assert steps(tmp_path)[-1] == 24
    (run,) = pastnet.read(tmp_path / "log").runs.values()
    assert list(run.variables) == ["layer/weight", "layer/bias", "head/weight", "head/bias"]


def test_a_checkpoint_goes_on_in_the_log(tmp_path):
    callback = pastnet.torch.LightningCallback(tmp_path / "log", every=6)
    trainer = fit(tmp_path, Module(), callback)
    trainer.save_checkpoint(tmp_path / "last.ckpt")
    fit(tmp_path, Module(), callback, tmp_path / "last.ckpt", max_epochs=2)
    assert steps(tmp_path) == [1, 6, 12, 13, 18, 24]


def test_an_exception_closes_the_log(tmp_path):
    class Failing(Module):
        def on_train_batch_start(self, batch, batch_idx):
            if self.trainer.global_step == 3:
                raise RuntimeError("out of memory")

    callback = pastnet.torch.LightningCallback(tmp_path / "log", every=1)
    with pytest.raises(RuntimeError, match="out of memory"):
        fit(tmp_path, Failing(), callback)
    assert callback.recorder is None
    assert steps(tmp_path) == [1, 2, 3]
    assert not pastnet.read(tmp_path / "log").runs["."].closed


class Best(lightning.Callback):
    """Keeps the weights of the first epoch, and loads them at the end."""

    def on_train_epoch_end(self, trainer, pl_module):
        if trainer.current_epoch == 0:
            self.kept = {name: each.clone() for name, each in pl_module.state_dict().items()}

    def on_fit_end(self, trainer, pl_module):
        pl_module.load_state_dict(self.kept)


ENDS = {
    "SWA": lambda: lightning.callbacks.StochasticWeightAveraging(swa_lrs=0.05),
    "average": lightning.callbacks.WeightAveraging,
    "best": Best,
}


@pytest.mark.parametrize("end", ENDS)
def test_weights_that_are_put_in_place_at_the_end_are_recorded(end, tmp_path):
    module = Module()
    callback = pastnet.torch.LightningCallback(tmp_path / "log", every=5)
    trainer = fit(tmp_path, module, callback, others=[ENDS[end]()], max_epochs=4)
    assert steps(tmp_path)[-2:] == [trainer.global_step, trainer.global_step + 1]
    (run,) = pastnet.read(tmp_path / "log").runs.values()
    for name, weight in module.state_dict().items():
        expected = np.linalg.norm(weight.double().numpy().reshape(len(weight), -1), axis=1)
        variable = run.variables[name.replace(".", "/")]
        np.testing.assert_allclose(variable.norm[-1], expected, PRECISION)
        assert variable.past_steps[-1] < trainer.global_step


def test_a_violation_may_end_the_training(tmp_path):
    class Leaking(Module):
        def on_train_start(self):
            self.layer.requires_grad_(False)

        def on_train_batch_start(self, batch, batch_idx):
            if self.trainer.global_step == 3:
                self.layer.weight.data.add_(1)

    callback = pastnet.torch.LightningCallback(tmp_path / "log", every=1, on_violation="stop")
    trainer = fit(tmp_path, Leaking(), callback)
    assert trainer.global_step == 4
    (run,) = pastnet.read(tmp_path / "log").runs.values()
    assert {violation.cause for violation in run.violations} == {"written"}


def test_settings_that_cannot_be_used_are_refused_at_once(tmp_path):
    with pytest.raises(pastnet.errors.InvalidArgument, match="expected every= a whole number"):
        pastnet.torch.LightningCallback(tmp_path / "log", every=0)
