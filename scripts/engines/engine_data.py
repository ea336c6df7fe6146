"""Reads engines' command-line options out of published wheels and writes src/sparkwright/engines/data/ENGINE.json.

    python engine_data.py                       every version below; wheels checked against their recorded hash
    python engine_data.py --check               the same, but only reports what would change (exit code 1)
    python engine_data.py vllm 0.21.0           one version; a new one is added
    python engine_data.py messages              only the messages they can raise or log (engine_messages.py)
    python engine_data.py logs [vllm==0.33.0]   which of our rules for logs, metrics, routes match nothing
    python engine_data.py --wheels FOLDER       takes wheels from there before it downloads
    python engine_data.py trtllm 1.2.1 --wheel FILE
    python engine_data.py trtllm 1.3.0rc29 --reference FILE --commit ID

No engine is imported: vLLM's, SGLang's and TensorRT-LLM's sources are parsed. llama.cpp's options come from the help of
the parser compiled into the installed xllamacpp wheel. TensorRT-LLM's wheels are on pypi.nvidia.com only (PyPI has a
stub); without --wheel, or --reference with the list from its repository (engines/wheels/trtllm.py), its file is left as
it is. An option's row reports from which version it holds (`since`) and up to which (`until`).
"""

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import groupby
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from engine_data_llama import llama_options
from engine_logs import FILES, report
from engine_messages import PROGRAMS, SOURCES, written

from sparkwright.engines.flag_data import versions_in
from sparkwright.engines.version import version_key
from sparkwright.engines.wheels.sglang import sglang_env, sglang_options
from sparkwright.engines.wheels.sources import Sources
from sparkwright.engines.wheels.trtllm import REFERENCE, REPOSITORY, reference_options, trtllm_env, trtllm_options
from sparkwright.engines.wheels.vllm import vllm_env, vllm_options

DATA = Path(__file__).parents[2] / "src/sparkwright/engines/data"
PLATFORMS = tuple(f"manylinux_2_{minor}_x86_64" for minor in (17, 24, 27, 28, 31, 34, 35))
VERSIONS: Mapping[str, tuple[str, ...]] = {
    "vllm": ("0.19.0", "0.20.2", "0.21.0", "0.24.0", "0.26.0", "0.27.1", "0.30.0", "0.33.0"),
    "sglang": ("0.5.10", "0.5.12", "0.5.16", "0.5.17", "0.5.20", "0.5.23"),
    "llama-cpp": ("",),
}
READERS = {
    "vllm": (vllm_options, vllm_env),
    "sglang": (sglang_options, sglang_env),
    "trtllm": (trtllm_options, trtllm_env),
}
Data = dict[str, Any]


def main() -> int:
    asked = _arguments()
    if asked.engine == "messages":
        return int(_messages(asked) and asked.check)
    if asked.engine == "logs":
        return int(_logs(asked) and asked.check)
    wanted = [(asked.engine, asked.version)] if asked.engine else [(e, v) for e in VERSIONS for v in VERSIONS[e]]
    changed = [_one(engine, version, asked) for engine, version in wanted]
    changed.append(not asked.engine and _messages(asked))
    changed.append(not asked.engine and _logs(asked))
    return 1 if asked.check and any(changed) else 0


def _messages(asked: argparse.Namespace) -> bool:
    """True if any program's file of messages differs from its wheels."""
    with tempfile.TemporaryDirectory() as folder:

        def wheel_of(dist: str, version: str) -> Path:
            return _here(dist, version, asked.wheels) or download(dist, version, Path(folder))

        return bool(sum(written(name, wheel_of, asked.check) for name in PROGRAMS))


def _logs(asked: argparse.Namespace) -> bool:
    """True if a rule of ours matches nothing in the newest release of an engine (or in the requested one)."""
    dead = 0
    for engine in FILES:
        if asked.version and engine != asked.version.partition("==")[0]:
            continue
        version = asked.version.partition("==")[2] or VERSIONS[engine][-1]
        with tempfile.TemporaryDirectory() as folder:
            found = report(
                engine, version, _here(engine, version, asked.wheels) or download(engine, version, Path(folder))
            )
        print("\n".join(found.lines()))
        dead += found.dead
    return bool(dead)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engine", nargs="?", choices=[*READERS, "llama-cpp", "messages", "logs"])
    parser.add_argument("version", nargs="?", default="")
    parser.add_argument("--wheel", type=Path, help="a wheel that is here already")
    parser.add_argument("--reference", type=Path, help=f"TensorRT-LLM's {REFERENCE}")
    parser.add_argument("--commit", default="", help="the commit of --reference")
    parser.add_argument("--wheels", type=Path, help="a folder of wheels to look into before downloading")
    parser.add_argument("--out", type=Path, default=DATA, help="folder to write to")
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if anything would change")
    return parser.parse_args()


def _one(engine: str, version: str, asked: argparse.Namespace) -> bool:
    """Puts one version into its engine's file; true when that differs from what is there."""
    found = _found(engine, version, asked)
    target: Path = asked.out / f"{engine}.json"
    before = target.read_text(encoding="utf-8") if target.exists() else ""
    known = versions_in(before) if before else {}
    old = known.get(found["version"], {})
    text = joined(known | {found["version"]: found})
    differs = before != text
    if differs and not asked.check:
        target.parent.mkdir(exist_ok=True)
        target.write_text(text, encoding="utf-8")
    counts = f"{len(found['options'])} options, {len(found['env'])} variables"
    changes = "; ".join(_changes(old, found)) or ("layout" if differs else "unchanged")
    print(f"{target.name} {found['version']}: {counts}; {changes}")
    return differs


def _changes(old: Data, new: Data) -> Iterator[str]:
    """The differences as text: names added, removed and changed."""
    if not old:
        yield "new"
        return
    before, after = old["options"], new["options"]
    groups = {
        "added": after.keys() - before.keys(),
        "removed": before.keys() - after.keys(),
        "changed": {name for name in after.keys() & before.keys() if after[name] != before[name]},
        "variables added": set(new["env"]) - set(old["env"]),
        "variables removed": set(old["env"]) - set(new["env"]),
    }
    yield from (f"{what}: {', '.join(sorted(names))}" for what, names in groups.items() if names)


def joined(every: Mapping[str, Data]) -> str:
    """One file of all versions: a row an option, with `since` and `until` where it does not hold throughout."""
    datas = sorted(every.values(), key=lambda data: version_key(data["engine"], data["version"]))
    names = [data["version"] for data in datas]
    heads: list[Data] = [
        {key: data[key] for key in ("version", "wheel", "sha256", "source") if key in data} for data in datas
    ]
    rows = [
        {"name": name} | span | row
        for name in _order(datas)
        for span, row in _spans(names, [data["options"].get(name) for data in datas])
    ]
    env = _grouped(names, [dict.fromkeys(data["env"], "") for data in datas])
    late = _grouped(names, [data.get("env-deprecated", {}) for data in datas])
    parts = [f' "engine": {json.dumps(datas[0]["engine"])}', _listed("versions", heads), _listed("options", rows)]
    parts += [_listed("env", [group | {"names": list(group["names"])} for group in env])]
    parts += [_listed("env-deprecated", late)] if late else []
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _listed(name: str, rows: Sequence[Data]) -> str:
    """One row a line, so that versions can be compared by eye."""
    lines = ",\n".join(f"  {json.dumps(row, ensure_ascii=False)}" for row in rows)
    return f' "{name}": [\n{lines}\n ]'


def _order(datas: Sequence[Data]) -> list[str]:
    """The newest version's; what it lacks comes where older ones have it."""
    order: list[str] = []
    for data in reversed(datas):
        names, merged = list(data["options"]), list[str]()
        for kind, first, last, start, end in SequenceMatcher(None, order, names, autojunk=False).get_opcodes():
            missing = [name for name in names[start:end] if name not in order] if kind != "equal" else []
            merged += [*order[first:last], *missing]
        order = merged
    return order


def _spans(names: Sequence[str], values: Sequence[Any]) -> Iterator[tuple[Data, Any]]:
    """The ({since, until}, value) of each run of versions with the same value; None is left out."""
    for value, run in groupby(range(len(names)), key=lambda at: values[at]):
        places = list(run)
        if value is not None:
            since = {"since": names[places[0]]} if places[0] else {}
            until = {"until": names[places[-1]]} if places[-1] < len(names) - 1 else {}
            yield since | until, value


def _grouped(names: Sequence[str], tables: Sequence[Mapping[str, str]]) -> list[Data]:
    """Variables by the versions that have them, each with what it reports (`''`: nothing)."""
    groups: dict[str, Data] = {}
    for name in sorted({name for table in tables for name in table}):
        for span, text in _spans(names, [table.get(name) for table in tables]):
            groups.setdefault(json.dumps(span), span | {"names": {}})["names"][name] = text
    return list(groups.values())


def _found(engine: str, version: str, asked: argparse.Namespace) -> Data:
    if engine == "llama-cpp":
        return _llama()
    return _reference(version, asked) if asked.reference else _python(engine, version, asked)


def _reference(version: str, asked: argparse.Namespace) -> Data:
    """Its variables are not listed there; an empty list of them means that none is judged."""
    how = "upstream's own list of the options; its CI compares it with the live command line"
    source = {"repository": REPOSITORY, "commit": asked.commit, "path": REFERENCE, "how": how}
    head = {"engine": "trtllm", "version": version, "wheel": "", "sha256": "", "source": source}
    return {**head, "options": reference_options(asked.reference.read_text(encoding="utf-8")), "env": []}


def _llama() -> Data:
    version, wheel, sha256, options, env = llama_options()
    head = {"engine": "llama-cpp", "version": version, "wheel": wheel, "sha256": sha256}
    return {**head, "options": options, "env": env}


def _python(engine: str, version: str, asked: argparse.Namespace) -> Data:
    with tempfile.TemporaryDirectory() as folder:
        path = asked.wheel or _here(engine, version, asked.wheels) or download(engine, version, Path(folder))
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        _same(engine, version, path, digest)
        sources = Sources(path)
        options_of, env_of = READERS[engine]
        options = options_of(sources)
        env, deprecated = env_of(sources)
    head = {"engine": engine, "version": version or path.name.split("-")[1], "wheel": path.name, "sha256": digest}
    return {**head, **({"env-deprecated": deprecated} if deprecated else {}), "options": options, "env": env}


def _same(engine: str, version: str, path: Path, digest: str) -> None:
    """A wheel under a recorded name must be the recorded one: an index never replaces a file."""
    known = DATA / f"{engine}.json"
    recorded = versions_in(known.read_text(encoding="utf-8")).get(version, {}) if known.exists() else {}
    if recorded.get("wheel") == path.name and recorded.get("sha256") != digest:
        sys.exit(f"{path.name} has sha256 {digest}, but {known.name} was read from {recorded['sha256']}")


def _here(engine: str, version: str, folder: Path | None) -> Path | None:
    forms = (f"{engine}-{version}-*.whl", f"{engine}-{version}.tar.gz")
    return next((path for form in forms for path in sorted(folder.glob(form))), None) if folder else None


def download(engine: str, version: str, folder: Path) -> Path:
    if engine == "trtllm":
        sys.exit("TensorRT-LLM's wheels are not on PyPI: get one from pypi.nvidia.com and give it with --wheel")
    pip = shutil.which("pip") or shutil.which("pip3")
    if not pip:
        sys.exit("pip is not on the PATH; download the wheel yourself and give --wheel")
    words = [pip, "download", "-q", "--no-deps", "--dest", str(folder)]
    if engine in {PROGRAMS[name][0] for name in SOURCES}:
        words += ["--no-binary", ":all:"]
    else:
        words += ["--only-binary", ":all:", "--python-version", "3.12"]
        words += [word for name in (*PLATFORMS, "any") for word in ("--platform", name)]
    done = subprocess.run([*words, f"{engine}=={version}"], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"no {engine} {version} from the package index: {done.stderr.strip()[-400:]}")
    return next(path for path in folder.iterdir() if path.name.startswith(f"{engine}-{version}"))


if __name__ == "__main__":
    sys.exit(main())
