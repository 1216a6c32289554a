"""Completion in a shell: the scripts, and the words that they offer.

A script calls ``ringleaf __complete SHELL WORD...`` with the words of the line up to
the one that is typed. Where nothing is offered, the shell offers files.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from ringleaf.cli.command import Command
from ringleaf.cli.failure import BadUse
from ringleaf.cli.parameter import Parameter
from ringleaf.cli.registry import COMMANDS, PARENTS, children_of, find

BASH: Final = """\
# Completion of ringleaf for bash. Load it with: source <(ringleaf completion bash)
_ringleaf() {
    local IFS=$'\\n'
    COMPREPLY=($(ringleaf __complete bash "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -o bashdefault -F _ringleaf ringleaf
"""
ZSH: Final = """\
#compdef ringleaf
# Completion of ringleaf for zsh. Save it as _ringleaf in a folder of $fpath.
_ringleaf() {
    local -a found
    found=("${(@f)$(ringleaf __complete zsh "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    if [[ -n "${found[1]}" ]]; then
        _describe ringleaf found
    else
        _files
    fi
}
if [[ "${funcstack[1]}" == _ringleaf ]]; then
    _ringleaf "$@"
else
    compdef _ringleaf ringleaf
fi
"""
FISH: Final = """\
# Completion of ringleaf for fish. Save it as ~/.config/fish/completions/ringleaf.fish
function __ringleaf_complete
    set -l words (commandline -opc)
    set -l last (commandline -ct)
    set -l found (ringleaf __complete fish $words[2..-1] "$last" 2>/dev/null)
    if test (count $found) -gt 0
        printf '%s\\n' $found
    else
        __fish_complete_path "$last"
    end
end
complete -c ringleaf -f -a '(__ringleaf_complete)'
"""
SCRIPTS: Final = {"bash": BASH, "zsh": ZSH, "fish": FISH}

Offer = tuple[str, str]
"""A word, and what it means."""


def script_of(shell: str) -> str:
    """The script that a shell loads."""
    return SCRIPTS[shell]


def answer(words: Sequence[str]) -> str:
    """The answer to a completion script: ``SHELL WORD...`` -> a line per candidate."""
    shell, *typed = words or ["bash"]
    return "".join(
        f"{_line(shell, word, about)}\n" for word, about in offers(typed or [""])
    )


def _line(shell: str, word: str, about: str) -> str:
    r"""A word as a shell reads it, with what it means where the shell shows that.

    >>> _line("zsh", "a:b", "c"), _line("bash", "a", "b")
    ('a\\:b:c', 'a')
    """
    if shell == "fish":
        return f"{word}\t{about}"
    return f"{word.replace(':', chr(92) + ':')}:{about}" if shell == "zsh" else word


def offers(typed: Sequence[str]) -> list[Offer]:
    """The words that may stand for the last of *typed*."""
    *before, last = typed
    if not before:
        return _beginning(last, _first_words())
    try:
        found, rest = find(before)
    except BadUse:
        return []
    if isinstance(found, str):
        children = ((c.name.split()[1], c.title) for c in children_of(found))
        return _beginning(last, children)
    return _offers(found, rest, last)


def _first_words() -> Iterator[Offer]:
    seen = {name.partition(" ")[0]: each.title for name, each in COMMANDS.items()}
    yield from {**seen, **PARENTS}.items()


def _offers(command: Command, rest: Sequence[str], last: str) -> list[Offer]:
    option = command.by_name.get(rest[-1]) if rest else None
    if option is not None and not option.is_flag:
        return _values(option, last)
    if last.startswith("-"):
        names = (
            (name, option.form.help)
            for option in command.options
            for name in option.names
            if name.startswith("--")
        )
        return _beginning(last, [*names, ("--help", "Show the help.")])
    n_given = len(_positional(command, rest))
    arguments = command.arguments[n_given : n_given + 1]
    return [offer for each in arguments for offer in _values(each, last)]


def _positional(command: Command, rest: Sequence[str]) -> list[str]:
    """The words that are no option and no value of one."""
    found, todo = [], iter(rest)
    for word in todo:
        if not word.startswith("-"):
            found.append(word)
        elif word in command.by_name and not command.by_name[word].is_flag:
            next(todo, None)
    return found


def _values(parameter: Parameter, last: str) -> list[Offer]:
    """Values of an option; of one that takes several, after the last comma."""
    done, comma, _part = last.rpartition(",") if parameter.many else ("", "", last)
    return _beginning(last, ((done + comma + word, "") for word in parameter.words))


def _beginning(last: str, known: "Sequence[Offer] | Iterator[Offer]") -> list[Offer]:
    return [(word, about) for word, about in known if word.startswith(last)]
