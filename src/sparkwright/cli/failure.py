"""A failure as a JSON document, for callers with --json: the same as on stderr."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import click

from sparkwright.domain.codec import encodable
from sparkwright.domain.diagnosis import Cause
from sparkwright.domain.errors import NodeError, NotReady, Refused, SparkwrightError

if TYPE_CHECKING:
    from sparkwright.domain.verdict import Remedy

SCHEMA = 1


def failure_json(error: BaseException, known: Sequence[SparkwrightError], code: int) -> str:
    """One line: `schema`, `exit_code` and `errors`. known: our own errors of which `error` consists, if it does."""
    told = [_known(one) for one in known] or [_other(error)]
    return encodable(json.dumps({"schema": SCHEMA, "exit_code": code, "errors": told}, ensure_ascii=False, default=str))


def _known(error: SparkwrightError) -> dict[str, Any]:
    """kind: the name in domain/errors.py; further fields of an error are next to message and hint."""
    told: dict[str, Any] = {"kind": type(error).__name__, "message": error.message, **hint_json(error.hint)}
    match error:
        case NodeError():
            return told | {"node": error.node}
        case Refused():
            findings = [asdict(finding) for finding in error.findings]
            return told | {"findings": findings, "remedies": [remedy_json(one) for one in error.remedies]}
        case NotReady():
            causes = [cause_json(cause) for cause in error.causes]
            why = asdict(error.explanation) if error.explanation else None
            return told | {"tail": list(error.tail), "logs": error.logs, "causes": causes, "explanation": why}
    return told


def _other(error: BaseException) -> dict[str, Any]:
    if isinstance(error, click.ClickException):
        message, hint = misuse_text(error)
        return {"kind": "UsageError", "message": message, **hint_json(hint)}
    return {"kind": type(error).__name__, "message": str(error), **hint_json("")}


def hint_json(hint: str) -> dict[str, str]:
    """The hint under its present key and under the older name."""
    return {"hint": hint, "cure": hint}


def remedy_json(remedy: Remedy) -> dict[str, Any]:
    return {
        "change": remedy.change,
        "costs": list(remedy.costs),
        "keys": remedy.variant.keys,
        "actions": [asdict(action) for action in remedy.variant.actions],
        "verdict": asdict(remedy.verdict),
    }


def cause_json(cause: Cause) -> dict[str, Any]:
    return {**asdict(cause), "sureness": cause.sureness}


def misuse_text(error: click.ClickException) -> tuple[str, str]:
    """Sentence and hint of a usage error, in the style of all others: no capital, no full stop, the name first."""
    context = getattr(error, "ctx", None)
    hint = f"{context.command_path} --help" if context else ""
    parameter = getattr(error, "param", None)
    name = parameter.make_metavar(context) if isinstance(parameter, click.Argument) and context else ""
    name = name or (parameter.opts[-1] if parameter else getattr(error, "param_hint", "") or "")
    match error:
        case click.MissingParameter():
            kind = "option" if isinstance(parameter, click.Option) else "argument"
            bare = name[1:-1] if name.startswith("[") and name.endswith("]") else name
            return f"missing {kind} {bare}", hint
        case click.NoSuchOption(possibilities=near):
            best = get_close_matches(error.option_name, near or (), n=1, cutoff=0.0)
            near_text = f"; did you mean {best[0]}?" if best else ""
            return f"no option {error.option_name}{near_text}", hint
        case click.BadOptionUsage(option_name=option):
            wrong = "takes no value" if "not take" in error.message else "needs a value"
            return f"{option} {wrong}", hint or "sparkwright --help"
        case click.BadParameter() if name:
            return f"{name}: {_plain_sentence(error.message)}", hint
    return _plain_sentence(error.format_message()), hint


def _plain_sentence(message: str) -> str:
    """A sentence of click in the style of ours; one of ours as it is."""
    first, rest = message[:1], message[1:]
    lowered = first.lower() + rest if rest[:1].islower() or rest[:1] == " " else message
    return lowered.removesuffix(".")
