"""Editors that take their commands from the command line or the standard input: ed, ex, vim, emacs."""

import os

from swarm_hook_core.shell.model import UNKNOWN, is_known
from swarm_hook_core.shell.options import split
from swarm_hook_core.shell.programs.places import maybe

MOST = 200  # commands of one script that are read
LONGEST = 4096  # characters of one of them

_VIM_LONG = (
    "--cmd",
    "--servername",
    "--remote",
    "--remote-send",
    "--remote-expr",
    "--startuptime",
    "--listen",
    "--log",
)


def _ed(call) -> None:
    options = split(call.words, "p", ("--prompt",))
    file = options.operands[0] if options.operands else ""
    if options.has("-h", "--help", "-V", "--version"):
        return
    text = call.stdin.text if call.stdin else None
    if text is None:
        maybe(call, file)
        return
    lines = iter(text.split("\n")[:MOST])
    for line in lines:
        _range, command = _after_range(line.strip())
        if command[:1] in ("a", "i", "c") and not command[1:].strip("pln"):
            for typed in lines:
                if typed == ".":
                    break
        elif command.startswith("!"):
            call.script(command[1:])
        elif command[:1] in ("e", "E", "f") and command[1:2] == " ":
            name = command[2:].strip()
            file = file if name.startswith("!") else name
        elif command[:1] in ("w", "W"):
            name = command[1:].removeprefix("q").strip()
            if name.startswith("!"):
                call.script(name[1:])
            elif name or file:
                call.write(name or file)
                file = file or name
        elif command[:1] in ("g", "v") and (line.endswith(("w", "W")) or "w " in line):
            maybe(call, file)


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
                close += 2 if line[close] == "\\" else 1
            at = close + 1
        else:
            break
    return line[:at], line[at:]


def _vim(call) -> None:
    words = [word for word in call.words if not (word[:1] == "+" and len(word) > 0)]
    given = [word[1:] for word in call.words if word[:1] == "+"]
    # In ex mode -s takes no value: `-es`, `-sc 'x'`.
    options = split(words, "cSutUTiwWqrl", _VIM_LONG, optional="opOV")
    is_ex = call.name in ("ex", "exim") or options.has("-e", "-E")
    typed = None
    if not is_ex and options.has("-s"):
        options = split(words, "cSutUTiswWqrl", _VIM_LONG, optional="opOV")
        typed = options.value("-s")
    if options.has("--version", "-h", "--help"):
        return
    for name in options.values("-w", "-W", "--startuptime", "--log"):
        if name and not name.isdigit():
            call.write(name)
    given += options.values("-c", "--cmd")
    scripts = options.values("-S", "-l") + ([typed] if typed else [])
    if options.value("-u") and options.value("-u") not in ("NONE", "NORC", "DEFAULTS", "/dev/null"):
        scripts.append(options.value("-u"))
    files = options.operands
    editor = _Editor(call, files)
    if is_ex and call.stdin is not None and "-" not in files:
        if call.stdin.text is None:
            for file in files:
                maybe(call, file)
        else:
            given += call.stdin.text.split("\n")
    for text in given[:MOST]:
        editor.command(text)
    if scripts:
        call.guess(f"runs {scripts[0]}" if is_known(scripts[0]) else "a computed script")
    if not given and not is_ex and not options.has("--headless"):
        for file in files if call.name != "view" and not options.has("-R") else ():
            maybe(call, file)


_MODIFIERS = (
    "silent!",
    "silent",
    "sil!",
    "sil",
    "noautocmd",
    "noa",
    "keepalt",
    "keepj",
    "keepjumps",
    "keepp",
    "keeppatterns",
    "verbose",
)
_ALL = ("bufdo", "argdo", "windo", "tabdo", "bufd", "argd")
_WRITES = ("w", "wr", "write", "wq", "x", "xi", "xit", "exi", "exit", "up", "update", "wn", "wnext", "wN", "ZZ")
_WRITES_ALL = ("wa", "wall", "xa", "xall", "wqa", "wqall")


class _Editor:
    """ex commands, run over `files`."""

    def __init__(self, call, files):
        self.call = call
        self.files = list(files)
        self.current = self.files[0] if self.files else ""
        self.every = False

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
        name = ""
        for char in text:
            if not char.isalpha():
                break
            name += char
        rest = text[len(name) :]
        forced, rest = rest.startswith("!"), rest.removeprefix("!").strip()
        if name in ("exe", "execute", "exec") and depth < 3:
            for one in rest.split('"')[1::2] + rest.split("'")[1::2]:
                self.command(one, depth + 1)
        elif name in _ALL and depth < 3:
            self.every = True
            self.command(rest, depth + 1)
            self.every = False
        elif name in ("g", "global", "v", "vglobal") and rest and depth < 3:
            end = rest.find(rest[0], 1)
            self.command(rest[end + 1 :] if end > 0 else "", depth + 1)
        elif name in ("norm", "normal") and "ZZ" in rest:
            self.written("")
        elif name in _WRITES_ALL or (name in _WRITES and self.every):
            for file in self.files:
                self.call.write(file)
        elif name in _WRITES:
            self.written(rest)
        elif name in ("sav", "saveas", "mks", "mksession", "mkv", "mkvimrc", "redi", "redir"):
            self.call.write(rest.lstrip("> ").strip() or UNKNOWN)
        elif name in ("e", "edit", "n", "next", "b", "buffer") and rest:
            self.current = rest
            self.files.append(rest)
        elif name in ("n", "next", "bn", "bnext") and self.current in self.files:
            self.current = (self.files[self.files.index(self.current) + 1 :] or [self.current])[0]
        elif name == "r" and rest.startswith("!") or (name == "" and (forced or text.startswith("!"))):
            self.call.script(rest.lstrip("!"))
        elif name in ("so", "source", "lua", "luafile", "py", "python", "py3", "pyfile", "ru", "runtime"):
            self.call.guess("runs a script of its own")
        elif any(one in rest for one in ("writefile(", "delete(", "rename(", "system(", "execute(", "setline(")):
            self.call.guess("calls functions that write")

    def written(self, rest: str) -> None:
        if rest.startswith("!"):
            self.call.script(rest[1:])
        elif rest.startswith("++"):
            self.written(rest.partition(" ")[2].strip())
        elif rest or self.current:
            self.call.write(rest.removeprefix(">>").strip().replace("%", self.current or "%") or self.current)

    def all_may_be_written(self) -> None:
        for file in self.files:
            maybe(self.call, file)


def _parts(text: str) -> list[str]:
    """The commands of one line: ``|`` parts them, but not in what ``!``, ``g`` and ``normal`` are given."""
    parts, start, at = [], 0, 0
    while at < len(text):
        if text[at] == "\\":
            at += 1
        elif text[at] == "|":
            head = _after_range(text[start:at].strip().lstrip(":"))[1]
            if not head.startswith(
                ("!", "r !", "r!", "w !", "norm", "bufdo", "argdo", "windo", "tabdo", "g/", "v/", "g!")
            ):
                parts.append(text[start:at])
                start = at + 1
        at += 1
    return [*parts, text[start:]]


_EMACS_VALUES = (
    "-l --load -f --funcall -e --eval --execute -L --directory -t --chdir --visit --file --insert --find-file -u --user"
    " --socket-name -s --alternate-editor -a"
).split()
_EMACS_READS = (
    "message",
    "print",
    "princ",
    "version",
    "emacs-version",
    "check-parens",
    "kill-emacs",
    "batch-byte-check",
)


def _emacs(call) -> None:
    words = list(call.words)
    if any(word in ("--version", "--help", "-h") for word in words):
        return
    batch = any(word in ("--batch", "-batch", "--script", "-script", "-x") for word in words)
    files, lisp, loads, at = [], [], [], 0
    while at < len(words):
        word = words[at]
        at += 1
        name, equals, value = word.partition("=")
        if name.startswith("-") and "-" + name in _EMACS_VALUES:
            name = "-" + name  # emacs takes long options with one dash as well
        if name in _EMACS_VALUES or name in ("--script", "-script", "-x"):
            if not equals:
                value = words[at] if at < len(words) else ""
                at += 1
            if name in ("-f", "--funcall", "-e", "--eval", "--execute"):
                lisp.append(value)
            elif name in ("-l", "--load", "--script", "-script", "-x"):
                loads.append(value)
            elif name in ("--visit", "--file", "--insert", "--find-file"):
                files.append(value)
        elif not word.startswith(("-", "+")):
            files.append(word)
    if not batch:
        for file in files:
            maybe(call, file)
        return
    text = " ".join(lisp)[:LONGEST]
    if "save-buffer" in text or "save-some-buffers" in text:
        for file in files:
            call.write(file)
    if "byte-compile" in text:
        for file in files:
            call.write(os.path.splitext(file)[0] + ".elc")
        return
    for function in (
        "write-file",
        "write-region",
        "append-to-file",
        "delete-file",
        "find-file",
        "copy-file",
        "rename-file",
    ):
        _lisp_names(call, text, function)
    named = [word for word in _symbols(text) if word not in _EMACS_READS]
    if loads or any(word.startswith(("org-", "shell", "call-process", "load", "make-", "project-")) for word in named):
        call.guess(f"runs {loads[0]}" if loads and is_known(loads[0]) else "runs Lisp")


def _lisp_names(call, text: str, function: str) -> None:
    """The strings in a call of a Lisp `function` that writes; ``find-file`` does where the buffer is saved."""
    at = text.find("(" + function)
    while at >= 0:
        inner = text[at : text.find(")", at)] if text.find(")", at) >= 0 else text[at:]
        strings = inner.split('"')[1::2]
        if function == "find-file":
            strings = strings if "save-buffer" in text else []
        elif not strings:
            call.guess("a computed path")
        for name in strings if function in ("find-file", "delete-file", "rename-file") else strings[-1:]:
            call.write(name)
        at = text.find("(" + function, at + 1)


def _symbols(text: str) -> list[str]:
    for char in "()'\"\n":
        text = text.replace(char, " ")
    return text.split()


RUN = {
    **dict.fromkeys(("ed", "red"), _ed),
    **dict.fromkeys(("ex", "vi", "vim", "nvim", "view", "rvim", "gvim", "mvim"), _vim),
    **dict.fromkeys(("emacs", "emacsclient"), _emacs),
}
