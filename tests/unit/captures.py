"""Answers of another implementation of the same contract, as patterns that ours are held against.

``tests/data/conformance`` keeps what was called and the shape of what came back. In a pattern, this
stands for what is different in every run or said in each one's own words:

=============== ==============================================================
``<ROOT>``      the folder that everything lies in
``<id N>``      an id; the same one wherever N is the same, another for each N
``<id N:8>``    its first eight characters
``<sec>``       now, in Unix seconds; ``<ms>`` in milliseconds; ``<time>`` as UTC text
``<n>``         a whole number; ``<pid>`` one above 0
``<hex>``       hexadecimal digits; ``<word>`` letters and blanks
``<prose>``     something, in one line; ``<text>`` anything, or nothing, in many;
                ``<any>`` any JSON
``{"<json>":``  p}: a text that is JSON of pattern p
=============== ==============================================================
"""

from __future__ import annotations

import json
import re
import time
from fnmatch import fnmatchcase
from pathlib import Path

DATA = Path(__file__).parents[1] / "data" / "conformance"
PLACEHOLDER = re.compile(r"<(ROOT|id \w+(?::8)?|sec|ms|time|n|pid|hex|word|prose|text)>")
WHOLE_ID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
PARTS = {
    "sec": r"\d{10}", "ms": r"\d{13}", "time": r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "n": r"\d+", "pid": r"[1-9]\d*",
    "hex": "[0-9a-f]+", "word": "[A-Za-z ]+", "prose": "[^\n]+", "text": "[\\s\\S]*",
}  # fmt: skip


def load(name: str):
    """The recorded calls or schemas of `name`."""
    return json.loads((DATA / f"{name}.json").read_text())


class Names:
    """What the ids and the root of the record are in this run."""

    def __init__(self, root: str):
        self.root = root
        self.ids: dict[str, str] = {}

    def fill(self, pattern):
        """An argument of the record as it is in this run."""
        if isinstance(pattern, dict):
            return {key: self.fill(value) for key, value in pattern.items()}
        if isinstance(pattern, list):
            return [self.fill(value) for value in pattern]
        if not isinstance(pattern, str):
            return pattern
        return PLACEHOLDER.sub(self._filled, pattern)

    def _filled(self, found: re.Match) -> str:
        if found[1] == "ROOT":
            return self.root
        name, _, short = found[1].removeprefix("id ").partition(":")
        return self.ids[name][:8] if short else self.ids[name]

    def fits(self, pattern: str, actual: str) -> bool:
        """Whether `actual` is what `pattern` says; ids that are new here are remembered."""
        expression, groups = "", []
        place = 0
        for found in PLACEHOLDER.finditer(pattern):
            expression += re.escape(pattern[place : found.start()])
            place = found.end()
            kind = found[1]
            if kind == "ROOT":
                expression += re.escape(self.root)
            elif kind.startswith("id "):
                name, _, short = kind.removeprefix("id ").partition(":")
                if name in self.ids:
                    expression += self.ids[name][:8] if short else self.ids[name]
                elif short:
                    return False
                else:
                    expression += f"({WHOLE_ID})"
                    groups.append(name)
            else:
                expression += PARTS[kind]
        match = re.fullmatch(expression + re.escape(pattern[place:]), actual)
        if not match:
            return False
        for name, value in zip(groups, match.groups()):
            if self.ids.setdefault(name, value) != value or list(self.ids.values()).count(value) > 1:
                return False
        return True


def differences(pattern, actual, names: Names, place: str = "") -> list[str]:
    """Where `actual` is not as `pattern` says: ``missing a.b``, ``extra a.b``, ``length a: 2, not 1``, ``a: is x, not y``."""
    if isinstance(pattern, dict) and list(pattern) == ["<json>"]:
        try:
            return differences(pattern["<json>"], json.loads(actual), names, place)
        except (TypeError, ValueError):
            return [f"{place}: is {actual!r}, not JSON"]
    if isinstance(pattern, dict) and isinstance(actual, dict):
        return _of_objects(pattern, actual, names, place)
    if isinstance(pattern, list) and isinstance(actual, list):
        found = [] if len(pattern) == len(actual) else [f"length {place}: {len(actual)}, not {len(pattern)}"]
        for number, (one, other) in enumerate(zip(pattern, actual)):
            found += differences(one, other, names, _inside(place, str(number)))
        return found
    return [] if _same(pattern, actual, names) else [f"{place}: is {_shown(actual)}, not {_shown(pattern)}"]


def _of_objects(pattern: dict, actual: dict, names: Names, place: str) -> list[str]:
    found = [f"missing {_inside(place, key)}" for key in pattern if key not in actual]
    found += [f"extra {_inside(place, key)}" for key in actual if key not in pattern]
    shared = [key for key in actual if key in pattern]
    if shared != [key for key in pattern if key in actual]:
        found.append(f"order {place}: {' '.join(shared)}")
    for key in shared:
        found += differences(pattern[key], actual[key], names, _inside(place, key))
    return found


def _same(pattern, actual, names: Names) -> bool:
    if isinstance(pattern, str) and isinstance(actual, str):
        return names.fits(pattern, actual)
    if pattern == "<any>":
        return True
    whole = isinstance(actual, int) and not isinstance(actual, bool)
    if pattern == "<sec>":
        return whole and abs(actual - time.time()) < 3600
    if pattern == "<ms>":
        return whole and abs(actual / 1000 - time.time()) < 3600
    if pattern in ("<n>", "<pid>"):
        return whole and actual >= (pattern == "<pid>")
    return type(pattern) is type(actual) and pattern == actual


def _inside(place: str, key: str) -> str:
    return f"{place}.{key}" if place else key


def _shown(value) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) < 300 else text[:300] + "..."


class Verdict:
    """Differences found, and which of them are meant to be."""

    def __init__(self, deviations: tuple):
        self.deviations = deviations
        self.used: set = set()
        self.unexpected: list[str] = []

    def judge(self, where: str, found: list[str]) -> None:
        """Take note of the differences `found` in one call, which `where` names."""
        for difference in found:
            meant = [d for d in self.deviations if fnmatchcase(where, d.where) and fnmatchcase(difference, d.what)]
            self.used.update(meant)
            if not meant:
                self.unexpected.append(f"{where} | {difference}")

    def deliver(self) -> None:
        """Fail where something differs that should not, or agrees that is said to differ."""
        assert not self.unexpected, "\n".join(["not as captured:", *self.unexpected])
        idle = [deviation for deviation in self.deviations if deviation not in self.used]
        assert not idle, "\n".join(["said to differ, but does not:", *map(str, idle)])
