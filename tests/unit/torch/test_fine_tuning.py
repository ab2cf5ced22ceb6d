"""Models that PEFT wraps, and fused experts, as those who fine-tune know them."""

from __future__ import annotations

import io

import numpy as np
import pytest

import tb_pastnet as pastnet
from tb_pastnet.cli.main import main

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


def merged(layer):
    """The weight of a layer of PEFT with one adapter, as its papers define it."""
    arrays = {name: each.detach().double().numpy() for name, each in layer.named_parameters()}
    a, b = arrays["lora_A.default.weight"], arrays["lora_B.default.weight"]
    product = layer.scaling["default"] * (b @ a)
    total = arrays["base_layer.weight"] + (product.T if layer.fan_in_fan_out else product)
    magnitude = arrays.get("lora_magnitude_vector.default.weight")
    if magnitude is None:
        return total
    return magnitude[:, None] / np.linalg.norm(total, axis=1, keepdims=True) * total


@pytest.mark.parametrize("name", MODELS)
def test_a_layer_with_lora_is_the_weight_that_a_merge_makes(name):
    peft = pytest.importorskip("peft", reason="peft isn't installed")
    make, settings = MODELS[name]
    wrapped = peft.get_peft_model(make(), peft.LoraConfig(r=2, lora_alpha=3, **settings))
    for key, each in wrapped.named_parameters():
        if "lora_" in key:
            torch.nn.init.uniform_(each, 0.5, 1.5)
    network = network_of(wrapped)
    drawn = [each for each in network.weights if each.name.endswith("/lora_weight")]
    mains = {each.id: each.main for each in network.layers}
    adapted = [each for each in wrapped.modules() if hasattr(each, "lora_A")]
    assert [each.entry.owner for each in drawn] == adapted
    for weight in drawn:
        np.testing.assert_allclose(weight.effective(), merged(weight.entry.owner), rtol=1e-5)
        assert mains[weight.layer] == weight.name
        base = next(each for each in network.weights if each.layer == weight.layer)
        assert (weight.axis, weight.kind) == (base.axis, base.kind)
    assert not [each.id for each in network.layers if "lora" in each.id]


def small(adapters=("default",), **settings):
    """A layer with adapters, whose matrices B are random."""
    peft = pytest.importorskip("peft", reason="peft isn't installed")
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(6, 4, bias=False))
    config = peft.LoraConfig(r=2, target_modules=["0"], init_lora_weights=False, **settings)
    wrapped = peft.get_peft_model(model, config, adapter_name=adapters[0])
    for name in adapters[1:]:
        wrapped.add_adapter(name, config)
    return wrapped, wrapped.base_model.model[0]


def recorded(logdir, model, changes, optimizer=None):
    """The run of a training in which `changes` are made, each before a record."""
    with pastnet.torch.Recorder(logdir, model, optimizer, every=1, initial_step=0) as recorder:
        for step, change in enumerate(changes, 1):
            with torch.no_grad():
                change()
            recorder.record(step)
    return pastnet.read(logdir).runs["."]


def test_its_records_are_those_of_base_and_matrices(tmp_path):
    model, layer = small()
    values = [merged(layer)]

    def move():
        layer.lora_B["default"].weight[::2] += 0.1
        values.append(merged(layer))

    drawn = recorded(tmp_path, model, [move] * 3).variables["0/lora_weight"]
    moved = np.linalg.norm(np.diff(values, axis=0), axis=2)
    np.testing.assert_allclose(drawn.norm, np.linalg.norm(values[1:], axis=2), rtol=0.023)
    np.testing.assert_allclose(drawn.delta_norm[:, ::2], moved[:, ::2], rtol=0.023)
    assert not drawn.delta_norm[:, 1::2].any()
    assert drawn.moved[1:].tolist() == [[1, 0, 1, 0]] * 2


def test_a_base_that_moves_is_a_violation_of_the_base_and_leaves_no_past(tmp_path):
    model, layer = small()
    changes = [lambda: None, lambda: layer.base_layer.weight[1].add_(1), lambda: None]
    run = recorded(tmp_path, model, changes)
    assert {(each.variable, each.channel) for each in run.violations} == {("0/weight", 1)}
    assert np.isnan(run.variables["0/lora_weight"].delta_norm).tolist() == [
        [False] * 4, [False, True, False, False], [False] * 4
    ]  # fmt: skip


def trained(logdir, model, parameters, each=lambda step: None, steps=25):
    """The findings by kind of a training whose optimizer has some parameters."""
    optimizer = torch.optim.SGD(parameters, 0.1)
    with pastnet.torch.Recorder(logdir, model, optimizer, every=1) as recorder:
        for step in range(1, steps + 1):
            each(step)
            optimizer.zero_grad()
            model(torch.ones(2, 6)).sum().backward()
            optimizer.step()
            recorder.record(step)
    found = pastnet.read(logdir).findings()
    return {each.kind: (each.layers, each.channels, each.first_step, each.cause) for each in found}


def test_an_adapter_that_adds_nothing_is_stalled_for_the_cause_of_its_matrices(tmp_path):
    model, layer = small()
    torch.nn.init.zeros_(layer.lora_B["default"].weight)
    found = trained(tmp_path / "out", model, [torch.nn.Parameter(torch.ones(1))])
    assert found["stalled"] == (("0",), 4, 1, "no_optimizer")
    layer.lora_B["default"].weight.register_hook(torch.zeros_like)
    found = trained(tmp_path / "zero", model, model.parameters())
    assert found["stalled"] == (("0",), 4, 1, "zero_adapter")


def test_an_adapter_that_is_switched_on_is_a_finding(tmp_path):
    model, _ = small(("a", "b"))
    names = {each.name for each in network_of(model).weights}
    assert names == {
        "0/weight", "0/lora_weight",
        *(f"0/lora_{matrix}/{adapter}/weight" for matrix in "AB" for adapter in "ab"),
    }  # fmt: skip
    found = trained(
        tmp_path, model, model.parameters(), lambda step: step == 7 and model.set_adapter("b")
    )
    assert found["unfrozen"] == (("0",), 4, 7, None)


def test_what_is_merged_or_disabled_is_what_the_layer_computes_with(tmp_path):
    model, layer = small()
    weight = next(each for each in network_of(model).weights if each.name == "0/lora_weight")
    whole, base = merged(layer), layer.base_layer.weight.detach().clone()
    with model.disable_adapter():
        np.testing.assert_array_equal(weight.effective(), base)
    model.merge_adapter()
    np.testing.assert_allclose(weight.effective(), whole, rtol=1e-5)
    model.unmerge_adapter()
    np.testing.assert_allclose(weight.effective(), whole, rtol=1e-5)


def test_past_copies_of_it_have_no_values_of_the_base():
    model, _ = small()
    weight = next(each for each in network_of(model).weights if each.name == "0/lora_weight")
    past = weight.snapshot()
    assert past.base is None
    assert sum(each.numel() for each in past.added[0][:2]) == 2 * (4 + 6)
    model.base_model.model[0].base_layer.requires_grad_(True)  # then it has to be copied
    assert weight.snapshot().base.shape == (4, 6)


def test_what_has_one_name_without_wrappers_keeps_them():
    peft = pytest.importorskip("peft", reason="peft isn't installed")
    wrapped = peft.get_peft_model(llama(), peft.LoraConfig(r=2, target_modules=["q_proj"]))
    wrapped.lm_head = torch.nn.Linear(8, 60, bias=False)  # beside that of the network
    names = {each.name for each in network_of(wrapped).weights}
    assert {"lm_head/weight", "base_model/model/lm_head/weight"} & names
    assert len(names) == len(network_of(wrapped).weights)


def test_all_names_of_a_shared_tensor_find_it(tmp_path):
    config = transformers.LlamaConfig(**SMALL, tie_word_embeddings=True)
    model = transformers.LlamaForCausalLM(config).requires_grad_(False)
    with pastnet.torch.Recorder(tmp_path, model, None, every=1) as recorder:
        for step in range(3):
            recorder.record(step)
    run = pastnet.read(tmp_path).runs["."]
    assert run.variables["lm_head/weight"].id == "model/embed_tokens/weight"
    assert run.layers["lm_head"].id == "model/embed_tokens"
    asked = ["verify", str(tmp_path), "--frozen", "lm_head.weight"]
    assert main(asked, io.StringIO(), io.StringIO()) == 0


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


def test_offloaded_weights_are_listed_with_their_reason(tmp_path):
    accelerate = pytest.importorskip("accelerate", reason="accelerate isn't installed")
    base = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)).requires_grad_(False)
    accelerate.cpu_offload(base[0])
    model = torch.nn.Sequential(base, torch.nn.Linear(4, 2))
    optimizer = torch.optim.SGD(model[1].parameters(), 0.1)
    with pastnet.torch.Recorder(tmp_path, model, optimizer, every=1) as recorder:
        for step in (1, 2):
            optimizer.zero_grad()
            model(torch.ones(1, 4)).sum().backward()
            optimizer.step()
            recorder.record(step)
    (run,) = pastnet.read(tmp_path).runs.values()
    assert {*run.variables} == {"0/1/weight", "0/1/bias", "1/weight", "1/bias"}
    assert set(run.skipped) == {"0/0/weight", "0/0/bias"}
    assert "offloaded" in str(run.skipped)
