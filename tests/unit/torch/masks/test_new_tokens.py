"""New tokens of a language model: their rows train, next to LoRA; the old ones stay bit for bit."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs torch")
transformers = pytest.importorskip("transformers", reason="transformers isn't installed")

import tb_pastnet as pastnet  # noqa: E402

OLD, NEW = 40, 47
pytestmark = pytest.mark.filterwarnings("ignore")  # those libraries' own


def language_model():
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=OLD,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        tie_word_embeddings=True,
    )
    model = transformers.LlamaForCausalLM(config)
    model.resize_token_embeddings(NEW)
    return model


def trainable(model):
    return [each for each in model.parameters() if each.requires_grad]


def train(model, optimizer, steps):
    for step in steps:
        optimizer.zero_grad()
        random = torch.Generator().manual_seed(step)
        tokens = torch.randint(0, NEW, (4, 12), generator=random)
        model(input_ids=tokens, labels=tokens).loss.backward()
        torch.nn.utils.clip_grad_norm_(trainable(model), 0.5)
        optimizer.step()


def with_masks(adapted):
    model = language_model().requires_grad_(False)
    network = model
    if adapted:
        peft = pytest.importorskip("peft", reason="peft isn't installed")
        torch.manual_seed(1)
        network = peft.get_peft_model(model, peft.LoraConfig(target_modules=["q_proj", "v_proj"]))
    rows = model.get_input_embeddings().weight.requires_grad_(True)
    optimizer = torch.optim.AdamW(trainable(network), lr=1e-2, weight_decay=0.1)
    masks = pastnet.torch.Masks(network, optimizer)
    masks.freeze_rows(rows, upto=OLD)
    return model, network, optimizer, masks, rows


@pytest.mark.parametrize("adapted", [False, True], ids=["plain", "LoRA"])
def test_only_new_rows_train_and_a_resumed_training_is_the_same(adapted, tmp_path):
    model, network, optimizer, masks, rows = with_masks(adapted)
    before = rows.detach().clone()
    assert model.lm_head.weight is rows
    train(network, optimizer, range(6))
    assert torch.equal(rows[:OLD], before[:OLD])
    assert (rows[OLD:] != before[OLD:]).any(1).all()

    model, network, optimizer, masks, rows = with_masks(adapted)
    train(network, optimizer, range(3))
    saved = {"network": network.state_dict(), "optimizer": optimizer.state_dict()}
    torch.save({**saved, "masks": masks.state_dict()}, tmp_path / "all.pt")
    model, network, optimizer, masks, again = with_masks(adapted)
    loaded = torch.load(tmp_path / "all.pt", weights_only=True)
    network.load_state_dict(loaded["network"])
    optimizer.load_state_dict(loaded["optimizer"])
    assert masks.load_state_dict(loaded["masks"])
    train(network, optimizer, range(3, 6))
    whole = with_masks(adapted)
    train(whole[1], whole[2], range(6))
    for own, other in zip(network.parameters(), whole[1].parameters(), strict=True):
        assert torch.equal(own, other)
    if not adapted:
        model.save_pretrained(tmp_path / "model")
        plain, info = transformers.LlamaForCausalLM.from_pretrained(
            tmp_path / "model", output_loading_info=True
        )
        assert not info["unexpected_keys"]
        assert not info["missing_keys"]
        assert torch.equal(plain.get_input_embeddings().weight, again)
