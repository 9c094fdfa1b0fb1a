"""tree-sitter's bash grammar, loaded without the packages around it, and parsing within limits.

The two packages' own ``__init__`` take 25 ms for ``typing`` and ``importlib.resources``, and the binding 12 for
``re`` and ``enum``, of which nothing is needed to parse; the extension modules themselves load in 1.
"""

import _thread
import os
import sys
import time

PARSE_SECONDS = 0.02  # of this thread's processor time
LONGEST = 64 * 1024  # bytes that are parsed; here-documents do not count
MOST_PIPES = 150  # the grammar takes quadratic time for a chain of these
_CHUNK = 256
_NAMES = ("tree_sitter", "tree_sitter_bash")

_loading = _thread.allocate_lock()
_make = None  # makes a parser: one of its own for each script, since a server's threads read at the same time


class GrammarMissing(ImportError):
    """tree-sitter or its bash grammar is not to be had from this interpreter."""


def parse(script: bytes):
    """The root node of `script`, or None where it is too long, or takes too long, to be read.

    A script that is not bash gives a tree with errors in it. Raises GrammarMissing.
    """
    global _make
    if _make is None:
        with _loading:
            _make = _make or _load()
    if len(script) > LONGEST or script.count(b"|") > MOST_PIPES:
        return None
    end, cut = time.thread_time() + PARSE_SECONDS, []

    def read(offset, _point):
        if time.thread_time() > end:
            cut.append(offset)
            return b""
        return script[offset : offset + _CHUNK]

    tree = _make().parse(read)
    return None if tree is None or cut else tree.root_node


def _load():
    for folder in _folders():
        if all(os.path.isdir(os.path.join(folder, name)) for name in _NAMES):
            try:
                return _from(folder)
            except Exception as error:
                raise GrammarMissing(f"the grammar in {folder} cannot be loaded: {error}") from None
    raise GrammarMissing("tree-sitter and tree-sitter-bash are not installed for this interpreter")


def _folders() -> list[str]:
    """Where to look: what `swarm-mcp install` wrote into the plugin, then this interpreter's own folders."""
    from swarm_hook_core.coordinator import recorded

    folder = recorded("grammar")
    return ([folder] if isinstance(folder, str) and folder else []) + sys.path


def _from(folder: str):
    """What makes a parser, from the packages in `folder`, past their ``__init__``."""
    stand_ins = {"re": _Re, "enum": _Enum}
    for name in _NAMES:
        stand_ins[name] = type(sys)(name)
        stand_ins[name].__path__ = [os.path.join(folder, name)]
    standing = [name for name in stand_ins if name not in sys.modules]
    sys.modules.update({name: stand_ins[name] for name in standing})
    try:
        from tree_sitter._binding import Language, Parser
        from tree_sitter_bash._binding import language

        bash = Language(language())
        Parser(bash)  # raises here what it would raise later
        return lambda: Parser(bash)
    finally:
        for name in standing:
            del sys.modules[name]


class _Re:
    """For ``re`` while the binding loads: queries would compile predicates with it."""

    @staticmethod
    def compile(*arguments):
        import re

        return re.compile(*arguments)


class _Enum:
    """For ``enum`` while the binding loads: it makes ``LogType``, of use to a logger alone."""

    @staticmethod
    def IntEnum(name, _members):
        return type(name, (), {})
