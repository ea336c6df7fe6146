"""Is the engine that is there the one that the recipe names, and does it know the model's quantization?

Findings: ENG018 image or environment lacks the engine, ENG019 another version than the recipe's, ENG020 image for
another architecture, ENG030 a quantization method that this version lacks, ENG035 an engine that cannot be imported.
"""

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches

from sparkwright.domain.engine import EngineDefinition
from sparkwright.domain.facts import EngineFound, Identity, NodeFacts, Unknown
from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.image import MACHINES
from sparkwright.domain.recipe import EngineChoice, Recipe, Runtime
from sparkwright.domain.values import dataclass, replace
from sparkwright.engines.definitions import shipped_definitions
from sparkwright.engines.engine import PYTHON
from sparkwright.engines.findings import ENG
from sparkwright.engines.flag_data import SHIPPED, FlagLibrary, flag_data
from sparkwright.facts.engine_image import Question

# Engine -> its program, and the packages that it cannot do without; the first one carries its version.
_KNOWN = {
    "vllm": ("vllm", ("vllm",)),
    "vllm-ray": ("vllm", ("vllm", "ray")),
    "sglang": ("sglang", ("sglang",)),
    "trtllm": ("trtllm-serve", ("tensorrt_llm",)),
    "llama-cpp": ("llama-server", ("xllamacpp",)),
}
_IN_IMAGE = {"llama-cpp": "/app/llama-server"}
_SIMULATOR = "simulator"
_SHOWN = 8  # options
_NATIVE = "llama-server"  # no Python package has it: it tells its version itself
_LIBRARY = re.compile(r"(lib[\w.+-]{1,60}\.so[\w.]{0,20}): cannot open shared object file")
_RELEASE = re.compile(r"[vb]?(\d+(?:\.\d+)*)(.*)")
# Methods that a config writes under another name than the engine's option has (vLLM 0.21.0 quantization/__init__.py).
_ALSO = {"auto-round": "inc", "intel/auto-round": "inc"}


def question(recipe: Recipe, python: str) -> Question | None:
    """The question to a node about the recipe's engine; None: nothing is known of it. python: of
    RenderContext.pythons."""
    return question_of(recipe.engine, python)


def question_of(engine: EngineChoice, python: str) -> Question | None:
    """The same without a recipe."""
    own = f"{engine.venv.rstrip('/')}/bin/python" if engine.venv else ""
    if engine.name == _SIMULATOR:
        # Whether the interpreter is there, and this package in it: the version in the recipe is the one that it plays
        unknown = engine.runtime is Runtime.DOCKER or engine.entrypoint
        return None if unknown else Question(own or python, ("sparkwright",), own=own or python)
    if engine.name not in _KNOWN:
        return None
    program, packages = _KNOWN[engine.name]
    if engine.runtime is Runtime.DOCKER and engine.name in _IN_IMAGE:
        return Question((engine.entrypoint or (_IN_IMAGE[engine.name],))[0], says_version=True)
    first = engine.entrypoint[0] if engine.entrypoint else program
    if first.rpartition("/")[2] == _NATIVE and (engine.entrypoint or not engine.venv):
        return Question(first, says_version=True)
    if program == _NATIVE and not engine.entrypoint:
        return Question(
            own, packages, own=own, imports=True
        )  # no program of the venv's: its interpreter runs our launcher
    return Question(first, packages, own=own)


def as_installed(recipe: Recipe, found: Mapping[str, EngineFound | Unknown]) -> Recipe:
    """The recipe with the version of the engine that is there, if all nodes that could be read have the same one.

    A recipe may leave its version out, and `pip install -U` does not edit it: what runs is what is planned and checked.
    """
    engine = recipe.engine
    asked = question(recipe, PYTHON)
    if engine.name == _SIMULATOR or asked is None:
        return recipe
    name = (asked.packages or (asked.program.rpartition("/")[2],))[0]
    there = {seen.versions.get(name, "") for seen in found.values() if isinstance(seen, EngineFound)} - {"", "?"}
    if len(there) != 1:
        return recipe
    (version,) = there
    same = engine.version and difference(_build(engine.version) if name == _NATIVE else engine.version, version) is None
    if same:
        return recipe
    return replace(recipe, engine=replace(engine, version=f"b{version}" if name == _NATIVE else version))


def check_identity(
    recipe: Recipe,
    found: Mapping[str, EngineFound | Unknown],
    facts: Mapping[str, NodeFacts],
    pythons: Mapping[str, str],
    library: FlagLibrary = SHIPPED,
) -> Iterator[Finding]:
    """Findings for each node whose engine was inspected. found: by node name; pythons: as for RenderContext."""
    agreed = _Agreed(as_installed(recipe, found).engine.version, library)
    for node, seen in found.items():
        asked = question(recipe, pythons.get(node, PYTHON))
        if asked and isinstance(seen, Unknown):
            yield _not_seen(recipe.engine, node, seen)
        elif asked and isinstance(seen, EngineFound):
            wrong = _other_machine(recipe.engine, node, seen, facts.get(node))
            yield from [wrong] if wrong else _engine(recipe.engine, asked, node, seen, agreed)


@dataclass(frozen=True, slots=True)
class _Agreed:
    """version: what all nodes have, or else the recipe's."""

    version: str
    library: FlagLibrary


def _engine(engine: EngineChoice, asked: Question, node: str, seen: EngineFound, agreed: _Agreed) -> Iterator[Finding]:
    name, *others = asked.packages or (asked.program.rpartition("/")[2],)
    version = seen.versions.get(name, "")
    if engine.name == _SIMULATOR:
        if not (version and seen.program):
            yield _lacks_the_simulator(node, asked.own)
        return
    if not version and (asked.imports or not seen.program):
        yield _lacks(engine, node, name, engine.entrypoint is None)
    elif seen.broken:
        yield _broken(engine, node, f"{name} {version}", seen)
    elif version in ("", "?"):
        teller = asked.program if asked.says_version else f"package {name}"
        yield _not_seen(engine, node, Unknown(seen.program, f"no version from {teller}"))
    else:
        yield from _other_version(engine, node, name, version, agreed)
    for other in others if version else ():
        if other not in seen.versions:
            yield _lacks(engine, node, other, True)


def _where(engine: EngineChoice) -> str:
    if engine.runtime is Runtime.DOCKER:
        return f"image {engine.image}"
    folder = engine.entrypoint[0].rpartition("/")[0] if engine.entrypoint else engine.venv
    return folder or "the node's PATH"


def _lacks(engine: EngineChoice, node: str, name: str, own_program: bool) -> Finding:
    # A program that only the recipe knows may bring its engine along in a way that cannot be seen from here.
    severity = Severity.BLOCK if own_program else Severity.WARN
    package = "" if name == _NATIVE else f"no Python package {name} and "
    return ENG["ENG018"].on(
        node,
        f"expected {engine.name} {engine.version}; {package}no program of it was found",
        title=f"{name} is not in {_where(engine)}",
        cause="the rank would end in its first second",
        fix=_where_to_have_it(engine),
        severity=severity,
    )


def _broken(engine: EngineChoice, node: str, what: str, seen: EngineFound) -> Finding:
    library = _LIBRARY.search(seen.broken)
    return ENG["ENG035"].on(
        node,
        f"{seen.program}: {seen.broken}",
        title=f"{what} in {_where(engine)} cannot be imported",
        fix=f"install the system package with {library[1]} on {node}"
        if library
        else f"{seen.program} -m pip install --force-reinstall {what.partition(' ')[0]}   # on {node}",
    )


def _lacks_the_simulator(node: str, python: str) -> Finding:
    return ENG["ENG018"].on(
        node,
        f"{python} there has no package sparkwright",
        title="the simulator needs sparkwright installed on the node",
        cause="the simulator is a part of sparkwright, and the rank would end in its first second",
        fix="on the node: python3 -m venv ~/sparkwright && ~/sparkwright/bin/pip install PATH-OF-SPARKWRIGHT; "
        "then in the recipe: engine: {venv: ~/sparkwright} ("
        "docs/guides/simulator.md: the simulator on your own nodes)",
    )


def _where_to_have_it(engine: EngineChoice) -> str:
    if engine.runtime is Runtime.DOCKER:
        return "correct `engine.image`, or build one that has it (`sparkwright build`)"
    if engine.entrypoint or engine.venv:
        return f"correct `engine.{'entrypoint' if engine.entrypoint else 'venv'}`, or install it there"
    return "install it there, or name the venv that has it in `engine.venv`, or its full path in `engine.entrypoint`"


def _not_seen(engine: EngineChoice, node: str, why: Unknown) -> Finding:
    return ENG["ENG018"].on(
        node,
        f"{why.why}: {why.raw}".strip(": "),
        title=f"which {engine.name} is in {_where(engine)} could not be read",
        cause="so its version was not compared with the recipe's",
        fix="",
        severity=Severity.INFO,
    )


def _other_version(engine: EngineChoice, node: str, name: str, version: str, agreed: _Agreed) -> Iterator[Finding]:
    """Another version on all nodes is planned for."""
    severity = difference(_build(engine.version) if name == _NATIVE else engine.version, version)
    if severity is None or not engine.version:
        return
    everywhere = agreed.version.removeprefix("b") in (version, f"b{version}")
    goes_on = f"flags and memory are planned for {version}{_changes(engine, version, agreed.library)}"
    yield ENG["ENG019"].on(
        node,
        f"expected {engine.version}, found {name} {version}" + (f"; {goes_on}" if everywhere else ""),
        title=f"{_where(engine)} has {name} {version}, the recipe is for {engine.version}",
        fix=f"write `version: {version}` into the recipe's engine, or leave `version` out: it is read at `up`"
        if everywhere
        else f"have the same version on every node: install {engine.version} here, or take the image that has it",
        severity=Severity.WARN if everywhere else severity,
    )


def _changes(engine: EngineChoice, version: str, library: FlagLibrary) -> str:
    """Options that came and went between the recipe's version and the one that is there, as far as both were read."""
    known = library.versions(engine.name)
    old, new = engine.version.removeprefix("v"), version
    if old not in known or new not in known:
        return f"; options of {new} were not read here" if new not in known else ""
    before, after = (set(library.read(engine.name, one).options) for one in (old, new))
    gone = sorted(before - after)
    return f"; {len(after - before)} options are new" + (f", gone: {', '.join(gone[:_SHOWN])}" if gone else "")


def _build(version: str) -> str:
    """`11549` of the wheel's 2026.10.11549: the server itself counts builds only."""
    return version.rpartition(".")[2]


def difference(wanted: str, found: str) -> Severity | None:
    """None: the same. WARN: the same major and minor release, or build numbers. OVERRIDE: another release.

    A local part (`+cu130`) that only one of them has is about packaging, not what it is.
    """
    (want, want_local), (have, have_local) = (part.partition("+")[::2] for part in (wanted, found))
    local = want_local.startswith(have_local) or have_local.startswith(want_local)
    if _normal(want) == _normal(have) and local:
        return None
    releases = [_normal(want)[0], _normal(have)[0]]
    single = all(len(release) == 1 for release in releases)
    return Severity.WARN if single or releases[0][:2] == releases[1][:2] else Severity.OVERRIDE


def _normal(version: str) -> tuple[tuple[int, ...], str]:
    """Release numbers without trailing zeros, and what follows them (`rc1.dev407`)."""
    match = _RELEASE.fullmatch(version)
    if match is None:
        return (), version
    numbers = [int(part) for part in match[1].split(".")]
    while len(numbers) > 2 and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers), match[2].strip(".-")


def _other_machine(engine: EngineChoice, node: str, seen: EngineFound, facts: NodeFacts | None) -> Finding | None:
    identity = facts.identity if facts else None
    wanted, found = identity.arch if isinstance(identity, Identity) else "", MACHINES.get(seen.arch, seen.arch)
    if not found or not wanted or found == wanted:
        return None
    title = f"image {engine.image} is for another processor"
    return ENG["ENG020"].on(node, f"found {seen.arch} ({found}), the node is {wanted}", title=title)


def check_quantization(recipe: Recipe, method: str, library: FlagLibrary = SHIPPED) -> tuple[Finding, ...]:
    """ENG030 a quantization method that this version does not know, by config.json; '' is no quantization.

    A plugin may add a method of its own, so --force passes it; what only a neighbouring version's data lack is a
    warning, as with flags.
    """
    if described := recipe.engine.definition or shipped_definitions().get(recipe.engine.name):
        return tuple(_undescribed(described, method))
    data, said = flag_data(recipe.engine.name, recipe.engine.version, library)
    option = data.options.get("quantization") if data else None
    names = (option.choices or option.known) if option else ()
    given = recipe.flags.get("quantization")
    if not method or not names or {method, _ALSO.get(method, method)} & set(names) or given in names:
        return ()
    near = get_close_matches(method, names, n=1)
    return (
        ENG["ENG030"].on(
            "model",
            f"quant_method: {method} in config.json; the engine has {', '.join(names)}",
            title=f"{recipe.engine.name} {recipe.engine.version} has no quantization method {method}",
            fix="take a checkpoint in a format that it has, or a version that has the method"
            + (f"; the nearest name is {near[0]}" if near else ""),
            severity=Severity.WARN if said else Severity.OVERRIDE,
        ),
    )


def _undescribed(definition: EngineDefinition, method: str) -> Iterator[Finding]:
    """A warning for a method that the engine's file does not list: its keeper may not have read the newest version."""
    names = definition.quantizations
    if method and names and method not in names:
        yield ENG["ENG030"].on(
            "model",
            f"quant_method: {method} in config.json; {definition.name}'s file lists {', '.join(names)}",
            title=f"{definition.name} is not known to read {method}",
            fix="take a checkpoint in a format that it lists, or add the method to its file once it works",
            severity=Severity.WARN,
        )
