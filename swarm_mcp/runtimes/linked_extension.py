"""An extension as Gemini CLI and Qwen Code have it linked: a folder under its name, with a file that says where it is.

Their own commands write the same file. They also ask, take seconds, and bring the person's settings up to date.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from swarm_mcp.errors import ClientFailed
from swarm_mcp.folders import here
from swarm_mcp.runtimes.base import as_failure, object_in
from swarm_mcp.runtimes.json_editor import list_of, object_of
from swarm_mcp.runtimes.settings_layers import Layer, read, with_comments
from swarm_mcp.runtimes.users_file import write_whole


@dataclass(frozen=True)
class LinkedExtension:
    """The extension `name` of the client that keeps its settings in `home`.

    `link`: the name of the file that says where it is.
    """

    home: Path
    name: str
    link: str

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

    def is_disabled(self, folder: str) -> bool:
        """Return True if a person has disabled it for sessions in `folder`. The last rule that fits counts."""
        rules = object_of(object_in(self.folder.parent / "extension-enablement.json").get(self.name))
        place, found = f"{folder.rstrip('/')}/", False
        for rule in map(str, list_of(rules.get("overrides"))):
            place_of_rule = rule.removeprefix("!")
            if place == place_of_rule or (place_of_rule[-1:] == "*" and place.startswith(place_of_rule[:-1])):
                found = rule.startswith("!")
        return found

    def layers(self, variable: str, on_linux: str, on_mac: str) -> list[Layer]:
        """Return the layers of settings for a session that starts in this folder.

        `variable`: the beginning of the variables that name the machine's files. Else those are in the folder
        `on_linux` of ``/etc``, or in `on_mac` of the Mac's library.
        """
        folder = Path("/Library/Application Support", on_mac) if sys.platform == "darwin" else Path("/etc", on_linux)
        policy = Path(os.environ.get(f"{variable}_SYSTEM_SETTINGS_PATH") or folder / "settings.json")
        defaults = os.environ.get(f"{variable}_SYSTEM_DEFAULTS_PATH") or policy.with_name("system-defaults.json")
        users, projects = self.home / "settings.json", Path(here(), self.home.name, "settings.json")
        files = [(Path(defaults), True), (users, False), (projects, False), (policy, True)]
        return [read(file, is_policy, with_comments) for file, is_policy in files]
