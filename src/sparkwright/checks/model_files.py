"""Checks of model files."""

from collections.abc import Iterator

from sparkwright.checks.reading import played, unplanned
from sparkwright.domain.check import Check, Context, Found, explained
from sparkwright.domain.checkpoint import Checkpoint, Defect, Flaw
from sparkwright.domain.fabric_facts import Ref, Store
from sparkwright.domain.facts import NodeFacts
from sparkwright.domain.finding import INFO, OVERRIDE, WARN
from sparkwright.domain.recipe import Model
from sparkwright.domain.units import gib
from sparkwright.domain.unknown import known_or_none
from sparkwright.domain.values import dataclass
from sparkwright.remote.repair import ref_fix

_SHOWN = 3  # flaws of a copy


@dataclass(frozen=True, slots=True)
class Flawed:
    """One node's copy with flaws of the kinds asked for. another_whole: some node has all of the model."""

    node: str
    model: Model
    checkpoint: Checkpoint
    flaws: tuple[Flaw, ...]
    another_whole: bool

    @property
    def shown(self) -> str:
        more = f" and {len(self.flaws) - _SHOWN} more" if len(self.flaws) > _SHOWN else ""
        return ", ".join(map(str, self.flaws[:_SHOWN])) + more

    def fetch(self, rest: str = "") -> str:
        """The command that gets the model to where it lies. rest: of its words, a file or an option; '' for all files.

        A folder of the user's own is named, since it is not the cache of the hub's client.
        """
        if not self.model.id:
            return "copy it again from where it came"
        folder, _, file = self.checkpoint.path.rpartition("/")
        if not self.checkpoint.path.endswith(".gguf"):
            folder, file = self.checkpoint.path, rest
        there = f"--local-dir {folder}" if self.model.path else ""
        return " ".join(filter(None, ("hf download", self.model.id, file, there)))


def flawed(context: Context, *defects: Defect) -> Iterator[Flawed]:
    """Nodes whose copy has one of them; none for a recipe that needs no weights."""
    if context.recipe is None or played(context.recipe):
        return
    copies = {node: c for node, c in context.checkpoints.items() if isinstance(c, Checkpoint)}
    whole = any(checkpoint.complete for checkpoint in copies.values())
    for node, checkpoint in copies.items():
        flaws = tuple(flaw for flaw in checkpoint.flaws if flaw.defect in defects)
        if flaws:
            yield Flawed(node, context.recipe.model, checkpoint, flaws, whole)


def download_unfinished(context: Context) -> Iterator[Found]:
    """Unfinished downloads of the recipe's model; without a recipe, of all models in the caches."""
    for found in flawed(context, Defect.UNFINISHED):
        root = found.checkpoint.root or found.checkpoint.path
        finish = f"on {found.node}: {found.fetch()}" if found.model.id else "finish the copy"
        yield Found(
            f"{root}: {found.shown}",
            title=f"{found.model.label} is not fully downloaded",
            fix=f"{finish}; `up` does so too. If it is complete all the same: find {root} -name '*.incomplete' -delete",
            subject=found.node,
        )
    for facts, store in _stores(context):
        if store.partial:
            largest = max(store.partial, key=lambda name: store.partial[name])
            yield Found(
                f"{gib(sum(store.partial.values()))}; the largest: {largest} {gib(store.partial[largest])}",
                title=f"{len(store.partial)} unfinished download(s) in {store.path}",
                fix=f"hf download MODEL resumes it; or: find {store.path} -name '*.incomplete' -delete",
                severity=INFO,
                subject=facts.node,
            )


def ref_invalid(context: Context) -> Iterator[Found]:
    """Invalid refs of the recipe's model; without a recipe, of all models in the caches."""
    for found in flawed(context, Defect.REF):
        root = found.checkpoint.root
        # A snapshot that is there gives its own revision; else the user has to name one
        revision = (found.checkpoint.path and found.checkpoint.revision) or "REVISION"
        yield Found(
            f"{root}: {found.shown}",
            title=f"{found.model.label} not found offline",
            fix=f"on {found.node}: mkdir -p {root}/refs && printf %s {revision} > {root}/refs/main",
            subject=found.node,
        )
    for facts, store in _stores(context):
        wrong = (ref for ref in store.refs if ref.text != ref.text.strip() or not ref.there)
        yield from (_in_store(facts.node, store.path, ref) for ref in wrong)


def _stores(context: Context) -> Iterator[tuple[NodeFacts, Store]]:
    """All caches of the hub on the nodes; none where a recipe is checked."""
    yield from ((facts, store) for facts in unplanned(context) for store in known_or_none(facts.stores) or ())


def _in_store(node: str, store: str, ref: Ref) -> Found:
    """The finding about one wrong ref. A blank around a right one is repaired by `check --fix`."""
    name = ref.entry.removeprefix("models--").replace("--", "/")
    bare = ref.text.strip()
    blank = bare != ref.text
    return Found(
        f"{store}/{ref.entry}/refs/main: {ref.text!r}"
        + ("" if ref.there else ", no such snapshot")
        + (", ends with a newline" if blank else ""),
        title=f"{name} not found offline",
        fix=f"on {node}: printf %s {bare if ref.there else 'SNAPSHOT'} > {store}/{ref.entry}/refs/main",
        subject=node,
        repair=ref_fix(node, store, ref.entry, ref.text) if blank and ref.there else None,
    )


def files_damaged(context: Context) -> Iterator[Found]:
    for found in flawed(context, Defect.PROJECTOR):
        yield Found(
            f"{found.checkpoint.path}: {found.shown}",
            title=f"{found.model.label} is a projector, no language model",
            cause="a GGUF model that sees or hears is two files, and this is the one of its encoder",
            fix="give the other file as the model, and this one with the engine's option for projectors (mmproj)",
            subject=found.node,
        )
    for found in flawed(context, Defect.SHORT, Defect.POINTER, Defect.GARBAGE):
        mended = found.another_whole and not found.checkpoint.complete  # `up` copies what is not complete
        yield Found(
            f"{found.checkpoint.path}: {found.shown}",
            title=f"{found.model.label} has corrupt files",
            fix="nothing to do: `up` copies it from a node that has all of it" if mended else _cure(found),
            severity=WARN if mended else OVERRIDE,
            subject=found.node,
        )


def _cure(found: Flawed) -> str:
    """The commands that replace damaged files; the first one stands for all."""
    name = found.flaws[0].file
    if found.flaws[0].defect is Defect.POINTER:
        return f"on {found.node}: cd {found.checkpoint.path} && git lfs pull"
    path = f"{found.checkpoint.path}/{name}".rstrip("/")
    return f"on {found.node}, for each of them: rm -f $(readlink -f {path}) {path}; then {found.fetch()}"


def index_missing(context: Context) -> Iterator[Found]:
    for found in flawed(context, Defect.NO_INDEX):
        yield Found(
            f"{found.checkpoint.path}: {found.shown}",
            title=f"{found.model.label} has no index",
            fix=f"on {found.node}: {found.fetch('model.safetensors.index.json')}",
            subject=found.node,
        )


def shards_mismatch(context: Context) -> Iterator[Found]:
    for found in flawed(context, Defect.SUM):
        again = found.fetch(f"--revision {found.checkpoint.revision or 'main'}")
        yield Found(
            f"{found.checkpoint.path}: {found.shown}",
            title=f"index and shards of {found.model.label} do not match",
            fix=f"on {found.node}: {again}; figures of this plan are those of the shards",
            subject=found.node,
        )


def several_indexes(context: Context) -> Iterator[Found]:
    for found in flawed(context, Defect.MANY_INDEXES):
        yield Found(
            f"{found.checkpoint.path}: {found.shown}",
            title=f"{found.model.label} has several indexes",
            subject=found.node,
        )


def config_unusable(context: Context) -> Iterator[Found]:
    for found in flawed(context, Defect.CONFIG):
        yield Found(
            f"{found.checkpoint.path}: {found.shown}",
            title=f"{found.model.label} has no valid config.json",
            fix=f"on {found.node}: rm -f {found.checkpoint.path}/config.json; {found.fetch('config.json')}",
            subject=found.node,
        )


CHECKS = explained(
    __file__,
    Check("MODEL004", WARN, "unfinished model download", download_unfinished),
    Check("MODEL005", WARN, "invalid refs/main in the hub cache", ref_invalid),
    Check("MODEL006", OVERRIDE, "corrupt weight files", files_damaged),
    Check("MODEL007", WARN, "checkpoint index is missing", index_missing),
    Check("MODEL008", WARN, "checkpoint index does not match its shards", shards_mismatch),
    Check("MODEL009", INFO, "several checkpoint indexes", several_indexes),
    Check("MODEL010", OVERRIDE, "config.json missing or invalid", config_unusable),
)
