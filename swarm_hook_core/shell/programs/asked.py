"""Asks a search program (grep, rg) if it finds something in one file."""

from __future__ import annotations

import os
import time

from swarm_hook_core.shell.call import Call
from swarm_hook_core.shell.model import is_known
from swarm_hook_core.spawn import run

SECONDS_TO_ASK = 0.3  # for all files that a search is asked about


class Asked:
    """Runs the search itself, on one file at a time."""

    def __init__(self, call: Call, operands: list[str], knows_pattern: bool) -> None:
        self.name = call.name
        self.words = list(call.words)
        for word in operands:  # operands stand last, so the last of each is the one
            at = len(self.words) - 1 - self.words[::-1].index(word)
            del self.words[at]
        self.can = knows_pattern and all(map(is_known, self.words)) and "-" not in operands
        self.left = SECONDS_TO_ASK

    def __call__(self, path: str) -> bool | None:
        if not self.can or self.left <= 0 or any(map(_names_another_file, self.words)):
            return None
        if not os.path.isfile(path):
            return False
        start = time.monotonic()
        if "--" in self.words:
            words = self.words
        else:
            words = [*self.words, "--"]
        result = run([self.name, *words, path], self.left)
        self.left -= time.monotonic() - start
        if result.code is None or result.code > 1:
            return None
        return bool(result.stdout.strip())


def _names_another_file(word: str) -> bool:
    """Return True if an option reads patterns from a file, or runs a program on each file."""
    return word.partition("=")[0] in ("--pre", "--file") or (word[:2] == "-f" and word != "-")
