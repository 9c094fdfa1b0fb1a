"""Taking secrets out of whatever leaves a run: records, events, results, messages."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping

from swarm_mcp.harness.secret_shapes import (
    KINDS,
    MASKED_NAME,
    SHORTEST,
    SHORTEST_LINE,
    SHORTEST_TEXT,
    is_secret_name,
    passwords_in,
)
from swarm_mcp.scope import git_root

DEEPEST = 60  # levels of an event's data; what is deeper is kept as text
_MARKER = re.compile(r"\[REDACTED(?::[A-Za-z0-9_.-]*)?\]")
_ROUNDS = 20
_MARKS = tuple((mark, number) for number, (_name, marks, _pattern) in enumerate(KINDS) for mark in marks)
_HALF = re.compile("[\ud800-\udfff]")


class Scrubber:
    """Knows the secrets of one run: the values of variables that are named like secrets, beside all known shapes.

    `environments` are mappings of names to values. A value of several, parted by commas, is also each of them; one of
    several lines also each line. What is the path of a file, in `folder` or anywhere, is no secret, whatever the
    variable is called; the password of an address is one. What is taken out becomes ``[REDACTED:NAME]``. Nothing here raises, and what was
    scrubbed once stays as it is. Half a surrogate pair, which JSON can say and no store can keep, becomes U+FFFD.
    """

    def __init__(self, *environments: Mapping[str, str], folder: str = ""):
        self._names: dict[str, str] = {}
        self._folders = (folder, git_root(folder or os.getcwd()) or folder)
        for environment in environments:
            for name, value in environment.items():
                if not isinstance(value, str):
                    continue
                if is_secret_name(name):
                    self._learn(name, _parts(value))
                self._learn(name, passwords_in(value))
        self._values = sorted(self._names, key=len, reverse=True)
        self._shortest = min([SHORTEST_TEXT, *map(len, self._values[-1:])])
        # One pass for all, the longest first: a secret may be part of another.
        self._known = re.compile("|".join(map(re.escape, self._values))) if self._values else None

    def text(self, found: object) -> str:
        """`found` without secrets; the empty string for None."""
        if found is None:
            return ""
        try:
            shown = found if isinstance(found, str) else str(found)
        except Exception:
            return ""
        if len(shown) < self._shortest:
            return shown if shown.isascii() else _HALF.sub("\ufffd", shown)
        if not shown.isascii():
            shown = _HALF.sub("\ufffd", shown)
        for _ in range(_ROUNDS):  # what stood beside a secret may be one by itself
            again = self._once(shown)
            if again == shown:
                return again
            shown = again
        return "[REDACTED]"

    def data(self, found: object, depth: int = 0) -> object:
        """The same JSON value without secrets, in keys as well; what is no JSON becomes text."""
        if isinstance(found, str):
            return self.text(found)
        if found is None or isinstance(found, (bool, int)):
            return found
        if isinstance(found, float):
            return found if found - found == 0 else None  # infinity is not JSON
        if depth > DEEPEST:
            return self._deep(found)
        if isinstance(found, Mapping):
            return {self.text(key): self.data(value, depth + 1) for key, value in found.items()}
        if isinstance(found, (list, tuple, set, frozenset)):
            return [self.data(value, depth + 1) for value in found]
        return self.text(found)

    def environment(self, found: Mapping[str, str]) -> dict[str, str]:
        """An environment, or headers, to be shown: the values of secret names masked, others scrubbed."""
        return {
            self.text(name): "[REDACTED]" if MASKED_NAME.search(name) else self.text(value)
            for name, value in found.items()
        }

    # ------------------------------------------------------------------ parts

    def _learn(self, name: str, secrets: Iterable[str]) -> None:
        shown = re.sub(r"[^A-Za-z0-9_.-]", "_", name)[:60]
        for secret in secrets:
            if any(_is_path(secret, folder) for folder in self._folders):
                continue
            for spelling in _spellings(secret):
                # One that could stand in a marker would be found in what replaced another.
                if "[REDACTED" not in spelling and spelling not in f"[REDACTED:{shown}]":
                    self._names.setdefault(spelling, shown)

    def _once(self, text: str) -> str:
        hit = any(value in text for value in self._values)
        found = [number for mark, number in _MARKS if mark in text]  # of every text that leaves: as fast as can be
        if not hit and not found:
            return text
        kinds = [KINDS[number] for number in dict.fromkeys(found)]
        out, at = [], 0
        for marker in _MARKER.finditer(text):
            out += self._piece(text[at : marker.start()], hit, kinds), marker[0]
            at = marker.end()
        out.append(self._piece(text[at:], hit, kinds))
        return "".join(out)

    def _piece(self, text: str, hit: bool, kinds: list) -> str:
        if not text:
            return text
        if hit and self._known:
            changed = self._known.sub(lambda match: f"[REDACTED:{self._names[match[0]]}]", text)
            if changed != text:
                return changed  # shapes in the next round, around the markers
        for name, _, pattern in kinds:
            changed = pattern.sub(f"[REDACTED:{name}]", text)
            if changed != text:
                return changed
        return text

    def _deep(self, found: object) -> str:
        try:
            return self.text(json.dumps(found, default=str)[:10000])
        except (TypeError, ValueError, RecursionError):
            return "..."


def _is_path(text: str, folder: str) -> bool:
    """Whether a file or folder of that name is there: then it is named wherever it is worked on."""
    try:
        return os.path.lexists(os.path.join(folder, os.path.expanduser(text)))
    except ValueError:
        return False


def _parts(value: str) -> Iterable[str]:
    """The secrets in one value: itself, the members of a list, the lines of a key, what follows ``Bearer``."""
    found = [value, value.strip(), *(part.strip() for part in value.split(","))]
    scheme, _, rest = value.strip().partition(" ")
    if scheme.lower() in ("bearer", "basic", "token") and rest:
        found.append(rest.strip())
    whole = [part for part in found if len(part) >= SHORTEST]
    lines = [line.strip() for line in value.splitlines()] if "\n" in value else []
    return dict.fromkeys([*whole, *(line for line in lines if len(line) >= SHORTEST_LINE)])


def _spellings(value: str) -> Iterable[str]:
    """`value` as it is, and as it stands in JSON, and in JSON within JSON."""
    spellings = [value]
    for ascii_only in (True, False):
        once = json.dumps(value, ensure_ascii=ascii_only)[1:-1]
        spellings += [once, once.replace("/", "\\/"), json.dumps(once, ensure_ascii=ascii_only)[1:-1]]
    return dict.fromkeys(spellings)
