"""The twin in other engines' words: SGLang, TensorRT-LLM, llama.cpp, and vLLM under Ray.

A dialect is a command line, lines of a log, endpoints and metric names around the same engine (core.py), model and
ledger. Its module says what it was read from. Like the vLLM of the package above, each marks all it says as simulated.
"""
