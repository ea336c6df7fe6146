"""Tests of shell scripts as bash decides them, and those that only a machine can decide."""

import shutil
import subprocess

import pytest

from sparkwright.domain.errors import RecipeError
from sparkwright.recipes.importers.branches import decide
from sparkwright.recipes.importers.draft import ImportOptions
from sparkwright.recipes.importers.importer import import_recipe
from sparkwright.recipes.importers.shell import Script
from sparkwright.recipes.load import load_recipe
from unit.for_each import for_each
from unit.recipes.test_import_lines import read

TESTS = (
    '[ -n "" ]', '[ -n "a" ]', '[ -z "" ]', '[ "a" = "a" ]', '[ a != a ]', '[ ! a = b ]', '[ 3 -ge 3 ]', '[ 2 -gt 10 ]',
    '[ 2 -lt 10 ]', '[ 1 -ne 1 ]', '[ "" ]', 'test -z a', '[[ org/a == org/* ]]', '[[ a != b* ]]', '[[ a == "a" ]]',
    '[[ Qwen3 =~ (qwen3|Qwen3) ]]', '[[ 12a =~ ^[0-9]+$ ]]', '[[ 12 =~ ^[0-9]+$ ]]', '[[ -n "" ]]', '! [ a = a ]',
    'true', 'false', '[ a = b ] || [ c = c ]', '[ a = a ] && [ c = d ]', '[ a = b ] && [ c = c ] || true',
)  # fmt: skip


@pytest.mark.skipif(not shutil.which("bash"), reason="bash is asked for the right answer")
@for_each("test", TESTS)
def test_conditions_are_decided_as_bash_does(test: str) -> None:
    """An `if`, a `while` and an assignment behind `&&`: the variable has the value that bash prints."""
    for text in (f"A=0\nif {test}; then A=1; else A=2; fi\n", f"A=0\nif false; then A=9; elif {test}; then A=1; fi\n"):
        said = subprocess.run(["bash", "-c", f"{text}echo $A"], capture_output=True, text=True, check=True)
        assert Script(text, "x.sh").variables["A"] == said.stdout.strip(), text


@for_each("test", ["[ -f /etc/passwd ]", "command -v docker", '[ "$HOSTNAME" = a ]', "[[ $(id -u) == 0 ]]"])
def test_what_a_machine_decides_is_left_open(test: str) -> None:
    """Neither branch is taken for granted: the variable has no value after it."""
    assert "A" not in Script(f"A=0\nif {test}; then A=1; else A=2; fi\n", "x.sh").variables


def test_files_and_odd_words_are_not_decided() -> None:
    """Patterns with several repetitions are left to a shell: their cost is not bounded."""
    assert decide(["[", "-e", "/x", "]"]) is None and decide([]) is None and decide(["["]) is None
    assert decide(["[[", "a" * 50, "=~", "(a+)+$", "]]"]) is None


BRANCHES = """#!/bin/bash
PORT="${PORT:-8000}"; LEN=4096
while [[ $# -gt 0 ]]; do case "$1" in --port) PORT="$2"; shift 2;; esac; done
case "${1:-small}" in
  big) MODEL=org/big; EXTRA="--enforce-eager";;
  small|"") MODEL=org/small
    EXTRA="--max-num-seqs 4" ;;
  *) exit 1 ;;
esac
if [ -n "${IMAGE:-}" ]; then IMG="$IMAGE"
elif [ "${USE_NGC:-0}" = "1" ]; then IMG=nvcr.io/nvidia/vllm:26.01-py3
else IMG=vllm/vllm-openai:v0.30.0; fi
[[ "$MODEL" =~ (big|huge) ]] && LEN=8192
[ -z "${TOKEN:-}" ] || EXTRA="$EXTRA --no-such"
if [[ "$MODEL" == org/* ]]; then EXTRA="$EXTRA --dtype auto"; fi
if [ "$PORT" -ge 9000 ]; then PORT=1; fi
CMD="docker run $IMG --model '$MODEL' --port $PORT --max-model-len $LEN $EXTRA"
eval $CMD
"""


def test_branches_are_followed_without_arguments() -> None:
    """`case`, `if`, tests with `&&` and loops over arguments, as bash runs them; the note names the lines."""
    recipe, made = read(BRANCHES, "start.sh")
    assert (recipe.model.id, recipe.engine.image) == ("org/small", "vllm/vllm-openai:v0.30.0")
    assert (recipe.serving.port, recipe.serving.context, recipe.serving.sequences) == (8000, 4096, 4)
    assert recipe.flags == {"dtype": "auto"}
    assert any("branches are followed" in note for note in made.notes)


@for_each(
    "setting, model, context",
    [
        ({"1": "big"}, "org/big", 8192),
        ({"MODEL": "org/other"}, "org/other", 4096),
        ({"USE_NGC": "1"}, "org/small", 4096),
    ],
)
def test_values_that_the_user_sets_decide(setting: dict[str, str], model: str, context: int) -> None:
    """`--set` gives arguments and variables; what the script assigns to them later does not count."""
    made = import_recipe(BRANCHES, "start.sh", ImportOptions(values=setting))
    recipe = load_recipe(made.text, "x.yaml")
    assert (recipe.model.id, recipe.serving.context) == (model, context)
    assert ("nvcr.io" in recipe.engine.image) == ("USE_NGC" in setting)


def test_a_branch_that_only_a_shell_could_know_is_not_guessed() -> None:
    """A file or a program on the machine decides: neither value is taken, and the hole has a name."""
    text = "MODEL=org/a\nif [ -f /etc/x ]; then MODEL=org/b; fi\nif nvidia-smi; then LEN=1; else LEN=2; fi\n"
    made = import_recipe(f"{text}vllm serve $MODEL --max-model-len $LEN\n", "x.sh", ImportOptions())
    assert any("${MODEL} has no value" in line and "--set MODEL=VALUE" in line for line in made.errors)
    assert any("${LEN} has no value" in note for note in made.notes)


@for_each(
    "text, file",
    [
        ("vllm serve ${MODEL_HANDLE} --port 8000\n", "x.sh"),
        ("services:\n  a: {image: 'vllm/vllm-openai:v0.30.0', command: '--model ${MODEL_HANDLE}'}\n", "compose.yaml"),
        ("model: '{MODEL_HANDLE}'\nruntime: vllm\ncontainer: a/b:1\n", "x.yaml"),
    ],
)
def test_a_hole_for_the_model_is_named_and_can_be_filled(text: str, file: str) -> None:
    """The error names the variable and the option that gives it a value."""
    made = import_recipe(text, file, ImportOptions())
    assert any("MODEL_HANDLE" in line and "--set MODEL_HANDLE=VALUE" in line for line in made.errors)
    made = import_recipe(text, file, ImportOptions(values={"MODEL_HANDLE": "org/name"}))
    assert not made.errors and load_recipe(made.text, "x.yaml").model.id == "org/name"


def test_an_image_without_a_value_is_named() -> None:
    """A tag that the caller gives is no image; the recipe says so instead of starting `${IMAGE}`."""
    made = import_recipe("docker run ${IMAGE} vllm serve org/name\n", "x.sh", ImportOptions())
    assert any("engine.image: ${IMAGE} has no value" in line for line in made.errors)


def test_the_output_of_a_command_is_no_variable() -> None:
    """`export UID=$(id -u)` is known on the machine only, and `$(...)` is no value."""
    recipe, made = read("export HOST_UID=$(id -u)\nvllm serve org/name\n", "x.sh")
    assert recipe.env == {} and any(note.startswith("env.HOST_UID: left out") for note in made.notes)


def test_a_placeholder_of_a_readme_is_a_hole() -> None:
    """`<checkpoint>` would be two redirections for a shell, and its reader means: write yours."""
    text = "vllm serve <checkpoint> --max-model-len 4096\n"
    made = import_recipe(text, "x.sh", ImportOptions())
    assert any("${checkpoint} has no value" in line for line in made.errors)
    made = import_recipe(text, "x.sh", ImportOptions(values={"checkpoint": "org/name"}))
    assert load_recipe(made.text, "x.yaml").serving.context == 4096


def test_a_script_that_needs_an_argument_says_so() -> None:
    """The message names the lines, and `--set 1=` gives the argument."""
    text = 'case "$1" in\n  a) vllm serve org/a ;;\n  b) vllm serve org/b ;;\nesac\n'
    with pytest.raises(RecipeError, match="without arguments") as error:
        import_recipe(text, "x.sh", ImportOptions())
    assert "--set 1=VALUE" in str(error.value.hint)
    made = import_recipe(text, "x.sh", ImportOptions(values={"1": "b"}))
    assert load_recipe(made.text, "x.yaml").model.id == "org/b"
    with pytest.raises(RecipeError, match="2 engines are started"):
        import_recipe('KEY="${1:?usage}"\n' + text.replace("$1", "$KEY"), "x.sh", ImportOptions())


def test_variables_of_an_unknown_build_are_kept() -> None:
    """A line without an image starts whatever is installed: what a release does not read may be read there."""
    recipe, made = read("VLLM_NO_SUCH_THING=1 vllm serve org/name\n", "x.sh")
    assert recipe.engine.extra_env == ("VLLM_NO_SUCH_THING",) and recipe.env == {"VLLM_NO_SUCH_THING": "1"}
    assert any("which build runs" in note for note in made.notes)


def test_tool_choice_without_a_parser_is_named() -> None:
    """vLLM refuses the option alone; here it comes with parsers.tool, so its loss is not silent."""
    recipe, made = read("vllm serve org/name --enable-auto-tool-choice\n", "x.sh")
    assert recipe.flags == {} and any(note.startswith("enable_auto_tool_choice: left out") for note in made.notes)
