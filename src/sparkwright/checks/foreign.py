"""Containers and images of inference engines, recognized by their usual names."""

import re

from sparkwright.domain.fabric_facts import Container

_ENGINES = {
    "vLLM": "vLLM",
    "SGLang": "SGLang",
    "TensorRT-LLM": r"tensorrt[-_]?llm|trtllm",
    "llama.cpp": r"llama[-_.]?(cpp|server|swap)",
    "Ollama": r"ollama",
    "LocalAI": r"localai",
    "TGI": r"text-generation-inference",
    "Triton": r"tritonserver",
    "NIM": r"nvcr\.io/nim/",
    "LM Studio": r"lmstudio|lm-studio",
    "ComfyUI": r"comfyui",
    "Ray": r"\bray\b",
}


def engine_of(text: str) -> str:
    """The engine that an image's or program's name speaks of, or ''."""
    return next((name for name, sign in _ENGINES.items() if re.search(sign, text, re.IGNORECASE)), "")


def engine_in(container: Container) -> str:
    """Of its image, its command, or its own name: the first that matches."""
    told = (engine_of(text) for text in (container.image, container.command, container.name))
    return next((name for name in told if name), "an engine" if container.gpu else "")
