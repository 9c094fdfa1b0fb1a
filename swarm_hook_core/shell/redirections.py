"""Redirections: what they write, and what they give to a command to read."""

import os

from swarm_hook_core.shell.call import LONGEST_BY
from swarm_hook_core.shell.model import Stream, absolute, is_known
from swarm_hook_core.shell.streams import Input, joined
from swarm_hook_core.shell.words import document, fields, value


def redirected(walk, redirects, scope, by: str, work, lasting=False):
    """Do `work()` with `redirects` in place; what it prints that is not caught by one of them."""
    if not redirects:
        return work()
    kept = scope.stdin
    caught, appends = None, False
    to_nowhere = False
    for one in redirects:
        kind = one.operator
        if kind in ("<<", "<<-"):
            body = one.body or ""
            quoted = any(letter in one.word.raw for letter in "\\'\"")
            text = body if quoted or not set("$`\\").intersection(body) else document(walk, scope, body)
            if one.fd in ("", "0"):
                scope.stdin = Input(Stream(text))
            continue
        if kind == "<<<":
            scope.stdin = Input(Stream(value(walk, scope, one.word) + "\n"))
            continue
        target = _target(walk, scope, one.word)
        if kind in ("<&", ">&") and (target == "-" or target.rstrip("-").isdecimal()):
            if kind == ">&" and one.fd in ("", "1") and target not in ("1",):
                to_nowhere = True
            continue
        if kind == ">&" and not is_known(target) and (one.fd or one.word.raw.startswith("$")):
            continue  # `>&$fd`
        if kind == "<" or kind == "<&":
            if one.fd in ("", "0"):
                scope.stdin = Input(walk.files.text_of(target, scope.folder))
            continue
        walk.files.write(target, scope.folder, _by(walk, by, kind, target))
        if kind != "<>" and one.fd in ("", "1"):
            caught, appends = absolute(scope.folder, target) or "", kind in (">>", "&>>")
    heard, scope.heard = scope.heard, scope.heard or bool(caught)
    try:
        stream = work()
    finally:
        scope.heard = heard
        if not lasting:
            scope.stdin = kept
    if caught:
        if appends:
            held = walk.files.text_of(caught) if walk.files.contents.get(caught) or not os.path.exists(caught) else None
            stream = joined([held, stream]) if held is not None else None
        if not caught.startswith("/dev/"):
            walk.files.contents[caught] = stream
    return Stream("") if caught is not None or to_nowhere else stream


def _target(walk, scope, word) -> str:
    found = fields(walk, scope, word)
    return found[0] if len(found) == 1 else value(walk, scope, word)


def _by(walk, by: str, kind: str, target: str) -> str:
    text = " ".join(f"{by} {kind} {walk.shown(target)}".split())
    if len(text) <= LONGEST_BY:
        return text
    tail = f" … {kind} {walk.shown(target)}"
    return text[: max(0, LONGEST_BY - len(tail))] + tail[-LONGEST_BY:]
