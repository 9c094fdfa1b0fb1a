"""Databases on the command line: whether what they are told to run changes the file, and what they dump."""

import os

from swarm_hook_core.shell.options import split
from swarm_hook_core.shell.programs.places import cannot_tell, seen

LONGEST = 32 * 1024  # characters of SQL that are read

_SQLITE_READS = (
    "select",
    "pragma",
    "explain",
    "with",
    "values",
    ".schema",
    ".tables",
    ".dump",
    ".headers",
    ".mode",
    ".indexes",
)
_SQLITE_READS += (
    ".databases",
    ".help",
    ".quit",
    ".exit",
    ".width",
    ".show",
    ".print",
    ".separator",
    ".dbinfo",
    ".fullschema",
)


def _sqlite(call) -> None:
    words, sql, operands, read_only = list(call.words), [], [], False
    takes = (
        "-cmd",
        "-separator",
        "-init",
        "-newline",
        "-nullvalue",
        "-vfs",
        "-mmap",
        "-maxsize",
        "-lookaside",
        "-pagecache",
    )
    while words:
        word = words.pop(0)
        name = "-" + word.lstrip("-") if word.startswith("-") else word
        if name in takes:
            value = words.pop(0) if words else ""
            sql += [value] if name == "-cmd" else []
        elif name in ("-readonly", "-version", "-help"):
            read_only = True
        elif not word.startswith("-"):
            operands.append(word)
    if not operands or read_only:
        return
    database, sql = operands[0], sql + operands[1:]
    if not sql:
        if call.stdin is None:
            return  # it waits for what a person types
        if call.stdin.text is None:
            call.tree(database, cannot_tell)
            return
        sql = [call.stdin.text]
    if sum(map(len, sql)) > LONGEST:
        call.tree(database, cannot_tell)
        return
    path = seen(call, database.removeprefix("file:").split("?")[0])
    writes = path is not None and not os.path.exists(path)  # opening makes it
    for text in sql:
        for statement in _statements(text):
            first = statement.split(None, 1)[0].lower() if statement.split() else ""
            if "writefile(" in statement.lower():
                call.guess("SQL that writes files")
            if first in (".output", ".once", ".backup", ".save", ".clone", ".excel", ".log"):
                names = [word.strip("\"'") for word in statement.split()[1:] if not word.startswith("-")]
                if names and names[-1] not in ("stdout", "off") and not names[-1].startswith("|"):
                    call.write(names[-1])
            elif first in (".shell", ".system"):
                call.script(statement.split(None, 1)[1] if " " in statement else "")
            elif first == ".read":
                call.guess("runs SQL of a file")
            elif (
                first == "pragma"
                and "=" in statement
                or first == "with"
                and not _only_selects(statement)
                or (
                    first
                    and not first.startswith(_SQLITE_READS)
                    and first not in ("--", "begin", "commit", "end", "attach")
                )
            ):
                writes = True
    if writes and database != ":memory:":
        call.write(database.removeprefix("file:").split("?")[0])


def _only_selects(statement: str) -> bool:
    lowered = statement.lower()
    return not any(word in lowered for word in ("insert ", "update ", "delete ", "replace "))


def _statements(text: str) -> list[str]:
    """SQL parted at semicolons outside of quotes, dot commands at line ends; comments gone."""
    found, part, quote = [], "", ""
    for line in text.split("\n"):
        if not quote and not part.strip() and line.startswith("."):
            found.append(line.strip())
            continue
        at = 0
        while at < len(line):
            char = line[at]
            if quote:
                quote = "" if char == quote else quote
            elif char in "'\"`":
                quote = char
            elif line.startswith("--", at):
                break
            elif char == ";":
                found.append(part.strip())
                part = ""
                at += 1
                continue
            part += char
            at += 1
        part += "\n"
    return [one for one in [*found, part.strip()] if one]


def _psql(call) -> None:
    options = split(
        call.words, "oLfcdhpUvFPTR", ("--output", "--log-file", "--file", "--command", "--dbname", "--host", "--port")
    )
    for name in options.values("-o", "--output", "-L", "--log-file"):
        if not name.startswith("|"):
            call.write(name)
    for text in options.values("-c", "--command"):
        if text.lstrip().startswith(("\\copy", "\\o", "\\w")) and (" to " in text.lower() or text.lstrip()[1] in "ow"):
            call.guess("writes a file from SQL")


def _remote(_call) -> None:
    """What it changes is in a server."""


def _dump(call) -> None:
    options = split(
        call.words, "fhpUdFntjrBuP", ("--file", "--format", "--result-file", "--out", "--archive", "--host")
    )
    for name in options.values("-f", "--file", "-r", "--result-file", "--archive"):
        if name:
            call.write(name)
    if options.value("--out"):
        call.tree(options.value("--out"), cannot_tell)


RUN = {
    **dict.fromkeys(("sqlite3", "sqlite", "duckdb"), _sqlite),
    **dict.fromkeys(("pg_dump", "pg_dumpall", "mysqldump", "mongodump"), _dump),
    **dict.fromkeys(("mysql", "mariadb", "redis-cli", "mongosh"), _remote),
    "psql": _psql,
}
