"""Models that PEFT wraps, and fused experts, as those who fine-tune know them."""

from __future__ import annotations

import numpy as np
import pytest

import tb_pastnet as pastnet

torch = pytest.importorskip("torch", reason="torch isn't installed: an extra of its own")
transformers = pytest.importorskip("transformers", reason="transformers isn't installed")

from tb_pastnet.torch.module_weights import network_of  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")  # that library's own

SMALL = {
    "vocab_size": 60, "hidden_size": 8, "intermediate_size": 12, "num_hidden_layers": 1,
    "num_attention_heads": 2, "num_key_value_heads": 2,
}  # fmt: skip


def llama():
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**SMALL))


MODELS = {
    "bert": (
        lambda: transformers.BertForSequenceClassification(transformers.BertConfig(**SMALL)),
        {"target_modules": ["query", "value"], "modules_to_save": ["classifier"]},
    ),
    "gpt2": (
        lambda: transformers.GPT2LMHeadModel(
            transformers.GPT2Config(vocab_size=60, n_embd=8, n_layer=1, n_head=2)
        ),
        {"target_modules": ["c_attn"], "fan_in_fan_out": True},
    ),
    "llama": (llama, {"target_modules": "all-linear"}),
    "dora": (llama, {"target_modules": "all-linear", "use_dora": True}),
    "vit": (
        lambda: transformers.ViTForImageClassification(
            transformers.ViTConfig(**SMALL, image_size=8, patch_size=4)
        ),
        {"target_modules": "all-linear", "modules_to_save": ["classifier"]},
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_weights_of_a_model_have_their_names_under_peft(name):
    peft = pytest.importorskip("peft", reason="peft isn't installed")
    make, settings = MODELS[name]
    model = make()
    plain = {each.name: each.shape for each in network_of(model).weights}
    wrapped = peft.get_peft_model(model, peft.LoraConfig(r=2, **settings))
    now = network_of(wrapped)
    found = {each.name: each.shape for each in now.weights}
    assert plain.items() <= found.items()
    trained = {each.name for each in now.weights if each.entry.trained()}
    assert trained.isdisjoint(plain) or trained & plain.keys() == {
        "classifier/weight", "classifier/bias"
    }  # fmt: skip
    # A user may still name them as torch does.
    key = next(key for key in wrapped.state_dict() if key.endswith("base_layer.weight"))
    assert len(network_of(wrapped, [key]).weights) == 1


def test_what_has_one_name_without_wrappers_keeps_them():
    peft = pytest.importorskip("peft", reason="peft isn't installed")
    wrapped = peft.get_peft_model(llama(), peft.LoraConfig(r=2, target_modules=["q_proj"]))
    wrapped.lm_head = torch.nn.Linear(8, 60, bias=False)  # beside that of the network
    names = {each.name for each in network_of(wrapped).weights}
    assert {"lm_head/weight", "base_model/model/lm_head/weight"} & names
    assert len(names) == len(network_of(wrapped).weights)


MIXTURES = {
    "Mixtral": {"num_local_experts": 3},
    "Qwen3Moe": {"num_experts": 3, "moe_intermediate_size": 12, "decoder_sparse_step": 1},
    "DeepseekV3": {
        "n_routed_experts": 3, "moe_intermediate_size": 12, "first_k_dense_replace": 0,
        "n_group": 1, "topk_group": 1, "num_experts_per_tok": 1, "kv_lora_rank": 4,
        "q_lora_rank": 4, "qk_rope_head_dim": 2, "qk_nope_head_dim": 2, "v_head_dim": 2,
    },
    "GptOss": {"num_local_experts": 3, "head_dim": 4},
    "Jamba": {"num_experts": 3, "expert_layer_offset": 0, "expert_layer_period": 1,
              "attn_layer_offset": 0, "attn_layer_period": 1, "use_mamba_kernels": False},
}  # fmt: skip


def experts_of(name):
    config = getattr(transformers, f"{name}Config")(**{**SMALL, **MIXTURES[name]})
    torch.manual_seed(0)
    model = getattr(transformers, f"{name}ForCausalLM")(config)
    (_, experts), *_ = (
        each for each in model.named_modules() if type(each[1]).__name__.endswith("Experts")
    )
    weights = {each.entry.key: each for each in network_of(experts).weights}
    for weight in weights.values():
        torch.nn.init.uniform_(weight.entry.stored, 0.5, 1.5)
    return experts, weights


@pytest.mark.parametrize("name", MIXTURES)
def test_a_channel_of_fused_experts_is_an_output_of_one_of_them(name):
    experts, weights = experts_of(name)
    weight = weights["down_proj"]
    assert (weight.axis.channels, weight.axis.verified) == (3 * 8, True)
    assert (weights["gate_up_proj"].axis.channels, weights["gate_up_proj"].axis.elements) == (72, 8)

    def outputs():
        """Of each expert, for one token."""
        with torch.no_grad():
            return torch.stack([
                experts(torch.ones(1, 8), torch.tensor([[each]]), torch.ones(1, 1))[0]
                for each in range(3)
            ])  # fmt: skip

    numbers = np.arange(weight.axis.channels)[:, None].repeat(weight.axis.elements, 1)
    placed = np.empty(weight.shape, np.int64)
    placed.ravel()[weight.axis.split(np.arange(placed.size).reshape(weight.shape)).ravel()] = (
        numbers.ravel()
    )
    before = outputs()
    for channel in range(weight.axis.channels):
        there = torch.from_numpy(placed == channel)
        kept = weight.entry.stored.detach().clone()
        with torch.no_grad():
            weight.entry.stored[there] += 0.5
            moved = outputs() != before
            weight.entry.stored.copy_(kept)
        assert moved.ravel().nonzero().ravel().tolist() == [channel]


def without_some(weight):
    weight.grad[4:6] = 0


def test_experts_without_a_gradient_are_told_by_number(tmp_path):
    torch.manual_seed(0)
    config = transformers.MixtralConfig(
        **SMALL, num_local_experts=8, num_experts_per_tok=2, bos_token_id=0, eos_token_id=0
    )
    model = transformers.MixtralForCausalLM(config)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3, weight_decay=0.0)
    for weight in model.parameters():
        if weight.ndim == 3:
            weight.register_post_accumulate_grad_hook(without_some)
    with pastnet.torch.Recorder(tmp_path, model, optimizer, every=1) as recorder:
        for _ in range(25):
            ids = torch.randint(0, 60, (8, 12))
            optimizer.zero_grad()
            model(ids, labels=ids).loss.backward()
            optimizer.step()
            recorder.record()
    found = [each for each in pastnet.read(tmp_path).findings() if each.kind == "stalled"]
    assert [each.text.partition(":")[0] for each in found] == [
        "experts 4 to 5 of model/layers/0/mlp/experts"
    ]
