"""`python -m simulators PROGRAM [flags]`: the programs of other engines."""

import os
import sys

from simulators import llama, ray, sglang, tensorfold, trtllm
from simulators.console import NoStart

PROGRAMS = {
    "vllm": ray.run,
    "sglang": sglang.run,
    "llama-server": llama.run,
    "rpc-server": llama.serve_rpc,
    "tensorfold": tensorfold.run,
    "trtllm-serve": trtllm.run,
    "trtllm-llmapi-launch": trtllm.launch,
}


def main(argv: list[str]) -> int:
    try:
        return PROGRAMS[argv[0]](argv[1:], os.environ)
    except NoStart as stop:
        sys.stderr.write(f"{stop}\n")
        return stop.code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
