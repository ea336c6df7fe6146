"""Simulated programs of SGLang, TensorRT-LLM and llama.cpp, for the tests.

A dialect is a command line, lines of a log, endpoints and metric names around the product's simulator: its engine,
model and ledger. Its module names its source. Each marks its output as simulated.
"""
