"""Several commands of one call, which a client runs at the same time and each by itself, as one text for a shell."""

import re
import shlex
from typing import Any

_HEREDOC = re.compile(r"""(?<!<)<<-?\s*(?:"([^"]+)"|'([^']+)'|([A-Za-z0-9_./-]+))""")


def one_text(commands: "list[Any]") -> str:
    """Return one text with the effect of `commands`: texts for a shell, or ``{command, args}`` to run without one.

    Texts from one that begins a heredoc to the one that ends it are a single command. Values of any other kind are left
    out.
    """
    texts = []
    for command in _whole(commands):
        if isinstance(command, dict):
            words = [command.get("command"), *(command.get("args") or [])]
            command = shlex.join(word for word in words if isinstance(word, str))
        if isinstance(command, str):
            texts.append(command)
    if len(texts) == 1:
        return texts[0]
    return "\n".join(f"bash -c {shlex.quote(text)}" for text in texts)


def _whole(commands: "list[Any]") -> "list[Any]":
    """`commands` with each heredoc in one piece."""
    found, rest = [], list(commands)
    while rest:
        command = rest.pop(0)
        if isinstance(command, str):
            begun = _HEREDOC.search(command)
        else:
            begun = None
        if begun:
            ends = [word for word in begun.groups() if word]
        else:
            ends = []
        lines: list[Any] = []
        for line in rest if ends else ():
            if not isinstance(line, str):
                break
            lines.append(line)
            if line.strip() in ends:
                command = "\n".join([command, *lines])
                del rest[: len(lines)]
                break
        found.append(command)
    return found
