"""Our command in a client's own status line, by the client's setting for that."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import NamedTuple

from swarm_mcp.errors import SwarmError
from swarm_mcp.installation import coordinator_command
from swarm_mcp.runtimes import users_file
from swarm_mcp.runtimes.json_editor import JsonText, object_of

VERB = "statusline"
_SIGN = f' {VERB}"'  # the end of our command in TOML


class StatusLine(NamedTuple):
    """A client's setting: an object at `place` in the user's file at `path`, JSON or (by its name) TOML.

    `says_type`: the object also has the type of the line. `has_comments`: the client reads comments in its JSON.
    """

    path: Path
    place: tuple[str, ...]
    says_type: bool = True
    has_comments: bool = False

    def set(self, wanted: bool) -> str:
        """Put our command there, or take it out. Return a sentence about it, empty if there was nothing to take.

        Another command there is left alone. Raises SwarmError, OSError.
        """
        if self.path.suffix == ".toml":
            is_taken, is_new = self._in_toml(wanted)
        else:
            is_taken, is_new = self._in_json(wanted)
        if wanted and is_taken:
            return f"{self.path} has another status line, and it stays; it can call `swarm-mcp {VERB}` itself"
        if wanted:
            return f"status line: `swarm-mcp {VERB}`, in {self.path}"
        if is_new:
            return f"took the status line out of {self.path}"
        return ""

    def _value(self) -> dict[str, str]:
        command = shlex.join([*coordinator_command(), VERB])
        if self.says_type:
            return {"type": "command", "command": command}
        return {"command": command}

    def _in_json(self, wanted: bool) -> tuple[bool, bool]:
        """Return True if another command is there, and True if the file was changed."""
        try:
            text = self.path.read_text("utf-8")
        except FileNotFoundError:
            text = "{}\n"
        try:
            settings = JsonText(text, strict=not self.has_comments)
            present = settings.tree
            for name in self.place:
                present = object_of(present).get(name)
            command = str(object_of(present).get("command", ""))
            is_ours = command.endswith(f" {VERB}")
            if command and not is_ours:
                return True, False
            if not wanted and not is_ours:
                return False, False
            if wanted:
                written = settings.text_with(self.place, self._value())
            else:
                written = settings.text_without(self.place)
        except ValueError as error:
            raise SwarmError(f"{self.path} {error}: it was left as it is") from None
        users_file.write_whole(self.path, written.encode())
        return False, True

    def _in_toml(self, wanted: bool) -> tuple[bool, bool]:
        table = ".".join(self.place)
        if not wanted:
            return False, users_file.take_out(self.path, table, _SIGN)
        body = "".join(f"{name} = {json.dumps(text)}\n" for name, text in self._value().items())
        if users_file.is_taken(users_file.read_text(self.path) or "", table, _SIGN):
            return True, False
        return False, users_file.put(self.path, table, body, _SIGN)
