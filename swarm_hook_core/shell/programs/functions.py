"""The few programs that need a function (``do name``), because a row of the table cannot describe them.

Each function gets the call, the reading of its row (its options, and the words of targets), and the words behind its
name in the row.
"""

from __future__ import annotations

import os

from swarm_hook_core import REMOVE, REPLACE
from swarm_hook_core.shell.call import Call
from swarm_hook_core.shell.model import UNKNOWN, GitCall, absolute, edit_or_replace, is_known
from swarm_hook_core.shell.programs import row_of
from swarm_hook_core.shell.programs.archives import Members, zip_names
from swarm_hook_core.shell.programs.engine import Reading
from swarm_hook_core.shell.programs.git.listings import work_tree
from swarm_hook_core.shell.programs.places import (
    cannot_tell,
    directly_in,
    exists,
    is_folder,
    maybe,
    name_of,
    seen,
    words_of,
)

LONGEST_SQL = 32 * 1024  # characters that are read


def temporary_file(call: Call, reading: Reading) -> None:
    """mktemp makes a file under a free name, and prints it. Writes to it harm no other session."""
    options = reading.options
    template = ""
    if options.operands:
        template = options.operands[-1]
    folder = options.value("-p", "--tmpdir")
    if options.has("-t", "--tmpdir", "-p") or not template:
        folder = folder or os.environ.get("TMPDIR") or "/tmp"
    path = os.path.join(folder or "", os.path.basename(template) if options.has("-t") else template or "tmp.XXXXXXXXXX")
    path += options.value("--suffix") or ""
    if is_known(path):
        if not options.has("-u", "--dry-run"):
            call.write(path)
        call.says(path + "\n")


# Commands of other tools of version control with the effects of git commands, which git can be asked about.


def discards(call: Call, reading: Reading) -> None:
    """``jj restore``, ``but discard``, ``sl revert``: files become as committed; new ones go."""
    operands = reading.options.operands
    files = [word for word in operands if exists(call, word)]
    if call.folder is None or work_tree(call.folder) is None or len(files) < len(operands):
        call.moves()
    if files or not operands:
        _as_git(call, ["restore", "--source", "HEAD", "--staged", "--worktree", "--", *(files or [":/"])])
        _as_git(call, ["clean", "-f", "-d", "--", *(files or [":/"])])


def discards_all(call: Call, reading: Reading) -> None:
    """``sl goto --clean``: all files of the present commit become as committed."""
    _as_git(call, ["reset", "--hard"])


def cleans(call: Call, reading: Reading) -> None:
    """``sl clean``: new files go."""
    _as_git(call, ["clean", "-f", "-d", "--", *(reading.options.operands or [":/"])])


def abandons(call: Call, reading: Reading) -> None:
    """``jj abandon``: of the present commit, all that is not committed; others are unknown."""
    named = [word for word in reading.options.operands if word != "@"]
    if named:
        call.moves()
    else:
        reading.options.operands.clear()
        discards(call, reading)


def _as_git(call: Call, words: list[str]) -> None:
    if call.folder is not None:
        call.walk.effects.add(GitCall(call.folder, words, call.by))


def dd(call: Call, reading: Reading) -> None:
    """dd cuts the rest of the file that ``of=`` names, unless ``conv=notrunc`` keeps it."""
    keeps = any("notrunc" in value for value in reading.options.values("conv"))
    for word in reading.options.values("of"):
        call.write(word, edit_or_replace(keeps))


def keep_input(call: Call, reading: Reading) -> None:
    """tee puts its input into each of its files."""
    for word in reading.options.operands:
        path = absolute(call.folder, word)
        if path is not None and call.stdin is not None:
            call.walk.files.contents[path] = call.stdin


def pieces(call: Call, reading: Reading) -> None:
    """split and csplit make files of a prefix and a counter: the first for certain, more perhaps."""
    options = reading.options
    if options.value("--filter"):
        call.script(options.value("--filter") or "")
        return
    prefix = options.value("-f", "--prefix") or "xx"
    if call.name.lstrip("g") == "split":
        prefix = (*options.operands, "", "x")[1] or "x"
    if not is_known(prefix):
        call.guess("a computed path")
        return
    folder, start = os.path.split(prefix)
    is_sure = not options.has("-b", "--suffix-format", "-n", "--digits", "--additional-suffix", "-d", "-x", "-a")
    first = {"xx": "xx00"}.get(start, start + "aa")

    def admits(name: str) -> bool | None:
        if is_sure and name == first:
            return True
        if name.startswith(start):
            return None
        return False

    call.tree(folder or ".", directly_in(seen(call, folder or "."), admits), REPLACE)


def compress(call: Call, reading: Reading, *endings: str) -> None:
    """gzip and its kin: the file goes, another with the first of `endings` comes; or the other way round."""
    options, has, name = reading.options, reading.options.has, call.name
    if has("-c", "--stdout", "--to-stdout", "-t", "--test", "-l", "--list", "-h", "-H", "-V"):
        return
    keeps_both, is_brotli = endings[0] in (".zst", ".lz4"), name == "brotli"
    unpacks = has("-d", "--decompress", "--uncompress") or "un" in name[:4]
    if keeps_both:
        removes = has("--rm")
    elif is_brotli:
        removes = has("-j", "--rm")
    else:
        removes = not has("-k", "--keep")
    ending = options.value("-S", "--suffix") or endings[0]
    operands, has_place = options.operands, "-o" in reading.declared and has("-o", "--output")
    how = edit_or_replace(not has("-f", "--force"))  # without it an existing file stays
    if endings[0] == ".lz4" and len(operands) == 2 and not has("-m"):
        call.write(operands.pop(), how)
        has_place = True
    flat = options.value("--output-dir-flat")
    for word in operands:
        if word == "-":
            continue
        if has("-r", "--recursive") and (is_folder(call, word) or call.found(word) is not None):
            call.tree(word)
            continue
        if unpacks and not is_brotli and not word.endswith(endings) and is_known(word) and not exists(call, word):
            word += ending  # gunzip f  looks for f.gz
        if removes:
            call.write(word, REMOVE)
        if not has_place:
            if unpacks:
                made = _unpacked(word, (ending, *endings))
            else:
                made = word + ending
            call.write(os.path.join(flat, os.path.basename(made)) if flat else made, how)


def _unpacked(word: str, endings: tuple[str, ...]) -> str:
    for one in endings:
        if word.endswith(one):
            return word[: -len(one)] + (".tar" if one.startswith(".t") else "")
    if endings[-1] == ".tbz":
        return word + ".out"
    return word


def unpack(call: Call, reading: Reading, *targets: str) -> None:
    """Unpack a zip, or an archive built like one; after the archive come the chosen members."""
    archive, *chosen = [word for target in targets for word in words_of(reading, target)] or [""]
    is_zip = archive.endswith((".zip", ".jar", ".war", ".whl"))
    folder = reading.folder or "."
    members = Members(seen(call, archive) if is_zip else None, zip_names, chosen)
    keeps = "-aos" in call.words
    call.tree(folder, members.landing(seen(call, folder), 0, keeps), edit_or_replace(keeps))


def fetch(call: Call, reading: Reading) -> None:
    """wget keeps an existing file, and puts the new one beside it under the first free number."""
    keeps = reading.options.has("-c", "--continue", "-N", "--timestamping", "-nc", "--no-clobber", "-n")
    how = edit_or_replace(not reading.options.has("-N", "--timestamping"))
    for address in reading.options.operands:
        last = os.path.basename(address.split("://", 1)[-1].split("#")[0])  # a query is part of the name
        name = reading.placed(last if name_of(address) else "index.html")
        if not is_known(address):
            call.guess("a computed address", reading.folder or None)
        elif not keeps and exists(call, name):
            number = next((one for one in range(1, 200) if not exists(call, f"{name}.{one}")), 200)
            call.write(f"{name}.{number}")
        else:
            call.write(name, how)


def upload(call: Call, reading: Reading) -> None:
    """curl uploads a file to an address, possibly of this machine."""
    for address in reading.options.operands + reading.options.values("--url"):
        if address.startswith("file://"):
            call.write(address[7:], REPLACE)


def run_tool(call: Call, reading: Reading, with_verb: str = "") -> None:
    """Run a tool of the project by its name (``yarn prettier --write .``), or else a script of the manifest."""
    words = list(call.words)
    words = words[words.index(reading.used[-1]) + (not with_verb) :]
    if words[:1] in (["-c"], ["--call"]) and len(words) > 1:
        call.script(words[1])
        return
    while words and words[0].startswith("-"):
        words.pop(0)
    if words and is_known(words[0]) and row_of(words[0]) is not None:
        call.run([words[0], *[word for word in words[1:] if word != "--"]])
    else:
        call.runs_project()


def run_rest(call: Call, _reading: Reading, *starts: str) -> None:
    """The command that comes after ``--``, or another of the words `starts`; a number is a place in the arguments."""
    words = call.words
    marks = [words.index(mark) + 1 for mark in ("--", *starts) if mark in words]
    at = min(marks, default=next((int(one) for one in starts if one.isdigit()), len(words)))
    if words[at:]:
        call.run(words[at:], call.stdin)


def run_flake(call: Call, reading: Reading) -> None:
    """nix run: ``nixpkgs#git -- stash``."""
    name, *words = reading.options.operands or [""]
    program = name.rpartition("#")[2]
    if is_known(program) and row_of(program) is not None:
        call.run([program, *words], call.stdin)
    else:
        call.runs_project()


def run_package(call: Call, reading: Reading) -> None:
    """npx, uvx: a command's name may be a package with a version: ``@scope/name@1.2``."""
    name, *words = reading.options.operands or [""]
    scope, rest = "", name
    if name.startswith("@"):
        scope, _, rest = name.partition("/")
    plain = rest.partition("@")[0]
    if name:
        program = plain or name
        if (scope, plain) == ("@angular", "cli"):
            program = "ng"
        reading.run([program, *words])


def run_in_project(call: Call, reading: Reading) -> None:
    """uv run, poetry run: a command, a Python script, or a module."""
    options, words = reading.options, reading.options.operands
    module = options.value("-m", "--module")
    if module:
        words = ["python", "-m", module, *words]
    elif words and words[0].endswith(".py") or options.has("-s", "--script") or words[:1] == ["-"]:
        words = ["python", *words]
    elif call.name == "hatch" and words and ":" in words[0]:
        words = [words[0].partition(":")[2], *words[1:]]
    reading.run(words)


def locked_run(call: Call, reading: Reading) -> None:
    """flock makes its file where it is not there, and runs a command or shell text."""
    file, *rest = reading.options.operands or [""]
    text = reading.options.value("-c", "--command")
    if rest[:1] in (["-c"], ["--command"]):
        text, rest = (rest[1:] or [""])[0], []
    if (text or rest) and file and not exists(call, file):
        call.write(file)
    if text:
        call.output = call.walk.nested(text, call.folder, (), call.stdin)
    reading.run(rest)


def put_aside(call: Call, _reading: Reading) -> None:
    """pre-commit, lint-staged: unstaged changes are put aside while they run, as in a commit hook."""
    if call.folder is not None:
        found = GitCall(call.folder, ["stash", "push", "--keep-index"], call.by)
        found.aside = call.name
        call.walk.effects.add(found)


def mounts(call: Call, reading: Reading) -> None:
    """The folders of this machine that a container may write to."""
    for value in reading.options.values("-v", "--volume"):
        host, _, inside = value.partition(":")
        is_volume = is_known(host) and not host.startswith(("/", ".", "~"))
        if inside and not is_volume and not inside.endswith(":ro") and ":ro," not in inside:
            _mounted(call, host)
    for value in reading.options.values("--mount"):
        if "type=bind" in value and "readonly" not in value and ",ro" not in value:
            sources = [one.partition("=")[2] for one in value.split(",") if one.startswith(("source=", "src="))]
            _mounted(call, (sources or [""])[0])


def _mounted(call: Call, host: str) -> None:
    if host and is_known(host):
        call.tree(host, cannot_tell)
    else:
        call.guess("a container with a folder of yours")


def copied_out(call: Call, reading: Reading, *targets: str) -> None:
    """A container engine exports to a file or folder of this machine: ``out``, ``type=local,dest=out``."""
    for word in [word for target in targets for word in words_of(reading, target)]:
        dest = word
        if "=" in word:
            dest = word.rpartition("dest=")[2].partition(",")[0]
        if dest != "-" and ":" not in dest and "=" not in dest:
            call.tree(dest, how=REPLACE)


_SAVES = frozenset("w W wr write wq x xi xit exi exit up update wa wall xa xall wqa wqall ZZ".split())
_SAVES_NOTHING = frozenset("a c d i j k m p q qa quit s se set sil silent t z".split())


def edited(call: Call, reading: Reading) -> None:
    """ed, ex and vim write their files, or the named one, if a command says so; other commands may write anything."""
    given = [word[1:] for word in reading.options.operands if word[:1] == "+"] + reading.options.values("-c", "--cmd")
    files = [word for word in reading.options.operands if word[:1] not in ("+", "-")]
    if call.stdin is not None:
        given.append(call.stdin.text or UNKNOWN)
    if not given:
        for file in files:
            maybe(call, file)
    for line in [part for text in given for part in text.replace("|", "\n").split("\n")]:
        command, _blank, name = line.lstrip("0123456789.,$%;: ").partition(" ")
        if command.rstrip("!") in _SAVES:
            named = [name] * (name != "" and is_known(name) and name[0] not in "!>+")
            for file in named or files:
                call.write(file, edit_or_replace(not name))
        word = command[: next((at for at, letter in enumerate(command) if not letter.isalpha()), len(command))]
        if name[:1] in ("!", ">", "+") or (word or line.strip()) not in ("", *_SAVES, *_SAVES_NOTHING):
            call.guess("an editor's commands")
            for file in files:
                maybe(call, file)


def own_makefile(call: Call, reading: Reading) -> None:
    """A makefile that the command itself has written, or pipes in."""
    for word in reading.options.values("-f", "--file", "--makefile"):
        if word == "-" or absolute(call.folder, word) in call.walk.files.contents:
            call.guess("a makefile of the command's own")


def psql(call: Call, reading: Reading) -> None:
    """Outputs of its own, and commands that write files."""
    for name in reading.options.values("-o", "--output", "-L", "--log-file"):
        if not name.startswith("|"):
            call.write(name, edit_or_replace(name in reading.options.values("-L", "--log-file")))
    for text in reading.options.values("-c", "--command"):
        text = text.lstrip()
        if text.startswith(("\\o", "\\w")) or (text.startswith("\\copy") and " to " in text.lower()):
            call.guess("writes a file from SQL")


_READ_ONLY = (
    *("select", "pragma", "explain", "with", "values", "begin", "commit", "end", "attach", "--"),
    *(".schema", ".tables", ".dump", ".headers", ".mode", ".indexes", ".databases", ".help", ".quit", ".exit"),
    *(".width", ".show", ".print", ".separator", ".dbinfo", ".fullschema"),
)


def sqlite(call: Call, reading: Reading) -> None:
    """Report a write of the database unless all statements only read; dot commands write files and run commands."""
    call.walk.effects.add_deed([call.name, *reading.options.operands], call.folder, call.by)
    if reading.options.has("-readonly"):
        return
    database, *sql = reading.options.operands or [""]
    sql = reading.options.values("-cmd") + sql
    if not database:
        return
    is_unknown = False
    if not sql and call.stdin is not None:
        is_unknown, sql = call.stdin.text is None, [call.stdin.text or ""]
    if is_unknown or sum(map(len, sql)) > LONGEST_SQL:
        call.tree(database, cannot_tell)
        return
    file = database.removeprefix("file:").split("?")[0]
    writes = bool(sql) and not exists(call, file)  # opening makes it
    for statement in [one for text in sql for one in _statements(text)]:
        lowered = statement.lower()
        first = lowered.split(None, 1)[0]
        if "writefile(" in lowered:
            call.guess("SQL that writes files")
        if first in (".output", ".once", ".backup", ".save", ".clone", ".excel", ".log"):
            names = [word.strip("\"'") for word in statement.split()[1:] if not word.startswith("-")]
            if names and names[-1] not in ("stdout", "off") and not names[-1].startswith("|"):
                call.write(names[-1], edit_or_replace(first == ".log"))
        elif first in (".shell", ".system"):
            call.script(statement[len(first) :].strip())
        elif first == ".read":
            call.guess("runs SQL of a file")
        elif first == "with":
            writes = writes or any(word in lowered for word in ("insert ", "update ", "delete ", "replace "))
        elif not first.startswith(_READ_ONLY) or (first == "pragma" and "=" in statement):
            writes = True
    if writes and file != ":memory:":
        call.write(file)


def _statements(text: str) -> list[str]:
    """SQL parted at semicolons outside of quotes, dot commands at line ends; comments gone."""
    found, part, quote = [], "", ""
    for line in text.split("\n"):
        if not quote and not part.strip() and line.startswith("."):
            found.append(line)
            continue
        for at, char in enumerate(line):
            if quote:
                if char == quote:
                    quote = ""
            elif char in "'\"`":
                quote = char
            elif line.startswith("--", at):
                break
            elif char == ";":
                found.append(part)
                part = ""
                continue
            part += char
        part += "\n"
    return [one.strip() for one in [*found, part] if one.strip()]
