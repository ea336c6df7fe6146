"""The tools of the scenarios besides the programs: `tools.py config|weights|ask|hold|group|arguments ...`."""

from __future__ import annotations

import json
import os
import socket
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path


def config(path: str, changed: str) -> None:
    values = json.loads(Path(path).read_text()) | json.loads(changed)
    Path(path).write_text(json.dumps({name: value for name, value in values.items() if value is not None}, indent=2))


def weights(folder: str) -> None:
    """A checkpoint of zeros with the names of Qwen3, in two shards."""
    import torch  # type: ignore[import-not-found,unused-ignore]
    from safetensors.torch import save_file  # type: ignore[import-not-found,unused-ignore]

    told = json.loads((Path(folder) / "config.json").read_text())
    wide, deep, heads = told["hidden_size"], told["intermediate_size"], told["head_dim"]
    q, kv = told["num_attention_heads"] * heads, told["num_key_value_heads"] * heads
    shapes = {
        "self_attn.q_proj": (q, wide), "self_attn.k_proj": (kv, wide), "self_attn.v_proj": (kv, wide),
        "self_attn.o_proj": (wide, q), "self_attn.q_norm": (heads,), "self_attn.k_norm": (heads,),
        "mlp.gate_proj": (deep, wide), "mlp.up_proj": (deep, wide), "mlp.down_proj": (wide, deep),
        "input_layernorm": (wide,), "post_attention_layernorm": (wide,),
    }  # fmt: skip
    layers = range(told["num_hidden_layers"])
    named = {f"model.layers.{n}.{name}.weight": shape for n in layers for name, shape in shapes.items()}
    named |= {"model.embed_tokens.weight": (told["vocab_size"], wide), "model.norm.weight": (wide,)}
    named |= {"lm_head.weight": (told["vocab_size"], wide)}
    index: dict[str, str] = {}
    names = sorted(named)
    for number, part in enumerate((names[: len(names) // 2], names[len(names) // 2 :]), 1):
        file = f"model-0000{number}-of-00002.safetensors"
        tensors = {name: torch.zeros(named[name], dtype=torch.bfloat16) for name in part}
        save_file(tensors, str(Path(folder) / file), metadata={"format": "pt"})
        index |= dict.fromkeys(part, file)
    text = json.dumps({"metadata": {"total_size": 1}, "weight_map": index})
    (Path(folder) / "model.safetensors.index.json").write_text(text)


def ask_server(url: str, body: str, key: str) -> None:
    """One request as `curl -i` shows it."""
    shown = f" -d '{body[:300]}'" if body else ""
    print(f"$ curl -i {url}" + (f" -H 'Authorization: Bearer {key}'" if key else "") + shown)
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
    request = urllib.request.Request(url, body.encode() if body else None, headers)
    try:
        with urllib.request.urlopen(request, timeout=float(os.environ.get("ASK_SECONDS", "20"))) as reply:
            print(f"HTTP/1.1 {reply.status} {reply.reason}\n{reply.read().decode(errors='replace')}")
    except urllib.error.HTTPError as error:
        print(f"HTTP/1.1 {error.code} {error.reason}\n{error.read().decode(errors='replace')}")
    except OSError as error:
        print(f"curl: {error}")


def hold_memory(share: str) -> None:
    """Take that share of the GPU's free memory until killed."""
    import torch  # type: ignore[import-not-found,unused-ignore]

    held = torch.empty(int(torch.cuda.mem_get_info()[0] * float(share)), dtype=torch.uint8, device="cuda")
    print(f"holding {held.numel()} bytes", flush=True)
    time.sleep(600)


def join_group(backend: str, seconds: str, *steps: str) -> None:
    """One rank of a torch.distributed group (RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT as usual).

    steps: reduce[:ELEMENTS], wait:SECONDS, loop (reduce until it fails), skip (this rank does not call), exit, shape.
    """
    import torch  # type: ignore[import-not-found,unused-ignore]
    import torch.distributed as dist  # type: ignore[import-not-found,unused-ignore]

    rank = int(os.environ["RANK"])
    print(f"[rank{rank}] {socket.gethostname()} joins over {backend}", flush=True)
    dist.init_process_group(backend, timeout=timedelta(seconds=float(seconds)))
    print(f"[rank{rank}] process group ready, world size {dist.get_world_size()}", flush=True)
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0"))) if backend == "nccl" else torch.device("cpu")

    def reduced(elements: int) -> None:
        tensor = torch.ones(elements, device=device)
        dist.all_reduce(tensor)
        print(f"[rank{rank}] all_reduce of {elements} gave {tensor[0].item()}", flush=True)

    for step in steps:
        name, _, value = step.partition(":")
        if name == "wait":
            time.sleep(float(value))
        elif name == "reduce":
            reduced(int(value or 1))
        elif name == "loop":
            while True:
                reduced(int(value or 1))
                time.sleep(0.2)
        elif name == "exit":
            os._exit(int(value or 1))
    dist.destroy_process_group()


def arguments(*words: str) -> None:
    """llama.cpp's own parser of the xllamacpp wheel on llama-server's words; example 12 is the server."""
    import ctypes

    import xllamacpp.xllamacpp as wheel

    parser = "_Z19common_params_parseiPPcR13common_params13llama_examplePFviS0_E"
    parse = getattr(ctypes.CDLL(wheel.__file__), parser)
    given = [b"llama-server", *(word.encode() for word in words)]
    argv = (ctypes.c_char_p * (len(given) + 1))(*given, None)
    params = wheel.CommonParams()
    parse(len(given), argv, ctypes.c_void_p(id(params) + 16), int(os.environ.get("LLAMA_EXAMPLE", "12")), None)


def main(words: list[str]) -> int:
    works: dict[str, Callable[..., None]] = {
        "config": config,
        "weights": weights,
        "ask": ask_server,
        "hold": hold_memory,
        "group": join_group,
        "arguments": arguments,
    }
    works[words[0]](*words[1:])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
