"""Shells: a script or a command that they are given."""

from __future__ import annotations

from swarm_hook_core.shell.call import Call
from swarm_hook_core.shell.model import absolute, is_known

_SHELLS = ("sh", "bash", "zsh", "dash", "ksh")


def is_shell_script(text: str, name: str) -> bool:
    """Return True if `text`, of file `name`, is for a shell: by its first line, else by its name."""
    first = text.partition("\n")[0]
    if first.startswith("#!"):
        words = first[2:].replace("/usr/bin/env -S", "").split()
        return any(word.rpartition("/")[2] in _SHELLS for word in words[:2])
    return name.endswith((".sh", ".bash", ".zsh"))


def shell(call: Call) -> None:
    """bash, sh and the like: ``-c text``, a script file, or a script on standard input."""
    words, command, reads_only, from_input = list(call.words), False, False, False
    while words and words[0][:1] in ("-", "+") and len(words[0]) > 1:
        word = words.pop(0)
        if word == "--":
            break
        if word in ("--rcfile", "--init-file"):
            words[:1] = []
        elif word.startswith("--"):
            if word in ("--version", "--help"):
                return
        else:
            letters = word[1:]
            command = command or "c" in letters
            reads_only = reads_only or "n" in letters
            from_input = from_input or "s" in letters
            if letters[-1:] in ("o", "O") and words:
                words.pop(0)
    if reads_only:
        return
    if command:
        if words:
            call.output = call.walk.nested(words[0], call.folder, words[1:] or [call.name], call.stdin, call.name)
        return
    if words and not from_input:
        _script_file(call, words)
        return
    stdin = call.stdin
    if stdin is not None and stdin.text is not None:
        call.output = call.walk.nested(stdin.text, call.folder, [call.name, *words], None, call.name)
    elif stdin is not None or not call.words or from_input:
        call.guess("a script that is not known")


def _script_file(call: Call, words: list[str]) -> None:
    whole = absolute(call.folder, words[0])
    if whole is not None and call.walk.files.is_missing(whole):
        return
    stream = call.walk.files.text_of(words[0], call.folder)
    if (
        stream is None
        or stream.text is None
        or not is_known(words[0])
        or stream.text.startswith("#!")
        and not is_shell_script(stream.text, "")
    ):
        call.guess("an opaque script")
    else:
        call.output = call.walk.nested(stream.text, call.folder, words, call.stdin, call.name)
