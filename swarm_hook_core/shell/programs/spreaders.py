"""find, fd, xargs, parallel: commands that are run with names from elsewhere."""

import os

from swarm_hook_core.shell.model import UNKNOWN, Found, Stream, absolute, is_known
from swarm_hook_core.shell.options import split
from swarm_hook_core.shell.programs.find_expression import RUNS, Expression
from swarm_hook_core.shell.programs.listers import listed
from swarm_hook_core.shell.programs.listing import names_below, text_of
from swarm_hook_core.shell.quoting import ENDS_WORD

MOST_LOOKED_AT = 400  # files under what `find -execdir` is given, before it cannot be told where it runs
MOST_RUNS = 24  # of one command with different names, before the rest goes through it as one


# find


def _find(call) -> None:
    words, follows = list(call.words), False
    while words and words[0] in ("-H", "-L", "-P", "-E", "-X", "-s", "-x", "-d"):
        follows = words.pop(0) == "-L" or follows
    roots: list[str] = []
    while words and not words[0].startswith("-") and words[0] not in ("(", "!", ")", ","):
        roots.append(words.pop(0))
    expression = Expression(words, call.folder, follows)
    roots = roots or ["."]
    printed: list = []
    for action in expression.actions:
        founds = _founds(call, expression, action, roots)
        if action.kind in ("-print", "-print0"):
            printed.append(None if founds is None else Stream(None, founds))
        elif action.kind == "-delete":
            _delete(call, roots, founds)
        elif action.kind in ("-fprint", "-fprint0", "-fls", "-fprintf"):
            call.write(action.words[0])
        elif action.kind in RUNS:
            printed.append(_run_on(call, action, founds))
        elif action.kind in ("-ls", "-printf"):
            printed.append(None)
    from swarm_hook_core.shell.streams import joined

    call.output = joined(printed)


def _founds(call, expression, action, roots):
    """What `action` is done with: a list of Founds; None where a root is not known."""
    founds: list = []
    for operand in roots:
        if not operand:
            continue  # there is no file of that name
        root = absolute(call.folder, operand)
        if root is not None:
            listed = _listed(expression, action, operand, root, call.walk)
            founds.append(Found(root, expression.reaches(action, operand, root), listed))
            continue
        inner = call.found(operand)
        if inner is None:
            return None
        founds += [Found(one.root, lambda _path: None) for one in inner]
    return founds


def _listed(expression, action, operand: str, root: str, walk):
    return lambda: expression.names(action, operand, root, walk)


def _names_of(founds):
    """The names in `founds`, None where they cannot be listed."""
    text = None if founds is None else text_of(Stream(None, founds))
    return None if text is None else text.splitlines()


def _delete(call, roots, founds) -> None:
    if founds is None:
        for operand in roots:
            call.tree(operand)
        return
    names = _names_of(founds)
    for name in names or ():
        call.write(name)
    for one in founds if names is None else ():
        call.tree(one.root, one.admits)


def _run_on(call, action, founds):
    """Run an ``-exec``, and give what it prints."""
    words = action.words[:-1] if action.words[-1:] in ([";"], ["+"]) else action.words
    if action.kind in ("-execdir", "-okdir") and words and founds is not None:
        paths = _on_disk(call, founds)
        if paths is not None:
            for path in paths:
                folder, name = os.path.split(path)
                call.walk.run([word.replace("{}", "./" + name) for word in words], None, folder)
            return None
    folder = None if action.kind in ("-execdir", "-okdir") else call.folder
    names = _names_of(founds) if folder and not _only_reads(words) else None
    if names is not None and words:
        return _run_on_names(call, words, names, action.words[-1:] == ["+"])
    mark = UNKNOWN if founds is None else call.walk.mark(founds)
    words = [word.replace("{}", mark) for word in words]
    return call.walk.run(words, None, folder) if words else None


def _run_on_names(call, words, names, together: bool):
    """Run `words` with each of `names` in the place of ``{}``, or with all of them; what that prints."""
    if not names:
        return Stream("")
    if together:
        at = words.index("{}") if "{}" in words else len(words)
        return call.walk.run([*words[:at], *names, *words[at + 1 :]], None, call.folder)
    from swarm_hook_core.shell.streams import joined

    each = names if len(names) <= MOST_RUNS else [*names[: MOST_RUNS // 2], call.walk.each_of(names[MOST_RUNS // 2 :])]
    return joined([call.walk.run([word.replace("{}", name) for word in words], None, call.folder) for name in each])


def _on_disk(call, founds):
    """The paths that are found, or None where they are too many to look at, or cannot be told."""
    paths: list[str] = []
    looked = 0
    for found in founds:
        waiting = [found.root]
        while waiting:
            path = waiting.pop()
            call.walk.spend()
            answer = found.admits(path)
            if answer is None:
                return None
            paths += [path] if answer else []
            looked += 1
            if looked > MOST_LOOKED_AT or len(paths) > MOST_RUNS:
                return None
            if os.path.isdir(path) and not os.path.islink(path):
                try:
                    waiting += [os.path.join(path, name) for name in os.listdir(path)]
                except OSError:
                    continue
    return paths


_FD_TAKES = (
    "--extension --type --exclude --max-depth --min-depth --exact-depth --changed-within --changed-before --size"
    " --owner --color --threads --search-path --base-directory --format --max-results --ignore-file --path-separator"
).split()


def _fd(call) -> None:
    words, command, each = list(call.words), [], False
    for option in ("-x", "--exec", "-X", "--exec-batch"):
        if option in words:
            at = words.index(option)
            words, command, each = words[:at], words[at + 1 :], option in ("-x", "--exec")
            break
    options = split(words, "etEdSocj", _FD_TAKES)
    operands = list(options.operands)
    wanted = operands.pop(0) if operands else None
    roots = operands + options.values("--search-path") or ["."]
    founds: list = []
    for operand in roots:
        root = absolute(call.folder, operand)
        if root is None:
            return
        admits = _fd_admits(root, wanted, options)
        founds.append(Found(root, admits, _fd_listed(call, root, operand, admits)))
    if not command:
        call.says(None, founds)
        return
    if command[-1:] == [";"]:
        command.pop()
    if not any("{" in word for word in command):
        command.append("{}")
    names = _names_of(founds)
    if names is None or (names and not each):
        names = [call.walk.mark(founds)]
    elif len(names) > MOST_RUNS:
        names = [*names[: MOST_RUNS // 2], call.walk.each_of(names[MOST_RUNS // 2 :])]
    for name in names:
        call.run([_placed(word, name) for word in command], None)


def _fd_listed(call, root: str, operand: str, admits):
    def look(names: list[str]):
        path = os.path.join(root, *names)
        return admits(path) if names else False, os.path.isdir(path) and (not names or not os.path.islink(path))

    return lambda: names_below(call.walk, root, "" if operand == "." else operand, look)


def _placed(word: str, name: str, quoted=str) -> str:
    """`word` with the places for `name` filled, ``{/}`` by its last part and so on; parts of a mark are unknown."""
    last = name.rpartition("/")[2]
    parts = {
        "{/.}": os.path.splitext(last)[0],
        "{//}": os.path.dirname(name) or ".",
        "{/}": last,
        "{.}": os.path.splitext(name)[0],
    }
    for place, part in parts.items():
        if place in word:
            word = word.replace(place, quoted(part) if is_known(name) else UNKNOWN)
    return word.replace("{}", quoted(name))


def _fd_admits(root: str, wanted, options):
    extensions = [one.lower().lstrip(".") for one in options.values("-e", "--extension")]
    unsure = options.has("--size", "-S", "--changed-within", "--changed-before", "--owner", "-o", "-p", "--full-path")
    hidden = options.has("-H", "--hidden", "-u", "--unrestricted")

    def admits(path: str):
        from swarm_hook_core.shell.globs import match

        if not path.startswith(root.rstrip("/") + "/"):
            return False
        names = path[len(root.rstrip("/")) + 1 :].split("/")
        if not hidden and any(name.startswith(".") for name in names):
            return False
        if extensions and not any(names[-1].lower().endswith("." + one) for one in extensions):
            return False
        if any(match(name, one) for one in options.values("-E", "--exclude") if is_known(one) for name in names):
            return False
        types = options.values("-t", "--type")
        if types and not any(one in ("f", "file", "e", "empty", "x", "executable") for one in types):
            return None if os.path.isdir(path) or os.path.islink(path) else False
        depth = options.value("-d", "--max-depth")
        if depth and depth.isdecimal() and len(names) > int(depth):
            return False
        if unsure or types and not set(types) <= {"f", "file"}:
            return None
        if wanted in (None, "", "."):
            return True
        return _fd_matches(names[-1], wanted, options)

    return admits


def _fd_matches(name: str, wanted: str, options):
    if not is_known(wanted):
        return None
    folded = wanted == wanted.lower() and not options.has("-s", "--case-sensitive")
    folded = folded or options.has("-i", "--ignore-case")
    if options.has("-g", "--glob"):
        from swarm_hook_core.shell.globs import match

        if "{" in wanted:
            return None
        return match(name.lower(), wanted.lower()) if folded else match(name, wanted)
    import re

    if options.has("-F", "--fixed-strings"):
        wanted = re.escape(wanted)
    try:
        return bool(re.search(wanted, name, re.IGNORECASE if folded else 0)) if len(wanted) < 200 else None
    except re.error:
        return None


# xargs and parallel


def _xargs(call) -> None:
    takes = "--max-args --max-procs --max-lines --max-chars --delimiter --arg-file --process-slot-var".split()
    options = split(call.words, "IJRLnPsdEaS", takes, optional="ile", stop_early=True)
    stream = call.stdin
    source = options.value("-a", "--arg-file")
    if source:
        stream = call.walk.text_of(source, call.folder)
    place = options.value("-I", "-J") or ("{}" if options.has("-i", "--replace") else None)
    place = options.value("-i", "--replace") or place
    by_line = options.has("-0", "--null", "-d", "--delimiter") or place is not None
    words = options.operands or ["echo"]
    if _only_reads(words) and stream is not None and stream.text is None and stream.found is not None:
        names = [call.walk.mark(stream.found)]
    else:
        names = _names(call, stream, by_line, options.value("-d", "--delimiter"))
    if place is not None:
        _run_each(call, names, lambda name: [word.replace(place, name) for word in words])
        return
    if not names:
        if not options.has("-r", "--no-run-if-empty"):
            call.run(words)
        return
    size = options.value("-n", "--max-args", "-L", "--max-lines") or ""
    if size.isdecimal() and 0 < int(size) < len(names) <= MOST_RUNS * int(size):
        groups = [names[at : at + int(size)] for at in range(0, len(names), int(size))]
        _run_each(call, groups, lambda group: [*words, *group])
    else:
        call.run([*words, *names])


def _only_reads(words) -> bool:
    """Whether the command is one that writes nothing, so that it is no matter how often it runs, on what."""
    from swarm_hook_core.shell.programs import program

    known = program(words[0].rpartition("/")[2]) if words else None
    return known is not None and known.reads


def _names(call, stream, by_line: bool, delimiter=None) -> list[str]:
    """The words that come in: known ones, or a mark."""
    if stream is None or (stream.text is None and stream.found is None):
        return [UNKNOWN]
    if text_of(stream) is None:
        return [call.walk.mark(stream.found if by_line else [_whole(call, one) for one in listed(stream.found)])]
    if delimiter and delimiter not in ("\\n", "\n", "\\0"):
        names = stream.text.rstrip("\n").split(delimiter)
    elif by_line:
        names = stream.text.split("\n")
    else:
        names, breaks_off = _as_xargs(stream.text)
        if breaks_off and stream.found is not None:  # some of them were used before, in the order of the disk
            return [call.walk.some_of([*names, *stream.text.split()])]
    return [name for name in names if name]


def _whole(call, found):
    """Of `found`, what xargs takes for one word: names without blanks, quotes and backslashes."""

    def admits(path: str):
        name = path[len(call.folder) :] if call.folder and path.startswith(call.folder) else path
        return False if any(mark in name for mark in " \t\n'\"\\") else found.admits(path)

    return Found(found.root, admits)


def _as_xargs(text: str):
    """Words of `text` by the rules of xargs: blanks, quotes, backslashes; whether it stops at an open quote."""
    if not any(mark in text for mark in "'\"\\"):
        return text.split(), False
    names, word, at = [], None, 0
    while at < len(text):
        letter = text[at]
        if letter in " \t\n":
            if word is not None:
                names.append(word)
            word = None
            at += 1
            continue
        word = word or ""
        if letter in "'\"":
            close = text.find(letter, at + 1)
            if close < 0 or "\n" in text[at:close]:
                return names, True
            word += text[at + 1 : close]
            at = close + 1
        else:
            at += letter == "\\"
            word += text[at : at + 1]
            at += 1
    return names if word is None else [*names, word], False


def _run_each(call, items: list, words_for) -> None:
    """Run what `words_for(item)` gives for each; beyond `MOST_RUNS`, once for the rest."""
    from swarm_hook_core.shell.streams import joined

    if len(items) > MOST_RUNS and all(isinstance(one, str) and is_known(one) for one in items):
        items = [*items[: MOST_RUNS // 2], call.walk.each_of(items[MOST_RUNS // 2 :])]
    printed: list = []
    for one in items[: 2 * MOST_RUNS]:
        call.run(words_for(one))
        printed.append(call.output)
    call.output = joined(printed)


_PARALLEL_TAKES = (
    "--jobs --colsep --arg-file --joblog --delay --timeout --retries --results --tmpdir --workdir --max-args --halt"
    " --max-replace-args --delimiter --load --memfree --shuf-file --tagstring --basefile --sshlogin --env"
).split()


def _parallel(call) -> None:
    options = split(call.words, "jPIanNdCSL", _PARALLEL_TAKES, stop_early=True)
    words, names, link = options.operands, None, "{}"
    for mark in (":::", ":::+"):
        if mark in words:
            at = words.index(mark)
            words, rest = words[:at], words[at + 1 :]
            names = [word for word in rest if not word.startswith(":::")]
            if any(word.startswith(":::") for word in rest):
                names = [UNKNOWN]
    if names is None and options.value("-a", "--arg-file"):
        names = _names(call, call.walk.text_of(options.value("-a", "--arg-file"), call.folder), True)
    if names is None:
        names = _names(call, call.stdin, True)
    link = options.value("-I") or link
    if words and not any("{" in word for word in words):
        words = [*words, link]
    if options.value("--joblog"):
        call.write(options.value("--joblog"))
    if not words:
        for name in names[:MOST_RUNS]:
            call.script(name)
        return
    text = " ".join(words)
    if len(names) > MOST_RUNS and all(map(is_known, names)):
        names = [*names[: MOST_RUNS // 2], call.walk.each_of(names[MOST_RUNS // 2 :])]
    for name in names:
        call.walk.nested(_placed(text.replace(link, "{}"), name, _quoted), call.folder)


def _quoted(name: str) -> str:
    if not is_known(name) or not (ENDS_WORD | set("'\"\\$`*?[{~#!")).intersection(name):
        return name
    return "'" + name.replace("'", "'\\''") + "'"


def _entr(call) -> None:
    """Runs its command when files change."""
    words = split(call.words, "", (), stop_early=True).operands
    if words:
        call.run([word.replace("/_", UNKNOWN) if word == "/_" else word for word in words])


RUN = {
    **dict.fromkeys(("find", "gfind"), _find),
    **dict.fromkeys(("fd", "fdfind"), _fd),
    **dict.fromkeys(("xargs", "gxargs"), _xargs),
    "parallel": _parallel,
    "entr": _entr,
}
