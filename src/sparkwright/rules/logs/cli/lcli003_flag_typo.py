"""A flag was mistyped or its quoting got lost.

Detects: A single dash, a typographic dash, a flag and value in one word, or JSON and values that the shell took
  apart.
Why: argparse sees the words after the shell, compose or subprocess have split them; one list element with a blank is
  one word.
Evidence: The argument parser's line: a known flag, a single dash, a bare value.
Remedy: Two dashes; flag and value as two elements or with `=`; JSON in single quotes.
References: https://docs.python.org/3/library/argparse.html
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, HINT, LIKELY, POSSIBLE, line, near

CODE = "LCLI003"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "a flag was mistyped or its quoting got lost"
CAUSE = "cli-flag-typo-or-quoting"
SIGNS = (
    line(r"unrecognized arguments?: (?:.{0,200} )?(?P<flag>-[a-z][a-z_]+[-\w]*)(?: |$|`|\")", CERTAIN),
    line(r"unrecognized arguments?: (?:.{0,200} )?(?P<flag>[\u2010-\u2015\u2212]+[a-z][\w-]+)", CERTAIN),
    line(
        r"unrecognized arguments?: (?P<flag>--(?:host|port|model|config|dtype|seed|served-model-name"
        r"|tensor-parallel-size|trust-remote-code)\b[^=]*)",
        LIKELY,
        unless=r"launch_server|sglang|trtllm|llama",
    ),
    line(
        r"(?:vllm|serve|api_server\.py): error: unrecognized arguments?: (?P<flag>--(?:max-model-len"
        r"|gpu-memory-utilization|max-num-seqs|kv-cache-dtype|quantization|load-format"
        r"|enable-prefix-caching|tool-call-parser|enable-auto-tool-choice)\b)",
        LIKELY,
    ),
    line(r"unrecognized arguments?: ['\"]?(?P<flag>--[\w-]+ ['\"]?\S+)['\"] *$", LIKELY),
    line(r"unrecognized arguments?: '(?P<flag>--[\w-]+ [^']+)'", LIKELY),
    line(r"unrecognized arguments?: (?P<flag>[^-\s\u2010-\u2015\u2212].{0,60})", LIKELY),
    line(
        r"['\"](?P<flag>--(?:host |port |model |config |dtype |max-model-len "
        r"|tensor-parallel-size )[^'\"]+)['\"] ?[,\]]",
        POSSIBLE,
    ),
    line(r"argument (?P<flag>--?[\w/-]+): expected (?:one|at least one|\d+) argument", LIKELY),
    line(r"ambiguous option: (?P<flag>--?[\w-]+)", LIKELY),
    line(r"Invalid JSON: .{0,200}\[type=json_invalid", LIKELY),
    line(r"Unexpected keyword argument \[type=unexpected_keyword_argument", LIKELY),
    line(r"argument (?P<flag>--?[\w/-]+): (?:ignored explicit argument|not allowed with)", LIKELY),
    line(
        r"argument (?P<flag>--?[\w/-]+): (?:invalid (?:int|float|bool|\w*json\w*|loads|optional_type"
        r"|parse_type|human_readable_int) value|Invalid JSON|Value .{0,300}cannot be converted)",
        LIKELY,
    ),
    near(r"^\s*- ['\"]?--[a-z][\w-]+ +[\w/.]", r"unrecognized arguments", sure=LIKELY, within=60),
    line(r"json\.decoder\.JSONDecodeError.{0,80}(?:property name enclosed in double quotes|Expecting value)", HINT),
    line(r"unknown shorthand flag: '(?P<flag>\w)' in -\w+", LIKELY),
    line(r"flag provided but not defined: (?P<flag>-\w+)", LIKELY),
    line(r"-{1,2}[a-z][\w-]+: command not found", CERTAIN),
    line(
        r"(?:single dash|one dash|missing (?:a )?dash|em[- ]dash|typographic dash|smart quotes"
        r"|curly quotes|quoting|escaped? (?:the )?quotes).{0,80}(?:flag|argument|option|--\w|json)",
        POSSIBLE,
    ),
)
FIX = (
    "docker inspect -f '{{{{json .Config.Cmd}}}}' <container>   # the words as the engine got them; look at {flag}",
    (
        "write flag and value as two list elements, or --flag=value; JSON in single quotes: "
        '--speculative-config \'{{"method":"mtp"}}\''
    ),
    "a line that goes on must end in \\ with nothing after it",
)
EXPLAINS = ()
