"""The embedded simulator: a program that starts, logs, answers and fails like vLLM 0.21.0 but runs no model.

Everything it produces is marked simulated: the first log line, `/version`, `/metrics` (`sparkwright_simulated 1`),
`/v1/models` (`owned_by`), every response header and `system_fingerprint`. Start it as
`python -m sparkwright.simulator serve MODEL [vLLM flags]`; `settings.py` lists its environment variables.
"""
