"""The reference of the commands in Markdown, from the commands themselves."""

from collections.abc import Iterable, Iterator
from typing import Final

from ringleaf.cli import commands
from ringleaf.cli.parameter import OPTIONS, Option, Parameter
from ringleaf.cli.registry import COMMANDS, OLD_NAMES, listed
from ringleaf.cli.usage import default_of, help_of, spelled

__all__ = ["commands", "options_under", "overview", "reference", "shared_headings"]

AND: Final = " and "


def overview() -> Iterator[str]:
    """Every command in its group, with what it does."""
    yield "| group | command | what it does |"
    yield "|---|---|---|"
    for group, rows in listed().items():
        for words, title in rows:
            yield f"| {group} | `{words}` | {title} |"


def reference(name: str) -> Iterator[str]:
    """A command: what it does, how it is called, and its own options."""
    command = COMMANDS[name]
    for paragraph in (command.title, *command.body):
        yield from (_escaped(paragraph), "")
    yield from ("```text", help_of(command).partition("\n")[0][len("Usage: ") :], "```")
    for each in command.arguments:
        yield from ("", f"`{each.long}`: {_escaped(each.form.help)}")
    shared = shared_headings()
    own = [each for each in command.options if each.heading not in shared]
    if own:
        yield ""
        yield from _table(own)
    used = dict.fromkeys(e.heading for e in command.options if e.heading in shared)
    if used:
        links = [f"[{_inside(h)}](#{_anchor(h)})" for h in used]
        listing = AND.join([", ".join(links[:-1]), links[-1]] if links[1:] else links)
        yield from ("", f"It also has the options for {listing}.")
    if old := [each for each, new in OLD_NAMES.items() if new.split()[0] == name]:
        names = ", ".join(f"`ringleaf {each}`" for each in old)
        yield from ("", f"Old names that still work: {names}.")


def shared_headings() -> dict[str, list[Parameter]]:
    """Headings under which several commands have the same options, and these."""
    found: dict[str, list[Parameter]] = {}
    users: dict[str, int] = {}
    for command in COMMANDS.values():
        for heading in dict.fromkeys(each.heading for each in command.options):
            users[heading] = users.get(heading, 0) + 1
            own = [each for each in command.options if each.heading == heading]
            found[heading] = max(found.get(heading, []), own, key=len)
    return {h: found[h] for h in found if users[h] > 1 and h != OPTIONS}


def options_under(heading: str) -> Iterator[str]:
    """The options that several commands share."""
    yield from _table(shared_headings()[heading])


def _table(options: Iterable[Parameter]) -> Iterator[str]:
    yield "| option | meaning |"
    yield "|---|---|"
    for each in options:
        assert isinstance(each.form, Option)
        default = default_of(each)
        more = f" Default: {default}." if default else ""
        yield f"| `{_escaped(spelled(each))}` | {_escaped(each.form.help + more)} |"


def _escaped(text: str) -> str:
    """*text* with nothing that Markdown would read."""
    return text.replace("|", "\\|")


def _inside(heading: str) -> str:
    """A heading inside of a sentence.

    >>> _inside("Output"), _inside("API server")
    ('output', 'API server')
    """
    is_acronym = heading[:2].isupper()
    return heading if is_acronym else heading[0].lower() + heading[1:]


def _anchor(heading: str) -> str:
    return heading.lower().replace(",", "").replace(" ", "-")
