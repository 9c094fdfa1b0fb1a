"""What secrets look like, and what the variables are called that hold them."""

from __future__ import annotations

import re

SHORTEST = 12  # characters of a variable's value; shorter ones are words that stand everywhere
SHORTEST_PASSWORD = 6  # of one inside of an address, which says that it is one
SHORTEST_TEXT = 8  # characters that no known shape can do with less than, surroundings included
SHORTEST_LINE = 16  # of a line of a value with several, which may be printed line by line
# (name in the replacement, text without which the expression need not be tried, expression). No boundary is asked for
# on the left where the beginning is unmistakable: in JSON, `\n` or a colour's `m` may stand directly before it.
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
# Where a secret lies, or how many there are, is none.
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
    """The passwords of the addresses and connection strings in `value`, as they stand there and decoded.

    Words that stand everywhere (`postgres`, `password`, `5432`) are none: nothing could be read any more.
    """
    if "@" not in value and "=" not in value:
        return []
    found = [password for pattern in _PASSWORDS for password in pattern.findall(value)]
    if any("%" in password for password in found):
        from urllib.parse import unquote

        found += [unquote(password) for password in found]
    return [password for password in dict.fromkeys(found) if not _is_a_word(password)]


def _is_a_word(text: str) -> bool:
    longest = SHORTEST if text.isalpha() and (text.islower() or text.isupper()) else SHORTEST_PASSWORD
    return len(text) < (SHORTEST_TEXT if text.isdigit() else longest)


def is_secret_name(name: str) -> bool:
    """Whether the value of a variable, or a header, of this name is a secret."""
    return bool(_SECRET_NAME.search(name)) and not _HARMLESS_NAME.search(name)
