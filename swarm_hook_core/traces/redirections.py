"""The files that a shell command redirects into, by a first look at its text."""

from __future__ import annotations

import os
from collections.abc import Iterator

_EXPANDED = "$*?[~\\'\""  # signs that a shell replaces in a word
_APART = str.maketrans(dict.fromkeys(";|&()`'\"\n\t{}=", " "))


def redirected_files(text: str, folder: str) -> list[str]:
    """Return absolute paths of files that the shell command `text`, run in `folder`, may write by a plain redirection.

    Only a first look: a word behind `>` may be part of a text. A name that a shell would expand is left out, and all
    names if the command changes its folder later than by a first `cd`.
    """
    begin = text.lstrip()
    if begin.startswith("cd "):
        to, _, rest = begin[3:].partition("&&")
        to = to.strip()
        if not rest or not to or any(sign in to for sign in _EXPANDED):
            return []
        folder, text = os.path.join(folder, to), rest
    if "cd " in text or "pushd" in text:
        return []
    words = dict.fromkeys(
        word for word in redirected(text, appends=True) if not any(sign in word for sign in _EXPANDED)
    )
    return [os.path.normpath(os.path.join(folder, word)) for word in words]


def redirected(text: str, appends: bool = False) -> Iterator[str]:
    """Yield the word after each `>` that replaces a file; not after `>>` unless `appends`, `>&1`, `=>`, `->`, `>=`."""
    place = text.find(">")
    while place >= 0:
        after = text[place + 1 : place + 400]
        before = text[place - 1 : place]
        if appends and after[:1] == ">" and before != "<":
            place, after = place + 1, after[1:]
        if after[:1] in (">", "&", "=", "(") or before in ("=", "-", "<"):
            place = text.find(">", place + 1 + (after[:1] == ">"))
            continue
        words = after.lstrip("|! \t").translate(_APART).split()
        if words and words[0] != "/dev/null":
            yield words[0]
        place = text.find(">", place + 1)
