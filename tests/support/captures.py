"""Answers of another implementation of the same contract, as patterns for ours.

``tests/data/conformance`` keeps the calls and the shape of the answers. In a pattern, these marks stand for values that
differ in every run, or between implementations:

=============== ==============================================================
``<ROOT>``      the folder of everything
``<id N>``      an id; the same one for equal N, another for each N
``<id N:8>``    its first eight characters
``<no N>``      the same for whole numbers
``<sec>``       now, in Unix seconds; ``<ms>`` in milliseconds; ``<time>`` as UTC text
``<n>``         a whole number; ``<pid>`` one above 0
``<hex>``       hexadecimal digits; ``<word>`` letters and blanks
``<prose>``     a text in one line; ``<text>`` any text, or an empty one, in many;
                ``<any>`` any JSON
``{"<json>":``  p}: a text that is JSON of pattern p
``{"<set>":``   [...]}: a list of these, in any order (that of random ids)
=============== ==============================================================
"""

import json
import re
import time
from difflib import SequenceMatcher
from fnmatch import fnmatchcase
from pathlib import Path

DATA = Path(__file__).parents[1] / "data" / "conformance"
PLACEHOLDER = re.compile(r"<(ROOT|id \w+(?::8)?|no \d+|sec|ms|time|n|pid|hex|word|prose|text)>")
NAMED = {"id": "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", "no": r"\d+"}
PARTS = {
    "sec": r"\d{10}", "ms": r"\d{13}", "time": r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "n": r"\d+", "pid": r"[1-9]\d*",
    "hex": "[0-9a-f]+", "word": "[A-Za-z ]+", "prose": "[^\n]+", "text": "[\\s\\S]*",
}  # fmt: skip
ALONE = 6  # an item is thought to be missing or extra sooner than to differ in so many places


def load(name: str):
    """The recorded calls or schemas of `name`."""
    return json.loads((DATA / f"{name}.json").read_text())


class Names:
    """The ids, numbers and root of the record, in this run."""

    def __init__(self, root: str, known: dict[str, str] | None = None):
        self.root = root
        self.known = dict(known or {})

    def copy(self) -> "Names":
        """The same, to try something with."""
        return Names(self.root, self.known)

    def fill(self, pattern):
        """An argument of the record as it is in this run."""
        if isinstance(pattern, dict):
            return {key: self.fill(value) for key, value in pattern.items()}
        if isinstance(pattern, list):
            return [self.fill(value) for value in pattern]
        return PLACEHOLDER.sub(self._filled, pattern) if isinstance(pattern, str) else pattern

    def _filled(self, found: re.Match) -> str:
        if found[1] == "ROOT":
            return self.root
        name, _, short = found[1].partition(":")
        return self.known[name][:8] if short else self.known[name]

    def fits(self, pattern: str, actual: str) -> bool:
        """Return True if `actual` fits `pattern`, and remember values that are named here for the first time."""
        expression, place, new = "", 0, []
        for found in PLACEHOLDER.finditer(pattern):
            expression += re.escape(pattern[place : found.start()])
            place, (name, _, short) = found.end(), found[1].partition(":")
            if name == "ROOT" or name in self.known:
                expression += re.escape(self._filled(found))
            elif name in PARTS:
                expression += PARTS[name]
            elif short:
                return False  # the value is unknown, so its beginning is, too
            else:
                expression += f"({NAMED[name.split()[0]]})"
                new.append(name)
        match = re.fullmatch(expression + re.escape(pattern[place:]), actual)
        for name, value in zip(new, match.groups() if match else ()):
            kind = name.split()[0]
            if any(value == other and kind == known.split()[0] for known, other in self.known.items()):
                return False  # the record tells them apart
            self.known[name] = value
        return bool(match)


def differences(pattern, actual, names: Names, place: str = "") -> list[str]:
    """Return the places where `actual` differs from `pattern`.

    ``missing a.b``, ``extra a.b``, ``order a: ...`` and ``a.b: is x, not y``; missing or extra items of a list are
    found by comparing all of it.
    """
    if isinstance(pattern, dict) and list(pattern) == ["<json>"]:
        try:
            return differences(pattern["<json>"], json.loads(actual), names, place)
        except (TypeError, ValueError):
            return [f"{place}: is {_shown(actual)}, not JSON"]
    if isinstance(pattern, dict) and list(pattern) == ["<set>"] and isinstance(actual, list):
        return _of_lists(pattern["<set>"], _in_order_of(pattern["<set>"], actual, names), names, place)
    if isinstance(pattern, dict) and isinstance(actual, dict):
        return _of_objects(pattern, actual, names, place)
    if isinstance(pattern, list) and isinstance(actual, list):
        return _of_lists(pattern, actual, names, place)
    if isinstance(pattern, str) and isinstance(actual, str) and "\n" in pattern and "<text>" not in pattern:
        return _of_lists(pattern.split("\n"), actual.split("\n"), names, place)
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


def _of_lists(patterns: list, actuals: list, names: Names, place: str) -> list[str]:
    found = []
    for one, other in _aligned(patterns, actuals, names):
        if other is None:
            found.append(f"missing {_inside(place, str(one))}: {_shown(patterns[one])}")
        elif one is None:
            found.append(f"extra {_inside(place, str(other))}: {_shown(actuals[other])}")
        else:
            found += differences(patterns[one], actuals[other], names, _inside(place, str(one)))
    return found


def _in_order_of(patterns: list, actuals: list, names: Names) -> list:
    """Return the items in the order of their best patterns; the rest comes last."""
    costs = {
        (one, other): len(differences(pattern, actual, names.copy()))
        for one, pattern in enumerate(patterns)
        for other, actual in enumerate(actuals)
    }
    chosen: dict[int, int] = {}
    for one, other in sorted(costs, key=lambda pair: costs[pair]):
        if one not in chosen and other not in chosen.values():
            chosen[one] = other
    rest = [other for other in range(len(actuals)) if other not in chosen.values()]
    return [actuals[other] for other in [*(chosen[one] for one in sorted(chosen)), *rest]]


def _aligned(patterns: list, actuals: list, names: Names) -> list[tuple[int | None, int | None]]:
    """Return the pairing of items with the least difference; None for an item of one side only."""
    if len(patterns) == len(actuals):
        return [(number, number) for number in range(len(patterns))]
    best: dict[tuple[int, int], tuple[int, list]] = {}
    for one in range(len(patterns), -1, -1):
        for other in range(len(actuals), -1, -1):
            ways = []
            if one < len(patterns):
                cost, rest = best[one + 1, other]
                ways.append((cost + ALONE, [(one, None), *rest]))
            if other < len(actuals):
                cost, rest = best[one, other + 1]
                ways.append((cost + ALONE, [(None, other), *rest]))
            if one < len(patterns) and other < len(actuals):
                cost, rest = best[one + 1, other + 1]
                cost += _distance(patterns[one], actuals[other], names)
                ways.append((cost, [(one, other), *rest]))
            best[one, other] = min(ways, key=lambda way: way[0]) if ways else (0, [])
    return best[0, 0][1]


def _distance(pattern, actual, names: Names) -> int:
    """Return the distance between an item and a pattern; items with different names never match."""
    if isinstance(pattern, dict) and isinstance(actual, dict) and pattern.get("name") != actual.get("name"):
        return 3 * ALONE
    if isinstance(pattern, str) and isinstance(actual, str) and not names.copy().fits(pattern, actual):
        return 1 if SequenceMatcher(None, pattern, actual).ratio() > 0.5 else 3 * ALONE
    return len(differences(pattern, actual, names.copy()))


def _same(pattern, actual, names: Names) -> bool:
    if pattern == "<any>":
        return True
    if isinstance(pattern, str) and isinstance(actual, str):
        return names.fits(pattern, actual)
    if isinstance(pattern, str) and isinstance(actual, int) and not isinstance(actual, bool):
        if pattern in ("<sec>", "<ms>"):
            return abs((actual if pattern == "<sec>" else actual / 1000) - time.time()) < 3600
        return bool(PLACEHOLDER.fullmatch(pattern)) and names.fits(pattern, str(actual))
    return type(pattern) is type(actual) and pattern == actual


def _inside(place: str, key: str) -> str:
    return f"{place}.{key}" if place else key


def _shown(value) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) < 1000 else text[:1000] + "..."


class Verdict:
    """The found differences, and the intended ones among them."""

    def __init__(self, deviations: tuple):
        self.deviations = deviations
        self.used: set = set()
        self.unexpected: list[str] = []
        self.alike = 0  # calls without a difference; docs/reference.md has the number

    def judge(self, where: str, found: list[str]) -> None:
        """Record the differences `found` in one call, named by `where`."""
        self.alike += not found
        for difference in found:
            meant = [d for d in self.deviations if fnmatchcase(where, d.where) and fnmatchcase(difference, d.what)]
            self.used.update(meant)
            if not meant:
                self.unexpected.append(f"{where} | {difference}")

    def deliver(self) -> None:
        """Fail where something differs that should not, or agrees that is said to differ."""
        assert not self.unexpected, "\n".join(["not as recorded:", *self.unexpected])
        idle = [deviation for deviation in self.deviations if deviation not in self.used]
        assert not idle, "\n".join(["said to differ, but does not:", *map(str, idle)])
