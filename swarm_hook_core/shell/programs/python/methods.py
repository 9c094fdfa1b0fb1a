"""Methods of paths, texts, lists, files and databases, and those that write whatever they are called on."""

import os

from swarm_hook_core.shell.model import UNKNOWN, is_known
from swarm_hook_core.shell.programs.python import disk
from swarm_hook_core.shell.programs.python.operations import place_method, text_method
from swarm_hook_core.shell.programs.python.values import (
    ANY,
    MOST,
    Archive,
    Arguments,
    Choice,
    Database,
    Function,
    Handle,
    Place,
    Result,
    Unknown,
    alternatives,
    choice,
    elements,
    is_plain,
    spread,
    text_of,
)
from swarm_hook_core.shell.programs.python.writing import asked, make_folder, moved, opened, unsure

_WRITING = {"write_text": 1, "write_bytes": 1, "touch": 0, "unlink": 0, "rmdir": 0, "chmod": 1, "lchmod": 1}

_WRITING |= {"symlink_to": 1, "hardlink_to": 1, "link_to": 1}

_SAVING = frozenset("savefig to_csv to_json to_excel to_parquet to_pickle to_feather to_html to_hdf to_netcdf".split())

_CHANGES = frozenset("INSERT UPDATE DELETE CREATE DROP ALTER REPLACE VACUUM REINDEX ANALYZE ATTACH".split())


def call_method(code, owner, name: str, args: list, named: dict):
    """What calling method `name` of a value gives; its effects happen."""
    if isinstance(owner, Choice):
        return choice([call_method(code, one, name, args, named) for one in owner.values])
    a = Arguments(args, named)
    if isinstance(owner, Place):
        return _of_place(code, owner, name, a)
    if isinstance(owner, str):
        if is_known(owner) or name == "join":
            return spread(lambda *given: text_method(owner, name, list(given), named), *args)
        return ANY
    if isinstance(owner, list):
        return _of_list(code, owner, name, a)
    if isinstance(owner, dict):
        return _of_dict(owner, name, a)
    if isinstance(owner, Handle):
        return _of_handle(code, owner, name)
    if isinstance(owner, Archive):
        return _of_archive(code, name, a)
    if isinstance(owner, Database):
        return _of_database(code, owner, name, a)
    if isinstance(owner, Result) and name == "communicate":
        return (owner.output, ANY)
    if isinstance(owner, Unknown):
        return _of_unknown(code, owner, name, a)
    code.let_go(args, named)
    return ANY


def _of_place(code, owner, name: str, a):
    if name in _WRITING:
        code.writes(owner)
        return None
    if name == "open":
        return opened(code, owner, a.get(0, "mode", "r"))
    if name in ("rename", "replace"):
        moved(code, owner, a.get(0, "target", ANY))
        return a.get(0, "target", ANY)
    if name in ("move", "copy"):
        (moved if name == "move" else lambda code, _owner, to: code.writes(to))(code, owner, a.get(0, "target", ANY))
        return a.get(0, "target", ANY)
    if name in ("copy_into", "move_into"):
        code.guess_computed()
        return ANY
    if name == "mkdir":
        return make_folder(code, owner)
    if name in ("read_text", "read_bytes"):
        return disk.read(code, owner.text) if name == "read_text" else ANY
    if name in ("exists", "is_file", "is_dir"):
        return asked(code, {"is_file": "isfile", "is_dir": "isdir"}.get(name, name), owner.text)
    if name in ("glob", "rglob"):
        pattern = a.get(0, "pattern", ANY)
        deep = "**/" if name == "rglob" else ""
        return spread(lambda one: disk.globbed(code, deep + text_of(one), owner.text, True), pattern)
    if name == "iterdir":
        return disk.listed(code, owner.text, places=True)
    if name == "walk":
        return disk.walked(code, owner.text)
    if name == "match" and is_known(owner.text) and is_plain(a.get(0, default=ANY)):
        from pathlib import PurePath

        return PurePath(owner.text).match(a.get(0))
    found = spread(lambda *given: place_method(owner, name, list(given), code.folder, code.home()), *a.given)
    return ANY if found is None else found


def _of_list(code, owner: list, name: str, a):
    if name in ("append", "add"):
        if len(owner) < MOST:
            owner.append(a.get(0, default=ANY))
        return None
    if name in ("extend", "update", "insert"):
        more = [a.get(1)] if name == "insert" else elements(a.get(0))
        files = disk.files_in(a.get(0))
        owner += [files.word(code)] if files is not None else [ANY] if more is None else more[:MOST]
        return None
    if name == "copy":
        return list(owner)
    if name == "pop":
        at = a.get(0, default=-1)
        known = isinstance(at, int) and -len(owner) <= at < len(owner)
        return owner.pop(at) if known and not code.doubt else owner[at] if known else ANY
    if name in ("sort", "reverse"):
        return None
    if name in ("remove", "clear"):
        return None
    return ANY


def _of_dict(owner: dict, name: str, a):
    if name == "items":
        return list(owner.items())
    if name == "values":
        return list(owner.values())
    if name in ("keys", "copy"):
        return list(owner) if name == "keys" else dict(owner)
    if name in ("get", "setdefault", "pop"):
        key = a.get(0)
        return owner.get(key, a.get(1)) if isinstance(key, (str, int)) and is_plain(key) else ANY
    if name == "update" and isinstance(a.get(0), dict):
        owner.update(a.get(0))
    return ANY


def _of_handle(code, owner, name: str):
    if name in ("read", "read_text", "decode"):
        return owner.text
    if name in ("readlines", "readline"):
        lines = elements(owner)
        return ANY if lines is None else lines if name == "readlines" else (lines or [""])[0]
    if name == "close" or name.startswith("write"):
        return None
    return ANY


def _of_archive(code, name: str, a):
    if name == "extractall":
        code.writes_tree(a.get(0, "path", "."), unsure)
    elif name == "extract":
        where, member = a.get(1, "path", "."), a.get(0, "member", ANY)
        code.writes(spread(lambda one, other: os.path.join(text_of(one), text_of(other)), where, member))
    return ANY


def _of_database(code, owner, name: str, a):
    if name in ("cursor", "__enter__"):
        return owner
    if name in ("execute", "executemany", "executescript"):
        for sql in alternatives(a.get(0, "sql", ANY)):
            if not isinstance(sql, str) or not sql.strip() or not is_known(sql.strip()[0]):
                code.outlet.guess("Python code that runs computed SQL")
                continue
            statements = [part.split(None, 1)[0].upper() for part in sql.split(";") if part.strip()]
            if any(one in _CHANGES for one in statements) or ("PRAGMA" in statements and "=" in sql):
                code.writes(owner.path)
        return owner
    return ANY


def _of_unknown(code, owner, name: str, a):
    if a.given and isinstance(a.given[0], Function):  # of a pool, or an event loop
        items = elements(a.get(1)) if name in ("map", "imap", "imap_unordered") and len(a.given) > 1 else None
        if items is not None:
            return [code.enter(a.given[0], [one], {}) for one in items]
        if name in ("submit", "apply", "apply_async", "call_soon"):
            code.enter(a.given[0], a.given[1:], a.named)
            return ANY
    code.let_go(a.given, a.named)
    count = len(a.given) + len(a.named)
    if name in _WRITING and name not in ("chmod", "link_to") and count >= _WRITING[name]:
        if owner.dotted.startswith(("unittest.", "multiprocessing.")):
            return ANY
        code.guess_computed()
    elif name in ("rename", "replace") and len(a.given) == 1 and not a.named and owner.dotted[:8] != "datetime":
        code.guess_computed()
        if isinstance(a.get(0), (Place, str)) and name == "rename" or isinstance(a.get(0), Place):
            code.writes(a.get(0))
    elif name == "open" and isinstance(a.get(0, "mode"), str) and a.get(0, "mode") in _MODES:
        code.guess_computed()
        return Handle(UNKNOWN, ANY)
    elif name in _SAVING and isinstance(a.get(0, "path_or_buf", a.get(0, "fname")), (str, Place)):
        code.writes(a.get(0, "path_or_buf", a.get(0, "fname")))
    elif name == "save" and a.given and isinstance(a.given[0], (str, Place)) and "." in text_of(a.given[0]):
        code.writes(a.given[0])
    elif name == "dump" and len(a.given) > 1 and isinstance(a.given[1], Place):  # ruamel.yaml
        code.writes(a.given[1])
    elif name == "write" and owner.dotted.startswith("xml.etree") and isinstance(a.get(0), (str, Place)):
        code.writes(a.get(0))
    elif name in ("parse_args", "parse_known_args") and isinstance(code.argv, list):
        if any(word in ("-h", "--help", "--version") for word in code.argv[1:]):
            code.leave()
    elif name == "parse" or owner.dotted.startswith("xml.etree"):
        return owner
    return ANY


_MODES = frozenset(one + two for one in ("w", "a", "x", "r+", "w+", "a+", "wb", "ab", "xb", "r+b") for two in ("", "t"))
