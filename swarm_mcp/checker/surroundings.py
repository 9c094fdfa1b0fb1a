"""The surroundings of one call, as a hook inherits them from its client: the checker puts them on while it answers."""

from __future__ import annotations

import io
import os
import sys
import time

from swarm_hook_core import caller


class Surroundings:
    """The `environment` of a relay, as the system has it, and its `folder`. A context manager.

    `words`: the hook's command line; `output`: takes its output. The environment stays until the next call, mostly with
    the same.
    """

    def __init__(self, environment: list[bytes], folder: bytes, words: list[str], output: io.StringIO):
        self._environment = environment
        self._folder = folder
        self._words = words
        self._output = output

    def __enter__(self) -> Surroundings:
        self._kept = sys.stdout, sys.stderr, sys.argv
        put_on(self._environment)
        os.chdir(self._folder)
        sys.stdout, sys.stderr, sys.argv = self._output, io.StringIO(), self._words
        return self

    def __exit__(self, *_: object) -> None:
        sys.stdout, sys.stderr, sys.argv = self._kept
        caller.answer_for(0, 0, None)
        os.chdir("/")  # the folder may be removed or unmounted


def put_on(environment: list[bytes]) -> None:
    """Make `environment` this process's own: of two entries of one name the first counts, as in a new process."""
    new: dict[bytes, bytes] = {}
    for entry in environment:
        name, sign, value = entry.partition(b"=")
        if name and sign:
            new.setdefault(name, value)
    old = os.environb
    zone = old.get(b"TZ")
    for name in [name for name in old if name not in new]:
        del old[name]
    for name, value in new.items():
        if old.get(name) != value:
            old[name] = value
    if old.get(b"TZ") != zone:
        time.tzset()
