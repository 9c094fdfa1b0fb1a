"""Removal of secrets from all output of a run (records, events, results, messages), and the shapes of secrets."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import unquote

from swarm_hook_core.paths import git_root

SHORTEST = 12  # characters of a variable's value; shorter ones are words that stand everywhere
SHORTEST_PASSWORD = 6  # characters of a password inside an address; its place marks it as one
SHORTEST_TEXT = 8  # characters that no known shape can do with less than, surroundings included
SHORTEST_LINE = 16  # characters of a line of a multi-line value, since lines may be printed alone
# (name in the replacement, text without which the expression need not be tried, expression). Unmistakable beginnings
# need no boundary on the left: in JSON, `\n` or a colour's `m` may stand directly before it.
_KINDS = (
    ("github_token", ("github_pat_",), r"github_pat_[A-Za-z0-9_]{20,255}"),
    ("github_token", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), r"gh[pousr]_[A-Za-z0-9]{20,255}"),
    ("gitlab_token", ("glpat-",), r"glpat-[A-Za-z0-9_-]{16,255}"),
    ("anthropic_key", ("sk-ant-",), r"sk-ant-[A-Za-z0-9_-]{8,255}"),
    ("api_key", ("sk-proj-", "sk-or-", "sk-svcacct-"), r"sk-(?:proj|or|svcacct)-[A-Za-z0-9_-]{8,255}"),
    ("api_key", ("sk-",), r"(?:(?<![A-Za-z0-9_-])|(?<=\\[nrtbf])|(?<=\[\dm)|(?<=\[\d\dm))sk-[A-Za-z0-9]{20,255}"),
    ("stripe_key", ("sk_live_", "rk_live_", "sk_test_"), r"[sr]k_(?:live|test)_[A-Za-z0-9]{16,255}"),
    ("slack_token", ("xox", "xapp-"), r"(?:xox[a-z]|xapp)-[A-Za-z0-9-]{10,255}"),
    ("aws_key", ("AKIA", "ASIA"), r"(?:AKIA|ASIA)[0-9A-Z]{16}"),
    ("google_key", ("AIza",), r"AIza[A-Za-z0-9_-]{35}"),
    ("google_token", ("ya29.",), r"ya29\.[A-Za-z0-9_-]{20,1000}"),
    ("npm_token", ("npm_",), r"npm_[A-Za-z0-9]{36}"),
    ("pypi_token", ("pypi-AgE",), r"pypi-AgE[A-Za-z0-9_-]{20,1000}"),
    ("hugging_face_token", ("hf_",), r"hf_[A-Za-z0-9]{30,100}"),
    ("jwt", (".eyJ",), r"eyJ[A-Za-z0-9_-]{8,600}\.eyJ[A-Za-z0-9_-]{8,8000}\.[A-Za-z0-9_-]{4,2000}"),
    ("private_key", ("PRIVATE KEY-----",),
     r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----[A-Za-z0-9+/=\s\\:,.-]{16,16000}?-----END [A-Z ]{0,30}PRIVATE KEY-----"),
    ("bearer", ("earer ",), r"(?<=[Bb]earer )[A-Za-z0-9._~+/=-]{16,4000}"),
    ("password", ("://",), r"(?<=://)[^\s/@:\"'\\<>\[\]]{0,100}:[^\s/@\"'\\<>\[\]]{3,200}(?=@)"),
)  # fmt: skip
KINDS = tuple((name, marks, re.compile(pattern)) for name, marks, pattern in _KINDS)

_WORDS = r"keys?|apikey|tokens?|secrets?|password|passwd|passphrase|authorization|cookie|credentials?"
_SECRET_NAME = re.compile(rf"(?:^|[_.-])(?:{_WORDS})(?:$|[_.-]|\d)|password|secret|apikey|authorization", re.I)
# The place of a secret, or the number of secrets, is no secret.
_HARMLESS_NAME = re.compile(
    r"(?:_FILE|_PATH|_DIR|_FOLDER|_SOCK|_SOCKET|_URL|_URI|_ENDPOINT|_HOST|_NAME|_TTL|_HELPER)$", re.I
)
MASKED_NAME = re.compile(r"key|token|secret|password|authorization|cookie", re.I)
# The password of an address: to the first @, and to the last one before the path, for both are written.
_PASSWORDS = (
    re.compile(r"://[^\s/@:]*:(\S+?)@"),
    re.compile(r"://[^\s/@:]*:([^\s/?#]+)@"),
    re.compile(r"(?:passw(?:or)?d|pwd|passphrase|secret|token|api_?key|accountkey|accesskey)=([^\s;&\"']+)", re.I),
)


def passwords_in(value: str) -> list[str]:
    """Return the passwords of the addresses and connection strings in `value`, as they stand there and decoded.

    Common words (`postgres`, `password`, `5432`) are exempt: removing them would make everything unreadable.
    """
    if "@" not in value and "=" not in value:
        return []
    found = [password for pattern in _PASSWORDS for password in pattern.findall(value)]
    if any("%" in password for password in found):
        found += [unquote(password) for password in found]
    return [password for password in dict.fromkeys(found) if not _is_a_word(password)]


def _is_a_word(text: str) -> bool:
    if text.isalpha() and (text.islower() or text.isupper()):
        longest = SHORTEST
    else:
        longest = SHORTEST_PASSWORD
    return len(text) < (SHORTEST_TEXT if text.isdigit() else longest)


def is_secret_name(name: str) -> bool:
    """Return True if the value of a variable, or a header, of this name is a secret."""
    return bool(_SECRET_NAME.search(name)) and not _HARMLESS_NAME.search(name)


DEEPEST = 60  # levels of an event's data; deeper ones are kept as text
_MARKER = re.compile(r"\[REDACTED(?::[A-Za-z0-9_.-]*)?\]")
_ROUNDS = 20
_MARKS = tuple((mark, number) for number, (_name, marks, _pattern) in enumerate(KINDS) for mark in marks)
_HALF = re.compile("[\ud800-\udfff]")


class Scrubber:
    """The scrubber of one run: it knows the values of variables with secret-like names, and all known shapes.

    `environments` are mappings of names to values. A comma-separated value counts as a whole and in its parts, a
    multi-line one also line by line. The path of a file, in `folder` or anywhere, is no secret, even in a variable with
    such a name; the password of an address is one. A secret becomes ``[REDACTED:NAME]``. Nothing here raises, and
    scrubbing twice changes nothing more. Half a surrogate pair, possible in JSON and in no store, becomes U+FFFD.
    """

    def __init__(self, *environments: Mapping[str, str], folder: str = ""):
        self._names: dict[str, str] = {}
        self._folders = (folder, git_root(folder or os.getcwd()) or folder)
        for environment in environments:
            for name, value in environment.items():
                if is_secret_name(name):
                    self._learn(name, _parts(value))
                self._learn(name, passwords_in(value))
        self._values = sorted(self._names, key=len, reverse=True)
        self._shortest = min([SHORTEST_TEXT, *map(len, self._values[-1:])])
        # One pass for all, the longest first: a secret may be part of another.
        self._known: re.Pattern[str] | None = None
        if self._values:
            self._known = re.compile("|".join(map(re.escape, self._values)))

    def text(self, found: object) -> str:
        """Return `found` without secrets; the empty string for None."""
        if found is None:
            return ""
        try:
            if isinstance(found, str):
                shown = found
            else:
                shown = str(found)
        except Exception:  # a value without a text
            return ""
        if len(shown) < self._shortest:
            if shown.isascii():
                return shown
            return _HALF.sub("\ufffd", shown)
        if not shown.isascii():
            shown = _HALF.sub("\ufffd", shown)
        for _ in range(_ROUNDS):  # a text beside a secret may be a secret by itself
            again = self._once(shown)
            if again == shown:
                return again
            shown = again
        return "[REDACTED]"

    def data(self, found: Any, depth: int = 0) -> Any:
        """Return the same JSON value without secrets, in keys as well; other values become text."""
        if isinstance(found, str):
            return self.text(found)
        if found is None or isinstance(found, (bool, int)):
            return found
        if isinstance(found, float):
            return found if found - found == 0 else None  # infinity is not JSON
        if depth > DEEPEST:
            try:
                return self.text(json.dumps(found, default=str)[:10000])
            except (TypeError, ValueError, RecursionError):  # a value without a text
                return "..."
        if isinstance(found, Mapping):
            return {self.text(key): self.data(value, depth + 1) for key, value in found.items()}
        if isinstance(found, (list, tuple, set, frozenset)):
            return [self.data(value, depth + 1) for value in found]
        return self.text(found)

    def environment(self, found: Mapping[str, str]) -> dict[str, str]:
        """Return an environment, or headers, to be shown: values of secret names are masked, others scrubbed."""
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
            # `secret` itself, as JSON writes it, and as JSON within JSON writes it
            spellings = [secret]
            for ascii_only in (True, False):
                once = json.dumps(secret, ensure_ascii=ascii_only)[1:-1]
                spellings += [once, once.replace("/", "\\/"), json.dumps(once, ensure_ascii=ascii_only)[1:-1]]
            for spelling in dict.fromkeys(spellings):
                # A secret that fits into a marker would be found in the replacement of another.
                if "[REDACTED" not in spelling and spelling not in f"[REDACTED:{shown}]":
                    self._names.setdefault(spelling, shown)

    def _once(self, text: str) -> str:
        hit = any(value in text for value in self._values)
        found = [number for mark, number in _MARKS if mark in text]  # of every text that leaves: as fast as can be
        if not hit and not found:
            return text
        kinds = [KINDS[number] for number in dict.fromkeys(found)]
        out: list[str] = []
        at = 0
        for marker in _MARKER.finditer(text):
            out += self._piece(text[at : marker.start()], hit, kinds), marker[0]
            at = marker.end()
        out.append(self._piece(text[at:], hit, kinds))
        return "".join(out)

    def _piece(self, text: str, hit: bool, kinds: list[Any]) -> str:
        if not text:
            return text
        if hit and self._known:
            changed = self._known.sub(lambda match: f"[REDACTED:{self._names[match[0]]}]", text)
            if changed != text:
                return changed  # shapes in the next round, around the markers
        for name, _, pattern in kinds:
            changed = str(pattern.sub(f"[REDACTED:{name}]", text))
            if changed != text:
                return changed
        return text


def _is_path(text: str, folder: str) -> bool:
    """Return True if a file or folder of that name exists: its name appears wherever it is used."""
    try:
        return os.path.lexists(os.path.join(folder, os.path.expanduser(text)))
    except ValueError:  # no path
        return False


def _parts(value: str) -> Iterable[str]:
    """Return the secrets in one value: itself, the members of a list, the lines of a key, the rest after ``Bearer``."""
    found = [value, value.strip(), *(part.strip() for part in value.split(","))]
    scheme, _, rest = value.strip().partition(" ")
    if scheme.lower() in ("bearer", "basic", "token") and rest:
        found.append(rest.strip())
    whole = [part for part in found if len(part) >= SHORTEST]
    if "\n" in value:
        lines = [line.strip() for line in value.splitlines()]
    else:
        lines = []
    return dict.fromkeys([*whole, *(line for line in lines if len(line) >= SHORTEST_LINE)])
