"""Hermes: the tools that write files, and how it reads the paths and patches that they are given."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from swarm_hook_core import EDIT, REMOVE, REPLACE
from swarm_hook_core.config import Dialect, RuntimeConfig, paths_under_keys

_HOWS = {"Update": EDIT, "Add": REPLACE, "Delete": REMOVE, "Move": REMOVE}
_named = paths_under_keys("path")


def extract_changes(tool_input: Any) -> list[tuple[str, str]]:
    """Return ``(path, how)`` of each file that `write_file` or `patch` names.

    A patch is read as Hermes reads it: a header counts at the beginning of any line, with or without the envelope.
    """
    is_write = isinstance(tool_input, dict) and "content" in tool_input
    text = None
    if isinstance(tool_input, dict) and tool_input.get("mode") == "patch":
        text = tool_input.get("patch")
    if not isinstance(text, str):
        return [(os.path.expanduser(path), REPLACE if is_write else EDIT) for path in _named(tool_input)]
    changes = {}
    for verb, path in _headers(text):
        source, arrow, target = path.partition("->")
        if verb != "Move":
            changes[path] = _HOWS[verb]
        elif arrow:
            changes[source.strip()] = REMOVE
            changes[target.strip()] = REPLACE
    if not changes:
        raise ValueError("the patch names no file")
    return [(os.path.expanduser(path), how) for path, how in changes.items()]


def _headers(text: str) -> Iterator[tuple[str, str]]:
    """``(verb, path)`` of each line such as ``*** Update File: path``; of a move the path is ``from -> to``."""
    for line in text.split("\n"):
        words = line[3:].split(None, 1)
        if (
            line.startswith("***")
            and len(words) == 2
            and words[0] in _HOWS
            and words[1].startswith("File:")
            and words[1][5:].strip()
        ):
            yield words[0], words[1][5:].strip()


RUNTIME = RuntimeConfig(
    runtime_name="hermes",
    env_prefix="HERMES",
    scratch_dir_name="swarm-hermes",
    write_tools={"write_file", "patch"},
    extract_changes=extract_changes,
    replaces={"write_file"},
    # They write Hermes' own files, or elsewhere.
    harmless_tools={"skill_manage", "project_create", "feishu_drive_add_comment"},
    dialect=Dialect(tools={"terminal": "Bash"}),
)
