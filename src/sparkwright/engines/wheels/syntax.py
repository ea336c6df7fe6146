"""Small questions to a syntax tree and to what it quotes."""

import ast
import re
from typing import Any

_SENTENCE = re.compile(r"(.{20,140}?\.)(?:\s|$)", re.DOTALL)


def literal(node: ast.expr) -> Any:
    """The value of a literal; None for anything else."""
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError):
        return None


def name_of(node: ast.expr) -> str:
    """`name` of `name` and of `module.name`; otherwise ''."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def first_sentence(text: str) -> str:
    """The first sentence."""
    first = _SENTENCE.match(text)
    return (first[1] if first else text[:140]).strip()
