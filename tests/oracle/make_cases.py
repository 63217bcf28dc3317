"""Write the golden cases that the shipped pairs lack, from the float32 oracle (dflash2.py + transformers' Qwen3.5 text model).

usage: make_cases.py REPO OUT     (needs torch, transformers 5.17, safetensors; minutes on a GPU or a good CPU)

OUT/interval-bias, OUT/all-f32: random-weight pairs; OUT/extra.json: their cases and two more of tiny-code.
Copy OUT to tests/data/extra.
"""
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import torch
from safetensors.torch import load_file, save_file
from transformers import Qwen3_5ForCausalLM, Qwen3_5TextConfig
import dflash2 as D

REPO, OUT = sys.argv[1], sys.argv[2]
DEV = "cuda" if torch.cuda.is_available() else "cpu"
torch.backends.cuda.matmul.allow_tf32 = False
F32_NAMES = ("A_log", "dt_bias", "linear_attn.norm.weight")  # published checkpoints keep these in float32


def fill(module, seed, scale):
    g = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, p in module.named_parameters():
            x = torch.randn(p.shape, generator=g)
            if name.endswith("A_log"):
                x = 0.5 * x
            elif p.ndim == 1:
                x = 0.1 * x + (1.0 if name.endswith(("linear_attn.norm.weight",)) else 0.0)
            elif "conv1d" in name:
                x = 0.4 * x
            elif "base_kernel" in name:
                x = 0.2 * x
                x[:, 0] += 1.0
            elif "embed_tokens" in name or "lm_head" in name:
                x = 0.5 * x
            else:
                x = scale * x
            p.copy_(x)


def round_bf16(module, keep):
    with torch.no_grad():
        for name, p in module.named_parameters():
            if not name.endswith(keep):
                p.copy_(p.to(torch.bfloat16).float())


def write_pair(name, all_f32):
    hidden, vocab = 64, 320
    tc = dict(vocab_size=vocab, hidden_size=hidden, intermediate_size=160, num_hidden_layers=4, num_attention_heads=4,
              num_key_value_heads=2, head_dim=32, linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=16,
              linear_value_head_dim=16, linear_conv_kernel_dim=4, attn_output_gate=True, rms_norm_eps=1e-6,
              max_position_embeddings=1024, tie_word_embeddings=False, hidden_act="silu", attention_bias=False,
              layer_types=["linear_attention", "full_attention"] * 2, eos_token_id=0, bos_token_id=None, pad_token_id=None,
              rope_parameters=dict(rope_type="default", rope_theta=50000.0, partial_rotary_factor=0.5,
                                   mrope_section=[3, 3, 2], mrope_interleaved=True), partial_rotary_factor=0.5)
    target = Qwen3_5ForCausalLM(Qwen3_5TextConfig(**tc))
    dc = dict(architectures=["DFlash2DraftModel"], model_type="qwen3", attention_bias=True, hidden_act="silu",
              hidden_size=hidden, intermediate_size=96, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2, head_dim=16,
              layer_types=["sliding_attention", "full_attention", "sliding_attention"], sliding_window=12, rms_norm_eps=1e-6,
              max_position_embeddings=1024, num_target_layers=4, rope_parameters=dict(rope_theta=50000.0, rope_type="default"),
              tie_word_embeddings=False, vocab_size=vocab,
              dflash_config=dict(block_size=6, conv_group_size=8, conv_kernel_size=2, mask_token_id=vocab - 1, selector_rank=16,
                                 selector_top_k=8, target_layer_ids=[2, 0], output_multiplier=0.5))
    draft = D.DFlash2(dc)
    fill(target, 11 if all_f32 else 7, 0.15)
    fill(draft, 12 if all_f32 else 8, 0.15)
    if not all_f32:
        round_bf16(target, F32_NAMES)
        round_bf16(draft, ())
    target.to(DEV).eval().requires_grad_(False)
    draft.to(DEV).eval().requires_grad_(False)

    def stored(k, v, keep):
        v = v.detach().cpu().contiguous()
        return v if all_f32 or k.endswith(keep) else v.to(torch.bfloat16)

    for part in ("target", "draft"):
        os.makedirs(f"{OUT}/{name}/{part}", exist_ok=True)
    save_file({k: stored(k, v, F32_NAMES) for k, v in target.state_dict().items()}, f"{OUT}/{name}/target/model.safetensors")
    sd = {}
    for k, v in draft.state_dict().items():
        k2 = k + ".weight" if k.endswith("_codebook") and not all_f32 else k  # both spellings are in use
        sd[k2] = stored(k, v, ())
    save_file(sd, f"{OUT}/{name}/draft/model.safetensors")
    cfg = {k: v for k, v in tc.items() if k not in ("layer_types",)}
    cfg.update(architectures=["Qwen3_5ForCausalLM"], model_type="qwen3_5_text", full_attention_interval=2,
               dtype="float32" if all_f32 else "bfloat16")
    json.dump(cfg, open(f"{OUT}/{name}/target/config.json", "w"), indent=1)
    json.dump(dc, open(f"{OUT}/{name}/draft/config.json", "w"), indent=1)
    return target, draft


def load_tiny():
    text = json.load(open(f"{REPO}/scenarios/checkpoints/tiny-code/target/config.json"))["text_config"]
    target = Qwen3_5ForCausalLM(Qwen3_5TextConfig(**{k: v for k, v in text.items() if k != "dtype"}))
    sd = {}
    for i in (1, 2, 3):
        sd.update(load_file(f"{REPO}/scenarios/checkpoints/tiny-code/target/model-0000{i}-of-00003.safetensors"))
    sd = {k.replace("model.language_model.", "model."): v.float() for k, v in sd.items() if "visual" not in k and "mtp" not in k}
    target.load_state_dict(sd)
    dc = json.load(open(f"{REPO}/scenarios/checkpoints/tiny-code/draft/config.json"))
    draft = D.DFlash2(dc)
    draft.load_state_dict({k: v.float() for k, v in load_file(f"{REPO}/scenarios/checkpoints/tiny-code/draft/model.safetensors").items()})
    return target.to(DEV).eval().requires_grad_(False), draft.to(DEV).eval().requires_grad_(False)


def score_gap(steps):
    gaps = [1e9]
    for s in steps:
        for row in s.get("selector", []):
            a = sorted(row["scores"])
            gaps.append(a[-1] - a[-2])
    return min(gaps)


def case(pair, target, draft, prompt, n, stop=()):
    tap_ids = draft.c["dflash_config"]["target_layer_ids"]
    ids, margins = D.greedy(target, prompt, n, tap_ids, stop)
    spec, steps = D.dflash2_greedy(target, draft, target.get_input_embeddings(), target.lm_head, prompt, n, stop)
    z, _ = D.target_forward(target, prompt, tap_ids)
    top = z[-1].topk(8)
    gap = score_gap(steps)
    for s in steps:
        s.pop("selector", None)
    print(pair, len(prompt), "lossless", ids == spec, "margin %.4f" % min(margins), "score gap %.4f" % gap,
          "accepted", [s["accepted"] for s in steps], flush=True)
    return {"pair": pair, "prompt_ids": prompt, "max_new_tokens": n, "stop_ids": list(stop), "greedy": ids[len(prompt):],
            "dflash2": spec[len(prompt):], "min_margin": min(margins), "min_score_gap": gap,
            "first_logits_top8": {"ids": top.indices.tolist(), "values": [round(v, 5) for v in top.values.tolist()]}, "steps": steps}


def main():
    os.makedirs(OUT, exist_ok=True)
    cases = []
    for name, f32 in (("interval-bias", False), ("all-f32", True)):
        target, draft = write_pair(name, f32)
        g = torch.Generator().manual_seed(5)
        for length in (1, 5, 40):
            cases.append(case(name, target, draft, torch.randint(1, 319, (length,), generator=g).tolist(), 24))
    target, draft = load_tiny()
    golden = json.load(open(f"{REPO}/tests/data/goldens/tiny-code.json"))["cases"]
    long = [t for c in golden for t in c["prompt_ids"]][:600]
    cases.append(case("tiny-code", target, draft, long, 24))
    # A stop token that stands inside an accepted block, neither first nor last of it.
    for c in golden:
        done = False
        out = 1
        for s in c["steps"]:
            if s["accepted"] >= 3:
                stop = c["dflash2"][out + 1]
                if stop not in c["dflash2"][: out + 1]:
                    cases.append(case("tiny-code", target, draft, c["prompt_ids"], 96, (stop,)))
                    done = True
                    break
            out += s["emitted"]
        if done:
            break
    json.dump({"note": "float32 arithmetic over the stored weights, greedy; made by tests/oracle/make_cases.py", "cases": cases},
              open(f"{OUT}/extra.json", "w"))


main()
