"""A client with its hooks in a JSON file of the user. Their commands hold the path of the local bundle."""

from __future__ import annotations

import re
from abc import abstractmethod
from functools import cached_property
from pathlib import Path
from typing import Any

from swarm_mcp.errors import SwarmError
from swarm_mcp.runtimes import hook_config
from swarm_mcp.runtimes.base import Finding, as_failure, object_in
from swarm_mcp.runtimes.bundle import SKILLS
from swarm_mcp.runtimes.edited_json import EditedJson, Entry, tree_in
from swarm_mcp.runtimes.in_place import InPlace
from swarm_mcp.runtimes.installed import HookCommand, Installed, hooks_in, in_quotes
from swarm_mcp.runtimes.json_editor import object_of
from swarm_mcp.runtimes.links import leads_to, put_links, take_link
from swarm_mcp.runtimes.steps import Steps


class InUsersFile(InPlace):
    """One such client. Its dialect has all of its events.

    `place`: the keys in the file under which each event has the list of its hooks. `frame` as for EditedJson.
    """

    thing = "hooks"
    place: tuple[str, ...] = ("hooks",)
    frame: dict[str, object] = {}

    @abstractmethod
    def file(self) -> Path:
        """Return the user's file. It need not exist."""

    @abstractmethod
    def hook(self, command: str, matcher: str, seconds: float) -> dict[str, Any]:
        """One hook as the client's file has it: its `command`, the tools it is for (empty for all), its time limit."""

    def entries(self, root: Path) -> list[Entry]:
        """Return the entries of the file for the bundle in `root`."""
        tree, names = object_in(root / self.folder / "hooks.json"), {ours: name for name, ours in self._events.items()}
        found = []
        for event, group, hook in hooks_in(tree) if tree else ():
            command = hook["command"].replace("${SWARM_PLUGIN_ROOT}", in_quotes(root))
            value = self.hook(command, group.get("matcher", ""), hook["timeout"])
            found.append(Entry((*self.place, names[event]), value, is_element=True))
        return found

    def is_ours(self, value: object) -> bool:
        """Return True if this is a hook of ours, also of an earlier release."""
        return bool(self._command_in(value))

    def edited(self, root: Path) -> EditedJson:
        """The user's file with the entries of the bundle in `root`."""
        return EditedJson(self.file(), self.entries(root), self.frame, self.is_ours)

    def root(self) -> Path | None:
        found = [self._ours.search(hook.command) for hook in self._wired()]
        return next((Path(re.sub(r"\\(.)", r"\1", match["root"])) for match in found if match), None)

    def fault(self, root: Path) -> Finding | None:
        if self.edited(root).is_current():
            return None
        return self.said("warn", f"{self.file()} does not have them as they are installed", self.mend)

    def installed_at(self, root: Path, told: list[HookCommand] | None = None) -> Installed:
        """The plugin in the folder `root`, with the hooks as the client will run them."""
        return super().installed_at(root, self._wired() if told is None else told)

    # ---------------------------------------------------------------- innards

    @cached_property
    def _ours(self) -> re.Pattern[str]:
        return re.compile(rf'/bin/sh "(?P<root>(?:[^"\\]|\\.)*)/integrations/hook\.sh" {self.name} \w+')

    @property
    def _events(self) -> dict[str, str]:
        """The client's name of each event -> ours."""
        return hook_config(self.name).dialect.events

    def _command_in(self, hook: object) -> str:
        """Return our command in an entry of the file, or an empty text."""
        values = object_of(hook).values()
        return next((value for value in values if isinstance(value, str) and self._ours.search(value)), "")

    def _wired(self) -> list[HookCommand]:
        """Return our hooks in the file. Empty if it cannot be read."""
        try:
            found: object = tree_in(self.file())
        except SwarmError:  # unreadable
            return []
        for key in self.place:
            found = object_of(found).get(key)
        lists = object_of(found).items()
        commands = [
            (event, self._command_in(hook)) for event, hooks in lists if isinstance(hooks, list) for hook in hooks
        ]
        return [HookCommand(self._events[event], one, {}) for event, one in commands if one and event in self._events]


class WithSkills(InUsersFile):
    """One with its hooks in ``settings.json`` of its folder, in Claude Code's form, and links to the skills beside it.

    Its time limits are in milliseconds.
    """

    @abstractmethod
    def home(self) -> Path:
        """Return the client's folder. It need not exist."""

    def file(self) -> Path:
        return self.home() / "settings.json"

    def hook(self, command: str, matcher: str, seconds: float) -> dict[str, Any]:
        hook = {"type": "command", "command": command, "timeout": int(seconds * 1000)}
        return {**({"matcher": matcher} if matcher else {}), "hooks": [hook]}

    def install(self, marketplace: Path, steps: Steps) -> Installed:
        steps.begin(f"adding the hooks to {self.file()}")
        with as_failure():
            if self.edited(marketplace).put():
                steps.add(f"added the hooks to {self.file()}")
        put_links(self._links(), marketplace.resolve(), steps)
        return self.installed_at(marketplace)

    def uninstall(self, steps: Steps) -> None:
        for link, name in self._links().items():
            if leads_to(link, name):
                take_link(link, steps)
        root = self.root()
        with as_failure():
            if root and self.edited(root).take_out():
                steps.add(f"took the hooks out of {self.file()}")

    def traces(self) -> bool:
        return self.root() is not None or any(leads_to(link, name) for link, name in self._links().items())

    def _command_in(self, hook: object) -> str:
        hooks = object_of(hook).get("hooks")
        found = [super(WithSkills, self)._command_in(one) for one in hooks] if isinstance(hooks, list) else []
        return next(filter(None, found), "")

    def _links(self) -> dict[Path, str]:
        """Each link to a skill -> the bundle's folder that it leads to."""
        return {self.home() / "skills" / name: f"skills/{name}" for name in SKILLS}
