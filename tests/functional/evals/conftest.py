"""The command's fixtures: a home of its own, and simulators of vLLM with parsers."""

from functional.bench.conftest import bench_shell, simulator

__all__ = ["PARSERS", "QUICK", "bench_shell", "simulator"]
PARSERS = ("--enable-auto-tool-choice", "--tool-call-parser", "hermes", "--reasoning-parser", "qwen3")
QUICK = {"SPARKWRIGHT_SIMULATOR_TOKEN_SCALE": "0"}
