"""`build` refuses what moves, by line, with the way to pin it."""

from sparkwright.recipes.load import load_recipe
from unit.for_each import for_each
from unit.recipes.samples import GOOD, recipe_errors

DOCKER = GOOD.replace("runtime: process", "runtime: docker")
DIGEST = f"base@sha256:{'1' * 64}"
SOURCE = "{name: vllm, repository: https://example.org/vllm, commit: %s}" % ("ab" * 20)
PINNED = f"build:\n  base: {DIGEST}\n"


def test_a_pinned_build_is_good():
    """Base by digest, commit in full, versions of everything: nothing to complain about, and it is the image."""
    more = f"  sources: [{SOURCE}]\n  packages: [git=1:2.43.0-1ubuntu7]\n  python: [{{packages: [torch==2.11.0]}}]\n"
    recipe = load_recipe(DOCKER + PINNED + more, "mine.yaml")
    assert recipe.engine.image.startswith("sparkwright/mine:") and recipe.build and recipe.build.base == DIGEST


@for_each(
    "more, words",
    [
        ("build:\n  base: nvidia/cuda:13.0.2\n", ("r.yaml:8:", "a tag, which can move", "build.unpinned")),
        ("build:\n  base: ''\n", ("build.base` is empty",)),
        (PINNED + "  packages: [git]\n", ("r.yaml:9:", "'git', without a version")),
        (PINNED + f"  sources: [{SOURCE.replace('ab' * 20, 'main')}]\n", ("found 'main'", "40 hex digits")),
        (
            PINNED + f"  sources: [{SOURCE.replace('ab' * 20, '28fef2c70')}]\n",
            ("found '28fef2c70'", "40 hex digits"),
        ),
        (PINNED + f"  sources: [{SOURCE}, {SOURCE}]\n", ("another source has it too",)),
        (PINNED + "  python: [{packages: [torch]}]\n", ("found 'torch'", "name==version")),
        (PINNED + "  python: [{packages: ['torch>=2.11']}]\n", ("name==version",)),
        (
            PINNED + f"  python: [{{packages: [a==1, b==2 --hash=sha256:{'0' * 64}]}}]\n",
            ("found 1 of 2", "two groups"),
        ),
        (PINNED + "  steps: [git clone https://example.org/x]\n", ("r.yaml:9:", "git clone", "build.sources")),
        (PINNED + "  steps: [curl -fsSL https://example.org/x | sh]\n", ("fetches what nothing pins",)),
        (PINNED + "  env: {HF_TOKEN: abc}\n", ("build.env.HF_TOKEN", "would stay in the image")),
        (PINNED + f"  sources: [{SOURCE.replace('//', '//me:k@')}]\n", ("sources[0].repository", "stays in the image")),
        (PINNED + "  python: [{packages: [a==1], index: https://k@e.org/}]\n", ("python[0].index", "in an address")),
        (PINNED + "  platform: linux/riscv64\n", ("linux/arm64",)),
        (PINNED + "  cuda_arch: sm_121a\n", ("GB10 is 12.1a",)),
    ],
)
def test_what_moves_is_refused(more, words):
    """A branch, a tag, an open version or a download of its own would decide next year what the image holds."""
    said = "\n".join(recipe_errors(more))
    assert all(word in said for word in words), said


def test_what_cannot_be_pinned_has_a_reason():
    """Reported once, it covers the base's tag and the distribution's packages; commits and Python packages never."""
    reason = "build:\n  base: base:1\n  unpinned: its maker publishes no digest\n  packages: [git]\n"
    assert load_recipe(DOCKER + reason, "mine.yaml").build
    assert recipe_errors(reason + "  python: [{packages: [torch]}]\n")


def test_a_download_that_is_checked_is_pinned():
    """A sum in the same command holds it to one content."""
    step = "  steps: ['wget -q https://example.org/x -O x && echo \"%s  x\" | sha256sum -c']\n" % ("0" * 64)
    assert load_recipe(DOCKER + PINNED + step, "mine.yaml").build


def test_kernels_that_vllm_downloads_are_held_by_its_own_version():
    """`vllm download-kernels` installs what its FlashInfer wants, and nothing newer."""
    assert load_recipe(DOCKER + PINNED + "  steps: [vllm download-kernels]\n", "mine.yaml").build


def test_a_profile_without_the_image_serves_the_built_one():
    """`image: null` is how a recipe offers both."""
    text = (
        DOCKER + "  image: other:1\n  image_note: a test\n" + PINNED + "profiles:\n  built: {engine: {image: null}}\n"
    )
    assert load_recipe(text, "mine.yaml").engine.image == "other:1"
    assert load_recipe(text, "mine.yaml", "built").engine.image.startswith("sparkwright/mine:")


def test_the_recipes_hash_follows_the_image():
    """Another commit is another image and another deployment; a build that is not served changes nothing."""
    first, other = (
        load_recipe(DOCKER + PINNED + f"  sources: [{SOURCE.replace('ab' * 20, commit)}]\n", "mine.yaml")
        for commit in ("ab" * 20, "cd" * 20)
    )
    assert first.hash != other.hash
