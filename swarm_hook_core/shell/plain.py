"""The first look at a command: recognises the everyday ones by their text, so that the script reader is not loaded.

A plain command is a list of programs of these tables, with words that the shell takes as they are: nothing is expanded.
Its output may go on to another of them, to ``/dev/null``, or be added to a file (``>>``). ``echo`` may replace a file,
and one ``cp`` or ``mv`` may put one in a new place. The answer is the one that walking the script would give; a test
compares the two, and the tables with those of ``programs``.
"""

from swarm_hook_core import EDIT, REPLACE

TYPE_CHECKING = False  # like typing's own; importing typing takes milliseconds
if TYPE_CHECKING:
    from typing import Any

    Shown = tuple[str, "tuple[Any, ...]"]  # path as spelled, spans as in ``spans``

_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./,:+@%=^")
_DIGITS = frozenset("0123456789")
LONGEST = 1000  # characters
PATTERN = "\0"  # in a word: the shell may expand it to names of files
OPERATOR = "\1"  # begins the token of an operator; no word has it
PIPE, OR, ADD, PUT, NULL = "\1|", "\1||", "\1>>", "\1>", "\1>/dev/null"
AND = "\1&&"
ENDS = ("\1;", "\1\n", AND, OR)
ERRORS = ("\0012>&1", "\0012>/dev/null")  # of these nothing depends
OPERATORS = (*ERRORS, "\1&>/dev/null", NULL, ADD, PUT, AND, OR, PIPE, "\1;", "\1\n")
# Readers, no argument of which names a file to write, or another program.
READERS = frozenset("ls pwd echo true basename dirname realpath readlink test seq grep egrep fgrep".split())
# The same, unless an option has a name as of an output (``undeclared``).
READERS_BUT = frozenset(
    "wc cut tr cmp comm diff stat which date id whoami hostname uname df du sleep md5sum sha256sum nproc uptime"
    " printenv".split()
)
SHOW = frozenset("cat head tail nl sed".split())
# Programs that write by these options, or the beginnings of these; what the shell might expand is not looked into.
WRITE_BY = {
    "find": ("-exec", "-ok", "-delete", "-fprint", "-fls"),
    "rg": ("--pre", "--hostname-bin"),
}
MOVERS = {"cp": ("-f", "-p", "-v"), "mv": ("-f", "-v")}  # with options that make no difference
NAME_SIGNS = _LETTERS | {" "}  # of a file that is written
FILTERS = {"sort": frozenset("-nruhVfb"), "uniq": frozenset("-cdui")}  # letters of the words that they may have
GIT_LOOKS = frozenset("status log diff show rev-parse ls-files".split())
GIT_WITHOUT_OPERANDS = ("diff",)  # else it shows the changes of files
GIT_WRITES = ("--output", "--ext-diff", "--textconv")  # or their beginnings
GIT_LISTS = {
    "branch": ("-a", "-r", "-v", "-vv", "--all", "--remotes", "--list", "--show-current"),
    "remote": ("-v",),
    "stash": ("list",),
}
SUCCEED = SHOW | {"ls", "echo", "pwd", "true", "git"}  # the reader expects these to succeed
TESTS = frozenset("-q -qq -x -vv -s --lf --ff --tb=short --tb=long --tb=line --tb=no --tb=native".split())


class Plain:
    """The effects of a plain command.

    shown    files that it certainly shows
    outputs  ``(path as spelled, how, the words that write it, the text if it is replaced)`` of files that get an output
    moved    ``(program, source, destination, its words)`` of a file that is copied or moved
    runs     True if it runs the project's tests
    """

    __slots__ = ("shown", "outputs", "moved", "runs")

    def __init__(self) -> None:
        self.shown: list[Shown] = []
        self.outputs: list[tuple[str, str, str, str | None]] = []
        self.moved: list[tuple[str, str, str, str]] = []
        self.runs = False

    @property
    def writes(self) -> int:
        """The number of its statements that write."""
        return len(self.outputs) + len(self.moved)


def look(text: str) -> "Plain | None":
    """Return the effects of `text`, or None if it is no plain command."""
    tokens = _tokens(text)
    if not tokens:
        return None
    found, has_moved = Plain(), False
    names: set[str] = set()
    for pipeline in _cut(tokens, ENDS):
        commands = _cut(pipeline, (PIPE,))
        for words in commands:
            names.update(words[:1])
            if len(words) == 2 and words[0] == "cd" and len(commands) == 1 and words[1][:1] not in ("-", OPERATOR):
                has_moved = True
            elif not _take(words, found, len(commands) == 1):
                return None
    if (has_moved or OR in tokens) and (found.shown or found.writes):
        return None  # in another folder, or maybe not at all
    if found.writes > 1 and (found.moved or any(how != EDIT for _path, how, *_more in found.outputs)):
        return None  # a file may be made of another one
    if found.shown and AND in tokens and not names <= SUCCEED:
        return None  # a search without a result ends the list
    return found


def _tokens(text: str) -> "list[str] | None":
    """Return the words and operators of `text`; None if the shell does more with it than to part it."""
    if len(text) > LONGEST or PATTERN in text or OPERATOR in text:
        return None
    tokens: list[str] = []
    word: str | None = None
    at = 0
    while at < len(text):
        sign = text[at]
        if sign in _LETTERS and (word is not None or not text.startswith("2>", at)):
            word, at = (word or "") + sign, at + 1
        elif sign in "*?~":
            word, at = (word or "") + PATTERN, at + 1
        elif sign in "'\"":
            close = text.find(sign, at + 1)
            part = text[at + 1 : close]
            if close < 0 or "\n" in part or (sign == '"' and any(one in part for one in "$`\\!")):
                return None
            word, at = (word or "") + part, close + 1
        else:
            if word is not None:
                tokens.append(word)
            if sign in " \t":
                word, at = None, at + 1
                continue
            operator = next((one for one in OPERATORS if text.startswith(one[1:], at)), "")
            at += len(operator) - 1
            is_stream = operator in (*ERRORS, NULL, "\1&>/dev/null")
            if not operator or (">" in operator and word is not None and word.isdecimal()):
                return None
            if is_stream and text[at : at + 1] not in ("", *" ;|&\n"):
                return None
            word = None
            tokens.append(NULL if operator == "\1&>/dev/null" else operator)
    if word is not None:
        tokens.append(word)
    return tokens


def _cut(tokens: "list[str]", operators: "tuple[str, ...]") -> "list[list[str]]":
    """Return the parts of `tokens` between any of these operators."""
    parts: list[list[str]] = [[]]
    for token in tokens:
        if token in operators:
            parts.append([])
        else:
            parts[-1].append(token)
    if not parts[-1] and tokens and tokens[-1] in ("\1;", "\1\n"):
        parts.pop()  # the text may end with one
    return parts


def _take(tokens: "list[str]", found: Plain, is_whole: bool) -> bool:
    """Add the effects of one command to `found`; return False if it is no plain one.

    is_whole  False if it is a part of a pipeline: then the output of a file is not what is shown
    """
    words = [token for token in tokens if token not in ERRORS]
    is_silent, operator, target = words[-1:] == [NULL], "", ""
    if is_silent:
        words.pop()
    elif len(words) > 2 and words[-2] in (ADD, PUT):
        operator, target = words[-2][1:], words[-1]
        del words[-2:]
        if not _is_name(target):
            return False
    if not words or any(word.startswith(OPERATOR) for word in words):
        return False
    if words[0] in MOVERS:
        files = [word for word in words[1:] if word not in MOVERS[words[0]]]
        if not (is_whole and len(files) == 2 and all(map(_is_name, files))) or is_silent or target:
            return False
        from swarm_hook_core.shell.model import cited

        source, dest = files
        found.moved.append((words[0], source, dest, cited(" ".join(words))))
        return True
    shown = _shown(words, found)
    if shown is None or (shown and (is_silent or target or not is_whole)):
        return False
    if target:
        if PATTERN in "".join(words) or (operator == ">" and not _is_text(words, is_whole)):
            return False
        from swarm_hook_core.shell.model import cited_output

        by = cited_output(" ".join(words), operator, target)
        if operator == ">":
            found.outputs.append((target, REPLACE, by, " ".join(words[1:]) + "\n"))
        else:
            found.outputs.append((target, EDIT, by, None))
    found.shown += shown
    return True


def _is_name(word: str) -> bool:
    """Return True for a file's name that means the same in each shell: below the folder, or beside it."""
    return bool(word) and word[0] not in "-/=%^+@" and NAME_SIGNS.issuperset(word)


def _is_text(words: "list[str]", is_whole: bool) -> bool:
    """Return True for an ``echo`` that prints its words as they are."""
    return words[0] == "echo" and is_whole and not any(word[:1] == "-" for word in words[1:2])


def _shown(words: "list[str]", found: Plain) -> "list[Shown] | None":
    """Return the files that a program shows; None if it may do anything else, or is unknown."""
    name, rest = words[0], words[1:]
    if name in READERS:
        if name.endswith("grep") and ("" in rest or "^" in rest):
            return None  # each line of the files
        return []
    if name in READERS_BUT:
        return None if any(word.startswith(("--", "-o")) for word in rest) else []
    if any(PATTERN in word for word in words):
        return None
    if name in SHOW:
        files = _after_options(name, rest)
        if files is None or any(not file or file[0] == "-" for file in files):
            return None
        return _with_spans(name, rest, files)
    if name == "git":
        is_plain = _is_look(rest)
    elif name in FILTERS:
        is_plain = all(word[:1] == "-" and FILTERS[name].issuperset(word) for word in rest)
    elif name in WRITE_BY:
        is_plain = not any(word.startswith(WRITE_BY[name]) for word in rest) and "" not in rest and "^" not in rest
    else:
        is_plain = _is_test(words)
        found.runs = found.runs or is_plain
    return [] if is_plain else None


def _is_look(words: "list[str]") -> bool:
    """Return True if ``git`` with these `words` only shows something of the repository, and no file."""
    if words[:1] == ["--no-pager"]:
        words = words[1:]
    verb, *rest = words or [""]
    if verb in GIT_LISTS:
        return all(word in GIT_LISTS[verb] for word in rest) and bool(rest or verb != "stash")
    if verb not in GIT_LOOKS:
        return False
    if verb in GIT_WITHOUT_OPERANDS and not all(word[:1] == "-" and word not in ("-", "--", "-O") for word in rest):
        return False
    options = [word.partition("=")[0] for word in rest if len(word) > 2 and word[0] == "-"]
    return not any(one.startswith(option) for option in options for one in GIT_WRITES)


def _is_test(words: "list[str]") -> bool:
    """Return True for a run of ``pytest`` that writes no report."""
    if words[0] in ("python", "python3") and words[1:2] == ["-m"]:
        words = words[2:]
    return words[:1] == ["pytest"] and all(word in TESTS or word[:1] not in ("-", "") for word in words[1:])


def _with_spans(name: str, words: "list[str]", files: "list[str]") -> "list[Shown]":
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
        if first == "-n" and is_range:
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
