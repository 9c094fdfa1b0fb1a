"""Options that the program's row does not declare: the common meaning of their names.

``-o x``, ``--out*``, ``--output*``, ``--*-dir`` and their like name an output, for a known program and an unknown one;
``--write``, ``--fix`` and the like announce a write without its name.
"""

from __future__ import annotations

from typing import Any

from swarm_hook_core.shell.call import Call
from swarm_hook_core.shell.model import is_known
from swarm_hook_core.shell.programs.places import cannot_tell, exists, is_folder

_OUTPUTS = ("output", "out-", "outfile", "outdir", "outpath", "outfolder")
# `--output-...` options that describe an output and do not name it
_MANNERS = (
    "format", "type", "encoding", "delimiter", "separator", "mode", "level", "style", "width", "fields", "template",
    "limit", "indent", "error", "errors", "charset", "version", "lines", "sync", "size", "prefix", "suffix", "columns",
)  # fmt: skip
_FOLDERS = ("-dir", "-directory", "-folder")
# `--...-dir` options of folders that are only read, or run in
_READ_FOLDERS = frozenset(
    "add asset assets base cache cert certs change chart config conf current docs exclude exec git home"
    " ignore image in include includes input java key lib library module modules package packages plugin plugins"
    " policy project proj resource resources root rules schema script scripts sdk search site source src start"
    " template templates temp test tests tmp top-level user work working".split()
)
_WRITES = frozenset("write fix autofix inplace in-place overwrite save compile".split())
_WRITES_FIRST = ("write-", "fix-", "save-", "in-place-")


def name_outputs(call: Call, words: list[str] | None = None, declared: dict[str, str] | tuple[Any, ...] = ()) -> None:
    """Report the outputs that the options of `call` name (or of `words`, the last of its arguments).

    `declared`: the options that its row declares. The ``-o`` of a program without a row may be a level: a number is no
    file.
    """
    has_row = words is not None
    if words is None:
        words = call.words
    for place, word in enumerate(words):
        if len(word) < 2 or word[0] != "-" or not is_known(word[:2]):
            continue
        name, equals, value = word.partition("=")
        if name in declared or "-" + name.lstrip("-") in declared:
            continue
        kind = _kind(name)
        if not kind and word.startswith("-o") and "-o" not in declared:
            kind = "file"
            if name != "-o":
                value, equals = word[2:], "="
        if not kind:
            continue
        if not equals:
            value = ""
            if place + 1 < len(words):
                value = words[place + 1]
        if value and value[0] != "-" and (has_row or word[:2] == "--" or value.strip("0123456789.")):
            _written(call, kind, value)


def says_that_it_writes(words: list[str], declared: dict[str, str]) -> str:
    """Return the first option of `words` with a name that announces a write, or empty. `declared` ones do not count."""
    for word in words:
        bare = ""
        if word[:2] == "--":
            bare = word[2:].partition("=")[0]
        known = not bare or "--" + bare in declared or "dry" in bare
        if not known and (bare in _WRITES or bare.startswith(_WRITES_FIRST)):
            return "--" + bare
    return ""


def _written(call: Call, kind: str, word: str) -> None:
    if kind == "file" and not is_folder(call, word):
        call.write(word)
        if exists(call, word) or not is_known(word):
            return
    call.tree(word, cannot_tell)


def _kind(name: str) -> str:
    """Return ``views`` or ``folder`` for an option (``--name``) whose argument is written, else empty."""
    bare = name.lstrip("-")
    if len(bare) < 3:
        return ""
    if bare[-3:] == "Dir" and bare[-4:-3] not in ("", "-"):
        bare = bare[:-3] + "-dir"
    bare = bare.lower().replace("_", "-")
    if bare == "out" or bare.startswith(_OUTPUTS) or bare.endswith(("-out", "-output", "-outfile", "-output-file")):
        if bare.endswith(_MANNERS):
            return ""
        if bare.endswith(("dir", "directory", "folder")):
            return "folder"
        return "file"
    if name[:2] == "--" and bare.endswith(_FOLDERS) and bare.rpartition("-")[0] not in _READ_FOLDERS:
        return "folder"
    if name in ("--log-file", "--logfile"):
        return "file"
    return ""
