"""An extension as Gemini CLI and Qwen Code have it linked: a folder under its name, with a file that says where it is.

Their own commands write the same file. They also ask, take seconds, and bring the person's settings up to date.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from swarm_mcp.errors import ClientFailed
from swarm_mcp.runtimes.base import as_failure, object_in
from swarm_mcp.runtimes.json_editor import JsonText, list_of, object_of
from swarm_mcp.runtimes.users_file import write_whole


@dataclass(frozen=True)
class LinkedExtension:
    """The extension `name` of the client that keeps its settings in `home`.

    `link`: the name of the file that says where it is; `user`: the folder around all that the user has.
    """

    home: Path
    name: str
    link: str
    user: Path

    @property
    def folder(self) -> Path:
        """Return the client's folder for it. It need not exist."""
        return self.home / "extensions" / self.name

    def source(self) -> str:
        """The folder that it is linked to; empty where it is not there, or a copy."""
        told = object_in(self.folder / self.link)
        source = told.get("source")
        if told.get("type") == "link" and isinstance(source, str):
            return source
        return ""

    @as_failure()
    def put(self, source: Path) -> None:
        """Link it to the folder `source`. Raises ClientFailed."""
        text = json.dumps({"source": str(source), "type": "link"}, indent=2)
        write_whole(self.folder / self.link, text.encode())

    def foreign(self, client: str) -> ClientFailed:
        """Return the error for another extension in its place. `client` is the client's command."""
        mend = f"{client} extensions uninstall {self.name}"
        return ClientFailed(f"{self.folder} is another extension of that name; to take it out: {mend}")

    def remove(self) -> None:
        """Take the link away, and the folders around it that are empty then."""
        (self.folder / self.link).unlink()
        for folder in (self.folder, self.folder.parent, self.home):
            try:
                folder.rmdir()
            except OSError:
                break  # it holds other files

    def is_disabled(self) -> bool:
        """Return True if a person has disabled it for all folders. The last rule that fits counts."""
        rules = object_of(object_in(self.folder.parent / "extension-enablement.json").get(self.name))
        found = False
        for rule in list_of(rules.get("overrides")):
            folder = str(rule).removeprefix("!").removesuffix("*")
            if f"{self.user}/".startswith(folder):
                found = str(rule).startswith("!")
        return found

    def settings(self) -> dict[str, Any]:
        """Return the user's settings, a file with comments. Empty if they cannot be read."""
        try:
            tree = JsonText((self.home / "settings.json").read_text(encoding="utf-8")).tree
        except (OSError, ValueError):  # unreadable: as without settings
            return {}
        return object_of(tree)
