"""The recipe hash: the same for the same service."""

from sparkwright.recipes.load import load_recipe
from unit.for_each import for_each
from unit.recipes.samples import GOOD

BASE = GOOD + "name: t\nserving: {context: 4096}\nenv: {A: 1}\nflags: {block-size: 256}\n"


def digest(text, profile=""):
    return load_recipe(text, "r.yaml", profile).hash


def test_shape():
    """12 hex digits that do not change from run to run: labels and results carry them."""
    assert digest(BASE) == "25e44de1d0b7"


@for_each(
    "more",
    [
        "# a comment\n",
        "notes: [one, two]\n",
        "license: MIT\n",
        "state: ready\nstate_reason: because\n",
        "phases: {load: {usual: 1s}}\n",
        "loading: {guard: false}\n",
        "published: [{what: decode, value: 1, unit: t/s, source: s}]\n",
        "conditions: [cold]\nreferences: [here]\n",
        "x-mine: 1\n",
        "profiles: {other: {serving: {context: 8192}}}\n",
        "shm:\n",
    ],
)
def test_cosmetic_edits_keep_it(more):
    """Prose, comments and other profiles do not change what is served."""
    assert digest(BASE + more) == digest(BASE)


def test_what_is_before_the_engine_keeps_it():
    """Another port or certificate of the gateway starts no rank again, nor does another idle time."""
    on_demand = BASE.replace("context: 4096", "context: 4096, on_demand: true, idle_minutes: 5, wait_seconds: 60")
    assert digest(on_demand) == digest(BASE)
    assert digest(BASE.replace("context: 4096", "context: 4096, gateway: {port: 9443, tls: off}")) == digest(BASE)


def test_what_is_only_planned_with_keeps_it():
    """The size of the part on disk is for the ledger; the same ranks are started."""
    sized = BASE.replace("model: {", "model: {size: 2GB, ")
    assert digest(sized.replace("2GB", "2GB, on_disk: 1GB")) == digest(sized)


def test_other_writing_keeps_it():
    """The title, the order of keys and the way a value is written do not matter."""
    assert digest(BASE.replace("A test", "Another title")) == digest(BASE)
    assert digest(BASE.replace("env: {A: 1}", 'env:\n  A: "1"')) == digest(BASE)
    assert digest(BASE.replace("4096", "4_096")) == digest(BASE)


@for_each(
    "old, new",
    [
        ("4096", "4097"),
        ("0.21.0", "0.21.1"),
        ("{A: 1}", "{A: 2}"),
        ("256", "128"),
        ("org/name", "org/name2"),
        ("{A: 1}", "{A: 1.0}"),
        ("context: 4096", "context: 4096, host_cache: 2 GiB"),
        ("env:", "loading: {weight_cache: true}\nenv:"),
        ("context: 4096", "context: 4096, queue: 8"),
    ],
)
def test_real_edits_change_it(old, new):
    """A change of the service changes the hash."""
    assert digest(BASE.replace(old, new)) != digest(BASE)


def test_a_profile_changes_it_only_by_what_it_states():
    """Two profiles with the same content are the same service."""
    text = BASE + "profiles:\n  a: {serving: {context: 8192}}\n  b: {serving: {context: 8192}}\n"
    assert digest(text, "a") == digest(text, "b") == digest(BASE.replace("4096", "8192")) != digest(text)
