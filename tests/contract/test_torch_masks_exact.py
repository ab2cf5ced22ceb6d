"""`pastnet.torch.Masks` holds every bit, and free weights train as by the rule of the masks."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs torch")

from tb_pastnet.torch.masks import held_elements  # noqa: E402
from tests.sampled import sampled  # noqa: E402
from tests.torch_held import STEPS, Training, bits, cases  # noqa: E402

pytestmark = pytest.mark.promise("torch_masks")


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(("name", "variant", "mode"), sampled(cases(), 19))
def test_held_bits_stay_and_free_ones_are_those_of_the_rule(
    name, variant, mode, packed, monkeypatch
):
    if packed:  # as large tensors are
        pytest.importorskip("numba", reason="needs numba")
        monkeypatch.setattr(held_elements, "PACKED_FROM", 1)
    ours, rule = (Training(name, variant, mode, ours) for ours in (True, False))
    for _ in range(STEPS):
        ours.step()
        rule.step()
    free, held = ours.held.through, ~ours.held.through
    before = ours.held.values
    assert torch.equal(bits(ours.weight)[held], bits(before)[held])
    assert not torch.equal(ours.weight[free], before[free])
    assert torch.isfinite(ours.weight).all()
    for own, other in zip(ours.module.parameters(), rule.module.parameters(), strict=True):
        assert torch.equal(bits(own), bits(other))
    ours.masks.close()


@pytest.mark.prove
@pytest.mark.filterwarnings("ignore")  # the compiler's own
@pytest.mark.parametrize("name", ["Adam", "AdamW", "SGD"])
@pytest.mark.parametrize("what", ["module", "step"])
def test_a_compiled_training_holds_every_bit_and_is_that_of_the_rule_compiled(what, name, figure):
    """A compiled step rounds a little differently from an eager one, with masks or without."""
    ours, rule = (
        compiled(Training(name, "decay", "compiled", ours), what) for ours in (True, False)
    )
    for _ in range(30):
        ours.step()
        rule.step()
    held, weight = ~ours.held.through, ours.weight.detach()
    assert torch.equal(bits(weight)[held], bits(ours.held.values)[held])
    most = float((weight - rule.weight).abs().max() / weight.abs().max())
    figure(f"{name}, {what} compiled: {most:.1g} of the largest weight after 30 steps")
    assert most <= 1e-6
    ours.masks.close()


def compiled(training, what):
    torch.compiler.reset()
    if what == "module":
        training.forward = torch.compile(training.module)
    else:
        (optimizer,) = training.optimizers
        optimizer.step = torch.compile(optimizer.step)
    return training
