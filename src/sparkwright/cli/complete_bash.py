"""The completion script for bash; those for zsh and fish are click's."""

import os
import re

from click.shell_completion import BashComplete, add_completion_class, split_arg_string

_BASH = """\
%(complete_func)s() {
    local IFS=$'\\n' line response
    COMPREPLY=()
    response=$(env COMP_LINE="${COMP_LINE:0:COMP_POINT}" COMP_WORDBREAKS="$COMP_WORDBREAKS" \\
        %(complete_var)s=bash_complete "$1" 2>/dev/null)
    for line in $response; do
        case "${line%%%%,*}" in
            plain) COMPREPLY+=("${line#*,}") ;;
            dir) compopt -o dirnames ;;
            file) compopt -o default ;;
        esac
    done
}
complete -o nosort -F %(complete_func)s %(prog_name)s
"""


class Bash(BashComplete):
    """Completion that takes the line as it was typed: COMP_WORDS of bash is split at `@`, `:` and `=`."""

    source_template = _BASH

    def get_completion_args(self) -> tuple[list[str], str]:
        line = os.environ.get("COMP_LINE", "")
        words = split_arg_string(line)
        incomplete = words.pop() if words and not line[-1:].isspace() else ""
        return words[1:], incomplete

    def complete(self) -> str:
        """Return the matches without what stands before the word that bash replaces."""
        args, incomplete = self.get_completion_args()
        breaks = os.environ.get("COMP_WORDBREAKS", "")
        typed = re.split(f"[{re.escape(breaks)}]", incomplete)[-1] if breaks else incomplete
        before = len(incomplete) - len(typed)
        found = self.get_completions(args, incomplete)
        return "\n".join(f"{item.type},{item.value[before:] if item.type == 'plain' else ''}" for item in found)


def register() -> None:
    add_completion_class(Bash)
