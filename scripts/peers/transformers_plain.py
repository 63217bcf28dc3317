#!/usr/bin/env python3
"""Plain greedy decoding of the same shapes by transformers, for comparison with warmleg's plain arm.

  python3 scripts/peers/transformers_plain.py --mode eager
  python3 scripts/peers/transformers_plain.py --mode static      static cache, eager
  python3 scripts/peers/transformers_plain.py --mode compiled    static cache, torch.compile
  options: --config FILE --context 512 --tokens 128 --repeats 3 --device cuda:0 --blocks N

Makes a model from the config with made-up bf16 weights on the device, prefills `context` made-up ids, then makes
`tokens` tokens one by one with argmax on the device; the first `warm` of them, and everything that compiles, are not
timed. Prints one JSON object (warmleg.peer/1); when the peer cannot run the shape, the object holds its error and the
exit code is 1. Needs torch and transformers, which warmleg itself does not.

Compared: plain decode of one sequence at the same widths, depth, context and token count, on the same card in the same
sitting, weights bf16. Not compared: activations (bf16 here, float32 between the matrix products in warmleg), the KV cache
(bf16 here, float32 in warmleg), prefill kernels, drafting, text.
"""
import argparse
import json
import pathlib
import statistics
import sys
import time
import traceback

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CONFIG = ROOT / "scenarios/checkpoints/qwen3.8-27b-shape/target/config.json"


def load(args, torch):
    from transformers import Qwen3_5ForCausalLM, Qwen3_5TextConfig

    raw = json.loads(pathlib.Path(args.config).read_text())
    text = dict(raw.get("text_config", raw))
    if args.blocks:
        text["layer_types"] = text["layer_types"][:args.blocks]
        text["num_hidden_layers"] = args.blocks
    config = Qwen3_5TextConfig(**text)
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("meta"):
        model = Qwen3_5ForCausalLM(config)
    model = model.to_empty(device=args.device).eval()
    generator = torch.Generator(device=args.device).manual_seed(1)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() > 1:
                parameter.normal_(0, parameter.shape[-1] ** -0.5, generator=generator)
            else:
                parameter.zero_()
    # Buffers lie on no device yet: rotary frequencies are made anew.
    for module in model.modules():
        if hasattr(module, "inv_freq") and hasattr(module, "rope_init_fn"):
            fresh = type(module)(config, device=args.device)
            module.inv_freq = fresh.inv_freq
            if hasattr(fresh, "original_inv_freq"):
                module.original_inv_freq = fresh.original_inv_freq
        elif hasattr(module, "inv_freq"):
            fresh = type(module)(config).to(args.device)
            module.inv_freq = fresh.inv_freq
    return model, config


def measure(args, torch):
    began = time.monotonic()
    model, config = load(args, torch)
    torch.cuda.synchronize()
    made_s = time.monotonic() - began
    weights = sum(p.numel() * p.element_size() for p in model.parameters())

    from transformers import DynamicCache, StaticCache

    generator = torch.Generator(device=args.device).manual_seed(2)
    prompt = torch.randint(0, config.vocab_size, (1, args.context), device=args.device, generator=generator)
    total = args.context + args.warm + args.tokens

    def cache():
        if args.mode == "eager":
            return DynamicCache(config=config)
        return StaticCache(config=config, max_cache_len=total + 1)

    def forward(ids, position, past):
        out = model(input_ids=ids, position_ids=position, past_key_values=past, use_cache=True, logits_to_keep=1)
        return out.logits[:, -1].argmax(-1, keepdim=True)

    step = torch.compile(forward, mode="reduce-overhead") if args.mode == "compiled" else forward
    runs, prefills, warm_s = [], [], 0.0
    with torch.inference_mode():
        for repeat in range(args.repeats + 1):
            past = cache()
            torch.cuda.synchronize()
            begin = time.monotonic()
            token = forward(prompt, torch.arange(args.context, device=args.device)[None], past)
            torch.cuda.synchronize()
            prefills.append(time.monotonic() - begin)
            position = torch.full((1, 1), args.context, device=args.device)
            begin = time.monotonic()
            for i in range(args.warm + args.tokens):
                if i == args.warm:
                    torch.cuda.synchronize()
                    warm_s += time.monotonic() - begin if repeat == 0 else 0
                    begin = time.monotonic()
                token = step(token, position, past).clone()
                position = position + 1
            torch.cuda.synchronize()
            if repeat > 0:  # the first one warms
                runs.append(args.tokens / (time.monotonic() - begin))
    return {"weight_bytes": weights, "made_s": made_s, "warm_s": warm_s, "decode_tok_s": statistics.median(runs),
            "decode_tok_s_runs": runs, "prefill_s": statistics.median(prefills[1:]),
            "memory_bytes": torch.cuda.max_memory_allocated()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mode", choices=("eager", "static", "compiled"), default="eager")
    parser.add_argument("--config", default=str(CONFIG))
    parser.add_argument("--context", type=int, default=512)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--warm", type=int, default=8)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--blocks", type=int, default=0, help="fewer blocks than the config has, to try it out")
    parser.add_argument("--device", default="cuda:0")
    args = parser.parse_args()
    out = {"schema": "warmleg.peer/1", "peer": "transformers", "mode": args.mode, "context": args.context,
           "tokens": args.tokens, "blocks": args.blocks or None, "decode_tok_s": None, "error": None}
    code = 0
    try:
        import torch
        import transformers

        out["versions"] = {"torch": torch.__version__, "transformers": transformers.__version__}
        out["device"] = torch.cuda.get_device_name(args.device)
        out.update(measure(args, torch))
    except Exception as error:  # whatever the peer says is the result
        out["error"] = f"{type(error).__name__}: {error}"[:2000]
        traceback.print_exc()
        code = 1
    print(json.dumps(out))
    return code


if __name__ == "__main__":
    sys.exit(main())
