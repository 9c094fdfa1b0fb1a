"""Reads apply_patch envelopes: which files would this text write?

The grammar is what Codex 0.169 was seen to do, not what its documentation says;
tests/e2e/test_patch_grammar.py holds this module against the real binary. Where a patch would be
refused anyway we may name a path too many, never one too few.

Runs before every write, so nothing is imported at the top, and a text is searched for markers
rather than walked by lines.
"""

_BEGIN = "*** Begin Patch"
_END = "*** End Patch"
_UPDATE = "*** Update File: "
_HEADERS = ("*** Add File: ", "*** Delete File: ", _UPDATE)
_MOVE_TO = "*** Move to: "
_MOVE_FILE = "*** Move File: "  # not in Codex 0.169; older agents still write it

# Rust trims Unicode's White_Space, which leaves alone the \x1c..\x1f that str.strip() would take off a file name.
_BLANKS = (
    " \t\n\x0b\x0c\r\x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
_MARKERS = (_BEGIN, _END, *_HEADERS, _MOVE_TO, _MOVE_FILE)
_OUTSIDE, _BETWEEN, _UPDATING = range(3)

_KEYS = ("command", "input", "patch", "text", "arguments")
_MAX_NESTING = 6  # of inputs in inputs and scripts in scripts: each level reads its text once more
_MAX_STARVED = 16

_NAMES = ("apply_patch", "applypatch")
_SHELLS = ("bash", "sh", "zsh", "dash", "ksh")


class PatchUnreadable(ValueError):
    """The text holds no apply_patch envelope that we can make sense of."""


def patch_paths(text: str) -> list[str]:
    """Paths that the envelopes in `text` would create, change, remove or rename, in order, each once.

    As Codex spells them: surrounding blanks off the header line, blanks after `File: ` kept, tabs and
    carriage returns dropped (it passes a path through a URL, which loses them), `~` and `$` plain
    characters. An empty envelope gives []. Raises PatchUnreadable where there is no envelope, or one
    that is cut short or odd before it names a file.
    """
    found: dict = {}
    mode, begun = _OUTSIDE, False
    line_end = 0
    at = text.find("*** ")
    while at >= 0:
        marked = text.startswith(_MARKERS, at) and _leads_line(text, at, line_end, mode)
        line_end = text.find("\n", at)
        if line_end < 0:
            line_end = len(text)
        if marked:
            line = text[at:line_end].rstrip(_BLANKS)
            if line == _BEGIN:
                mode, begun = _BETWEEN, True
            elif mode == _OUTSIDE:
                pass
            elif line == _END:
                mode = _OUTSIDE
            elif line.startswith(_HEADERS):
                mode = _UPDATING if line.startswith(_UPDATE) else _BETWEEN
                found[line[line.index(": ") + 2 :]] = None
            elif line.startswith(_MOVE_TO):
                if mode == _UPDATING:
                    found[line[len(_MOVE_TO) :]] = None
            elif line.startswith(_MOVE_FILE):
                mode = _BETWEEN
                for end in line[len(_MOVE_FILE) :].split(" -> ", 1):
                    found[end.strip(_BLANKS)] = None
        at = text.find("*** ", line_end)
    if not begun:
        raise PatchUnreadable("no '*** Begin Patch' line")
    if not found and text.replace(_BEGIN, "", 1).replace(_END, "", 1).strip(_BLANKS):
        raise PatchUnreadable("the envelope names no file")
    paths = dict.fromkeys(path.replace("\t", "").replace("\r", "") for path in found)
    return [path for path in paths if path and "\0" not in path]


def _leads_line(text: str, at: int, line_end: int, mode: int) -> bool:
    """Whether the marker at `at` is the first thing on its line, the last line read having ended at `line_end`.

    Inside an update an indented line is context, so text; after Add or Delete, Codex takes it for the next header.
    """
    before = text[at - 1 : at] or "\n"
    if before == "\n":
        return True
    if mode == _UPDATING or before not in _BLANKS:
        return False
    start = text.rfind("\n", line_end, at) + 1
    return not text[start:at].strip(_BLANKS)


def patches_in(tool_input: object) -> "list[tuple[str | None, str]]":
    """`(directory, text)` for each apply_patch envelope in a tool input of any JSON shape. Never raises.

    The input may be the text itself, hold it under `command`, `input`, `patch`, `text` or `arguments`, wrap
    either in a JSON string, or be an argv list, whose shell may have gone to another directory (else
    None). What nests deeper than a handful of levels is left alone.
    """
    found: dict = {}
    todo = [(tool_input, 0)]
    while todo:
        value, depth = todo.pop()
        if depth > _MAX_NESTING:
            continue
        if isinstance(value, str):
            if value.lstrip()[:1] in ("{", "[", '"') and "Begin Patch" in value:
                inner = _unwrap_json(value)
                if inner is not None:
                    todo.append((inner, depth + 1))
                    continue
            if _BEGIN in value:
                found[None, value] = None
        elif isinstance(value, dict):
            todo.extend((value[key], depth + 1) for key in reversed(_KEYS) if key in value)
        elif isinstance(value, (list, tuple)) and value and isinstance(value[0], str):
            name = value[0].rpartition("/")[2]
            words = [word for word in value[1:] if isinstance(word, str) and _BEGIN in word]
            if name in _SHELLS:
                found.update((pair, None) for word in words for pair in shell_patches(word))
            elif name in _NAMES:
                found.update(((None, word), None) for word in words)
            elif len(value) == 1:
                todo.append((value[0], depth + 1))
    return list(found)


def _unwrap_json(text: str) -> object:
    """The value that a JSON text stands for, without what is very deep in it; None where it is no JSON."""
    from swarm_hook_core.json_text import loads_outer

    try:
        return loads_outer(text)
    except ValueError:
        return None


def shell_patches(command: str) -> "list[tuple[str | None, str]]":
    """`(directory, text)` for every patch that a shell command line hands to apply_patch; [] where it hands none.

    The directory is where preceding `cd`s lead, as written and joined, None for the call's own. A
    patch comes once for each directory it may go to: Codex runs `cd DIR && apply_patch <<EOF` itself
    and takes DIR literally (`~`, `a\\ b`, the first literal part of "$x/y"), a shell would not. Where
    a shell would fill in home or a variable, that is done already: join, do not expand again.
    """
    if "Begin Patch" not in command or not any(name in command for name in (*_NAMES, "-apply-patch")):
        return []
    from swarm_hook_core.patch_shell import PATCHERS, SHELLS, base_name, commands, program

    found: dict = {}
    loose: list[str] = []  # what other commands were given: a patch that comes by file, pipe or variable is among it
    starved: dict = {}  # directories of runs whose patch is not in sight
    scripts: list = [(command, (None,), 0)]
    for script, outer, depth in scripts:  # grows while shells within the shell turn up
        for words, documents, directories in commands(script, outer):
            at = program(words)
            name = "" if at is None else base_name(words[at])
            given = words + documents if at is None else words[at + 1 :] + documents
            loose += words[:at] if at else []
            if name in PATCHERS:
                own = [_real_lines(text[text.index(_BEGIN) :]) for text in given if _BEGIN in text]
                found.update(((directory, text), None) for text in own for directory in directories)
                if not own:
                    starved.update(dict.fromkeys(directories))
            elif name in SHELLS and depth < _MAX_NESTING:
                for text in [" ".join(given)] if name == "eval" else given:
                    if "apply" in text:
                        scripts.append((text, directories, depth + 1))
                    else:
                        loose.append(text)
            else:
                loose += given
    if starved and any(_BEGIN in text for text in loose):
        text = _real_lines("\n".join(text[max(text.find(_BEGIN), 0) :] for text in loose))
        if _is_readable(text):
            found.update(((directory, text), None) for directory in list(starved)[:_MAX_STARVED])
    return [pair for pair in found if _is_readable(pair[1])] or list(found)


def _real_lines(text: str) -> str:
    """`text` with printf's and echo's `\\n` made real, where it has the whole envelope on one line."""
    return text.replace("\\n", "\n") if _BEGIN + "\\n" in text else text


def _is_readable(text: str) -> bool:
    try:
        patch_paths(text)
    except PatchUnreadable:
        return False
    return True
