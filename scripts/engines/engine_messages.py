"""Every message that published wheels can raise or log, for src/sparkwright/engines/data/messages/NAME.txt.gz.

Python's sources are parsed, never imported: `raise X(...)`, `assert ..., "..."`, `logger.error(...)`,
`warnings.warn(...)`. llama.cpp's are in the C++ sources that llama_cpp_python's source distribution holds
(engine_messages_cpp.py). What C++ and CUDA sources of the others report (TORCH_CHECK, NCCL) is not in their wheels as
source, and is not read. A row has the rarest word of the template, the template with {} for what it fills in, severity
(an exception's name, or E, W, I), file, function, and since and until which of the versions read it holds.
"""

import ast
import gzip
import hashlib
import re
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from engine_message import PERCENT, SLOT, FoundMessage, message_lines
from engine_messages_cpp import source_messages

from sparkwright.engines.version import version_key

OUT = Path(__file__).parents[2] / "src/sparkwright/engines/data/messages"
# Distribution, versions, and the files of it that are read.
PROGRAMS = {
    "vllm": (
        "vllm",
        (
            *("0.19.0", "0.21.0", "0.22.0", "0.26.0"),
            *("0.27.1", "0.28.0", "0.29.0", "0.30.0", "0.31.0", "0.32.0", "0.33.0"),
        ),
        r"vllm/",
    ),
    "sglang": (
        "sglang",
        (
            *("0.5.10", "0.5.12", "0.5.16"),
            *("0.5.17", "0.5.18", "0.5.19", "0.5.20", "0.5.21", "0.5.22", "0.5.23"),
        ),
        r"sglang/(?!test/|multimodal_gen/|bench|jit_kernel/bench)",
    ),
    "flashinfer": (
        "flashinfer_python",
        ("0.6.11.post1", "0.7.4"),
        r"flashinfer/(?:jit/|comm/allreduce|gemm/gemm_base|fused_moe/core|mla/_core"
        r"|(?:utils|prefill|decode|compilation\w*|autotuner|artifacts|sampling|aot|trtllm\w*)\.py)",
    ),
    "transformers": (
        "transformers",
        ("5.5.3", "5.6.0"),
        r"transformers/(?:[a-z_]+\.py|utils/|integrations/|quantizers/|generation/configuration|models/auto/|distributed/)",
    ),
    "ray": (
        "ray",
        ("2.58.0",),
        r"ray/(?!.*thirdparty)(?:_private/|autoscaler/_private/|dag/|experimental/|util/|core/|includes/|[a-z_]+\.py|scripts/)",
    ),
    "mistral-common": ("mistral_common", ("1.13.1",), r"mistral_common/"),
    "lmdeploy": ("lmdeploy", ("0.18.0",), r"lmdeploy/"),
    "huggingface-hub": ("huggingface_hub", ("2.4.0",), r"huggingface_hub/(?!inference/_generated)"),
    "compressed-tensors": ("compressed_tensors", ("0.20.1",), r"compressed_tensors/"),
    "xgrammar": ("xgrammar", ("0.2.9",), r"xgrammar/"),
    "torch": (
        "torch",
        ("2.14.1",),
        r"torch/(?:distributed/(?:elastic/|launcher/|checkpoint/|distributed_c10d|rendezvous|run)|cuda/__init__"
        r"|multiprocessing/|_utils|serialization|_inductor/(?:codecache|cpp_builder|async_compile))",
    ),
    "llama-cpp": (
        "llama_cpp_python",
        ("0.3.36",),
        r"[^/]+/vendor/llama\.cpp/(?:(?:src|common|tools/(?:server|mtmd|rpc)|ggml/src/ggml-(?:rpc|cuda|cpu))/.*"
        r"|ggml/src/[\w-]+)\.(?:c|cc|cpp|cu|cuh|h|hpp)$",
    ),
}
SOURCES = {"llama-cpp"}  # read from the sources of a source distribution, not from a wheel
LEVELS = {
    **dict.fromkeys(("debug", "debug_once", "info", "info_once", "trace"), "I"),
    **dict.fromkeys(("warning", "warn", "warning_once", "warning_advice"), "W"),
    **dict.fromkeys(("error", "exception", "critical", "fatal", "error_once"), "E"),
}
_BRACES = re.compile(r"\{[^{}\n]{0,60}\}")
_WORD = re.compile(r"[a-z_][a-z0-9_]{3,}")


def template(node: ast.expr) -> str:
    """The text that an expression makes, with {} for each filled-in value; '' for anything but text."""
    match node:
        case ast.Constant(value=str(text)):
            found = text
        case ast.JoinedStr(values=parts):
            found = "".join(str(part.value) if isinstance(part, ast.Constant) else SLOT for part in parts)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            first, last = template(left), template(right)
            found = (first or SLOT) + (last or SLOT) if first or last else ""
        case ast.BinOp(left=left, op=ast.Mod()):
            found = PERCENT.sub(SLOT, template(left)).replace("%%", "%")
        case ast.Call(func=ast.Attribute(attr="format", value=value)):
            found = _BRACES.sub(SLOT, template(value))
        case ast.Call(func=ast.Attribute(attr="dedent"), args=[value]):
            found = template(value)
        case ast.Call(func=ast.Attribute(attr="strip" | "replace" | "join", value=value)) | ast.IfExp(body=value):
            found = template(value)
        case _:
            found = ""
    return found


class MessageReader(ast.NodeVisitor):
    """All messages of one source."""

    def __init__(self, file: str) -> None:
        self.file, self.functions, self.found = file, list[str](), set[FoundMessage]()
        self.texts: dict[str, str] = {}

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        self.functions.append(node.name)
        self.generic_visit(node)
        self.functions.pop()

    visit_AsyncFunctionDef = visit_FunctionDef
    visit_ClassDef = visit_FunctionDef

    def visit_Assign(self, node: ast.Assign) -> None:
        """`msg = f"..."`, raised or logged a few lines later."""
        target = node.targets[0]
        if isinstance(target, ast.Name) and (text := template(node.value)):
            self.texts[target.id] = text
        self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> None:
        if isinstance(node.exc, ast.Call):
            name = ast.unparse(node.exc.func).rpartition(".")[2]
            for argument in (*node.exc.args, *(word.value for word in node.exc.keywords)):
                self._add(argument, name if name[:1].isupper() else "Exception")
        self.generic_visit(node)

    def visit_Assert(self, node: ast.Assert) -> None:
        if node.msg:
            self._add(node.msg, "AssertionError")
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        called = node.func
        if isinstance(called, ast.Attribute) and called.attr in LEVELS and node.args:
            owner = ast.unparse(called.value).lower()
            if "log" in owner or "warnings" in owner:
                self._add(node.args[0], LEVELS[called.attr], len(node.args) > 1)
        elif isinstance(called, ast.Name) and called.id in (
            "print_warning_once",
            "log_info_on_rank0",
            "rank0_log",
            "log_once",
        ):
            self._add(node.args[-1], "I")
        self.generic_visit(node)

    def _add(self, node: ast.expr, level: str, percent: bool = False) -> None:
        text = self.texts.get(node.id, "") if isinstance(node, ast.Name) else template(node)
        text = PERCENT.sub(SLOT, text).replace("%%", "%") if percent else text
        self.found.update(
            FoundMessage(line, level, self.file, ".".join(self.functions)) for line in message_lines(text)
        )


def python_messages(wheel: zipfile.ZipFile, files: str) -> set[FoundMessage]:
    found: set[FoundMessage] = set()
    for name in wheel.namelist():
        short = re.sub(r"^.*\.data/purelib/", "", name)
        if name.endswith(".py") and re.match(files, short) and "/tests/" not in short:
            reader = MessageReader(short)
            try:
                reader.visit(ast.parse(wheel.read(name)))
            except SyntaxError:
                continue
            found |= reader.found
    return found


def message_rows(versions: dict[str, set[FoundMessage]]) -> Iterator[str]:
    """One a message: by its rarest word, for `engines/messages.py`."""
    names = sorted(versions, key=lambda version: version_key("vllm", version))
    places = {(one.text, one.level): one for name in names for one in sorted(versions[name])}  # the newest version's
    spans = {name: {(one.text, one.level) for one in versions[name]} for name in names}
    counts = Counter(word for text, _ in places for word in set(whole_words(text)))
    for key, one in sorted(places.items()):
        held = [name for name in names if key in spans[name]]
        since = held[0] if held[0] != names[0] else ""
        until = held[-1] if held[-1] != names[-1] else ""
        if found := whole_words(one.text):
            rarest = min(sorted(set(found)), key=lambda word: (counts[word], -len(word)))
            yield "\t".join((rarest, one.text.replace("\t", " "), one.level, one.file, one.function, since, until))


def whole_words(text: str) -> list[str]:
    """Words that do not touch what is filled in."""
    return _WORD.findall(re.sub(r"\w*\{\}\w*", " ", text.lower()))


def written_before(text: str) -> tuple[dict[str, str], dict[str, set[FoundMessage]]]:
    """Head line and messages of each version that a file of messages holds."""
    lines = text.splitlines()
    heads = {line.split()[1]: line for line in lines if line.startswith("# ")}
    names = list(heads)
    read: dict[str, set[FoundMessage]] = {name: set() for name in names}
    for line in lines[len(heads) :]:
        _, body, level, file, function, since, until = line.split("\t")
        first, last = names.index(since) if since else 0, names.index(until) if until else len(names) - 1
        for name in names[first : last + 1]:
            read[name].add(FoundMessage(body, level, file, function))
    return heads, read


def written(name: str, wheel_of: Callable[[str, str], Path], check: bool) -> bool:
    """True if the program's file differs from its wheels; then it is written, unless check is set.

    Without check, versions that the file holds already are taken from it: their wheels need not be there.
    """
    dist, versions, names = PROGRAMS[name]
    target = OUT / f"{name}.txt.gz"
    before = gzip.decompress(target.read_bytes()).decode() if target.exists() else ""
    known, read = written_before(before) if before and not check else ({}, {})
    read = {version: found for version, found in read.items() if version in versions}
    heads = []
    for version in versions:
        if version in known:
            heads.append(known[version])
            continue
        path = wheel_of(dist, version)
        if name in SOURCES:
            read[version] = source_messages(path, names)
        else:
            with zipfile.ZipFile(path) as wheel:
                read[version] = python_messages(wheel, names)
        heads.append(f"# {version} {path.name} {hashlib.sha256(path.read_bytes()).hexdigest()}")
    text = "\n".join([*heads, *sorted(message_rows(read))]) + "\n"
    differs = before != text
    if differs and not check:
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    print(f"messages/{target.name}: {text.count(chr(10))} rows; {'changed' if differs else 'unchanged'}")
    return differs
