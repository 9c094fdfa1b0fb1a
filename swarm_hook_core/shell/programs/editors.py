"""Editors that take their commands from the command line or the standard input: ed, ex, vim."""

from swarm_hook_core import REPLACE
from swarm_hook_core.shell.call import Call
from swarm_hook_core.shell.model import UNKNOWN, edit_or_replace, is_known
from swarm_hook_core.shell.options import split
from swarm_hook_core.shell.programs.places import maybe

MOST = 200  # commands of one script that are read
LONGEST = 4096  # characters of one of them
DEEPEST = 3  # commands within commands that are followed

_VIM_LONG = "--cmd --servername --remote --remote-send --remote-expr --startuptime --listen --log".split()


def ed(call: "Call") -> None:
    options = split(call.words, "p", ("--prompt",))
    if options.has("-h", "-V"):
        return
    editor = _Editor(call, options.operands[:1])
    if call.stdin is None or call.stdin.text is None:
        editor.all_may_be_written()
    else:
        editor.script(call.stdin.text)


def vim(call: "Call") -> None:
    words = [word for word in call.words if word[:1] != "+"]
    given = [word[1:] for word in call.words if word[:1] == "+"]
    options = split(words, "cSutUTiwWqrl", _VIM_LONG, optional="opOV")
    is_ex = call.name in ("ex", "exim") or options.has("-e", "-E")
    if not is_ex and options.has("-s"):  # in ex mode -s takes no value: `-es`, `-sc 'x'`
        options = split(words, "cSutUTiswWqrl", _VIM_LONG, optional="opOV")
    if options.has("-h"):
        return
    for name in options.values("-w", "-W", "--startuptime", "--log"):
        if not name.isdigit():
            call.write(name, REPLACE)
    given += options.values("-c", "--cmd")
    no_script = ("NONE", "NORC", "DEFAULTS", "/dev/null")
    scripts = [one for one in options.values("-S", "-l", "-s", "-u") if one not in no_script]
    editor = _Editor(call, options.operands)
    for text in given[:MOST]:
        editor.command(text)
    if is_ex and call.stdin is not None and "-" not in options.operands:
        if call.stdin.text is None:
            editor.all_may_be_written()
        else:
            editor.script(call.stdin.text)
    if scripts:
        if is_known(scripts[0]):
            call.guess(f"runs {scripts[0]}")
        else:
            call.guess("a computed script")
    if not given and not is_ex and call.name != "view" and not options.has("--headless", "-R"):
        editor.all_may_be_written()


def _after_range(line: str) -> tuple[str, str]:
    """``(range, rest)`` of an ed or ex command."""
    at = 0
    while at < len(line):
        char = line[at]
        if char in "0123456789.$%,;+- \t*":
            at += 1
        elif char == "'":
            at += 2
        elif char in "/?":
            close = at + 1
            while close < len(line) and line[close] != char:
                close += 1 + (line[close] == "\\")
            at = close + 1
        else:
            break
    return line[:at], line[at:]


_MODIFIERS = "silent! silent sil! sil noautocmd noa keepalt keepj keepjumps keepp keeppatterns verbose".split()
_ALL = "bufdo argdo windo tabdo bufd argd".split()
_WRITES = "w W wr write wq x xi xit exi exit up update wn wnext wN ZZ".split()
_WRITES_ALL = "wa wall xa xall wqa wqall".split()
_WRITES_NAMED = "sav saveas mks mksession mkv mkvimrc redi redir".split()
_RUNS_SCRIPTS = "so source lua luafile py python py3 pyfile ru runtime".split()
_FUNCTIONS = ("writefile(", "delete(", "rename(", "system(", "execute(", "setline(")
_WITH_BARS = ("!", "r !", "r!", "w !", "norm", "bufdo", "argdo", "windo", "tabdo", "g/", "v/", "g!")


class _Editor:
    """ed's and ex's commands, run over `files`."""

    def __init__(self, call: "Call", files: list[str]) -> None:
        self.call = call
        self.files = list(files)
        self.current = ""
        if self.files:
            self.current = self.files[0]
        self.every = False

    def script(self, text: str) -> None:
        """Run commands, one a line; text typed after ``a``, ``i`` and ``c`` ends at a line with a point."""
        lines = iter(text.split("\n")[:MOST])
        for line in lines:
            if _after_range(line.strip())[1].rstrip("pln!") in ("a", "i", "c"):
                while next(lines, ".") != ".":
                    pass
            else:
                self.command(line)

    def command(self, text: str, depth: int = 0) -> None:
        """One line of ex commands, with ``|`` between them."""
        if not is_known(text) and not any(part in text for part in ("w", "x", "up", "ZZ")):
            self.all_may_be_written()
            return
        for one in _parts(text[:LONGEST])[:MOST]:
            self.one(one.strip().lstrip(":").strip(), depth)

    def one(self, text: str, depth: int) -> None:
        for name in _MODIFIERS:
            if text.startswith(name + " "):
                text = text[len(name) :].strip()
        _range, text = _after_range(text)
        name = text[: next((at for at, char in enumerate(text) if not char.isalpha()), len(text))]
        rest = text[len(name) :]
        forced, rest = rest.startswith("!"), rest.removeprefix("!").strip()
        if name in ("exe", "execute", "exec") and depth < DEEPEST:
            for one in rest.split('"')[1::2] + rest.split("'")[1::2]:
                self.command(one, depth + 1)
        elif name in _ALL and depth < DEEPEST:
            self.every = True
            self.command(rest, depth + 1)
            self.every = False
        elif name in ("g", "global", "v", "vglobal") and rest and depth < DEEPEST:
            end = rest.find(rest[0], 1)
            self.command(rest[end + 1 :] if end > 0 else "", depth + 1)
        elif name in ("norm", "normal") and "ZZ" in rest:
            self.written("")
        elif name in _WRITES_ALL or (name in _WRITES and self.every):
            for file in self.files:
                self.call.write(file)
        elif name in _WRITES:
            self.written(rest)
        elif name in _WRITES_NAMED:
            self.call.write(rest.lstrip("> ").strip() or UNKNOWN, edit_or_replace(">>" in rest))
        elif name in ("e", "E", "edit", "f", "n", "next", "b", "buffer") and rest and rest[0] != "!":
            self.current = rest
            self.files.append(rest)
        elif name in ("n", "next", "bn", "bnext") and self.current in self.files:
            self.current = (self.files[self.files.index(self.current) + 1 :] or [self.current])[0]
        elif name == "r" and rest.startswith("!") or (name == "" and (forced or text.startswith("!"))):
            self.call.script(rest.lstrip("!"))
        elif name in _RUNS_SCRIPTS:
            self.call.guess("runs a script of its own")
        elif any(one in rest for one in _FUNCTIONS):
            self.call.guess("calls functions that write")

    def written(self, rest: str) -> None:
        if rest.startswith("!"):
            self.call.script(rest[1:])
        elif rest.startswith("++"):
            self.written(rest.partition(" ")[2].strip())
        elif rest or self.current:
            file = rest.removeprefix(">>").strip().replace("%", self.current or "%") or self.current
            own = rest.startswith(">>") or file == self.current
            self.call.write(file, edit_or_replace(own))

    def all_may_be_written(self) -> None:
        for file in self.files:
            maybe(self.call, file)


def _parts(text: str) -> list[str]:
    """Return the commands of one line, split at ``|``, but not inside the arguments of ``!``, ``g`` and ``normal``."""
    parts, start, at = [], 0, 0
    while at < len(text):
        if text[at] == "\\":
            at += 1
        elif text[at] == "|":
            head = _after_range(text[start:at].strip().lstrip(":"))[1]
            if not head.startswith(_WITH_BARS):
                parts.append(text[start:at])
                start = at + 1
        at += 1
    return [*parts, text[start:]]
