"""Recognises commands that write nothing by their text alone, so that the script reader need not be loaded.

A plain command is one program of these tables with plain words, without anything the shell would expand. The answer is
the one that walking the script would give.
"""

TYPE_CHECKING = False  # like typing's own; importing typing takes milliseconds
if TYPE_CHECKING:
    from typing import Any


_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 -_./,:+@%'\"")
_DIGITS = frozenset("0123456789")
LONGEST = 1000  # characters
_MAY_WRITE = ("--o", "--ext", "--text")  # --output, or a shorter form of it; options that run other programs
_WRITE_NOTHING = frozenset("ls pwd echo true".split())
_SHOW = frozenset("cat head tail nl sed".split())
_GIT_LOOKS = frozenset("status log diff".split())


def shown(text: str) -> "list[tuple[str, tuple[Any, ...]]] | None":
    """Return ``(path as spelled, spans)`` of the files that a plain command shows, spans as in ``spans``.

    None if `text` is no plain command.
    """
    if len(text) > LONGEST or set(text) - _LETTERS or any(option in text for option in _MAY_WRITE):
        return None
    words: list[Any] = text.split()
    if "'" in text or '"' in text:
        words = [_without_quotes(word) for word in words]
    name = ""
    if words:
        name = words[0]
    if None in words:
        return None
    if name in _SHOW:
        files = _after_options(name, words[1:])
        if files is None or any(not file or file[0] == "-" for file in files):
            return None
        return _with_spans(name, words[1:], files)
    if name == "git" and len(words) > 1 and words[1] in _GIT_LOOKS:
        if all(len(word) > 1 and word[0] == "-" and word not in ("--", "-O") for word in words[2:]):
            return []
        return None
    if name in _WRITE_NOTHING:
        return []
    return None


def _without_quotes(word: str) -> "str | None":
    """Return `word` without the quotes around it; None if it has quotes anywhere else."""
    if word[0] in "'\"" and len(word) > 1 and word[-1] == word[0]:
        word = word[1:-1]
    if "'" in word or '"' in word:
        return None
    return word


def _with_spans(name: str, words: "list[str]", files: "list[str]") -> "list[tuple[str, tuple[Any, ...]]]":
    """Return each of `files` with the spans that the program shows of it."""
    if name in ("cat", "nl"):
        return [(file, ()) for file in files]
    from swarm_hook_core.shell.spans import spans_of_head, spans_of_sed

    if name == "sed" and len(files) > 1:
        return []
    if name == "sed":
        spans, _files = spans_of_sed(words)
    else:
        spans, _files = spans_of_head(name, words)
    if spans is not None:
        return [(file, spans) for file in files]
    return []


def _after_options(name: str, words: "list[str]") -> "list[str] | None":
    """Return the words after the common options; None if there are other options."""
    first = ""
    if words:
        first = words[0]
    if name == "sed":
        numbers = []
        if len(words) > 1 and words[1][-1:] == "p":
            numbers = words[1].rstrip("p").split(",")
        is_range = 0 < len(numbers) < 3 and all(number and not set(number) - _DIGITS for number in numbers)
        if first == "-n" and is_range and len(words) > 2:
            return words[2:]
        return None
    if name in ("head", "tail"):
        if first == "-n":
            if len(words) > 1 and words[1] and not set(words[1]) - _DIGITS:
                return words[2:]
            return None
        if len(first) > 1 and first[0] == "-" and not set(first[1:]) - _DIGITS:
            return words[1:]
        return words
    if (name, first) in (("cat", "-n"), ("nl", "-ba")):
        return words[1:]
    return words
