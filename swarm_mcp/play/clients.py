"""A real client as a play starts it, and the calls by which its models write.

A `Client` is played on a `Scene`. The tests have classes of the same names for more than a play does, on a ground of
their own.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from swarm_mcp.errors import ClientFailed
from swarm_mcp.play.models import Dialect, Exchange, ModelServer, play
from swarm_mcp.play.scene import YOURS, copy, refuse_services, sealed
from swarm_mcp.runtimes import hook_config, runtime
from swarm_mcp.runtimes.client_settings import Layer, last_of

Call = dict[str, Any]
SERVER = {"command": sys.executable, "args": [str(Path(__file__).with_name("files_server.py"))]}
SCRIPT = "play"  # its name
FILES = "doctor_files"  # the name of that server in a play
KEY = "dummy-key-for-loopback"
SPOILT = "spoilt\n"
NEW = "new.md"  # is not there
TEXT = "line one\n"
_CELL: dict[str, Any] = {
    "cell_type": "code",
    "id": "cell-1",
    "metadata": {},
    "outputs": [],
    "execution_count": None,
    "source": ["1"],
}
NOTEBOOK = json.dumps({"cells": [_CELL], "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


class Way(NamedTuple):
    """A way of writing: its name for people, the file, and the calls. The last call writes.

    `is_optional`: not each release of a client has the tool.
    """

    name: str
    file: str
    calls: list[Call]
    is_optional: bool = False


class Seen(NamedTuple):
    """A session that has ended: the permission mode it had, the calls its person was asked about, a complaint."""

    mode: str
    asked: list[str]
    trouble: str = ""


class Client:
    """One client: its tools' calls, and a session that plays a script."""

    name: ClassVar[str]  # as `swarm-mcp install --client` has it
    requests: ClassVar[str]  # the end of the path of its model requests
    modes: ClassVar[tuple[str, ...]] = ()  # the permission modes that a person can choose
    questions: ClassVar[dict[str, str]] = {}  # words on the screen with a question -> the key for "yes, this once"
    types_at: ClassVar[str] = ""  # words on the screen of a client that takes its prompt there alone
    models_played: ClassVar[tuple[str, ...]] = ("",)  # one for each set of tools that the client gives to models
    model = ""

    def __init__(self, ground: Any) -> None:
        self.ground: Any = ground
        self.models: ModelServer = ground.models
        self.dialect: Dialect = ModelServer.dialects[self.requests]

    # -- the calls of its models' tools --

    def create(self, path: str, text: str) -> Call:
        """Return the call that writes a whole file."""
        raise NotImplementedError

    def replace(self, path: str, old: str, new: str) -> Call:
        """Return the call that replaces one whole line of an existing file."""
        raise NotImplementedError

    def look(self, path: str) -> list[Call]:
        """Return the calls that read a file so that the client itself knows that the model has read it."""
        return [self.shell(f"cat {path}")]

    def change(self, path: str, old: str, new: str) -> list[Call]:
        """Return the calls that replace one whole line, after the calls that the client needs before."""
        return [self.replace(path, old, new)]

    def shell(self, command: str) -> Call:
        """Return the call that runs a shell command."""
        raise NotImplementedError

    def server_tool(self, server: str, tool: str, arguments: dict[str, Any]) -> list[Call]:
        """Return the calls of a tool of that MCP server."""
        raise NotImplementedError

    def absolute(self, path: str) -> str:
        """Return a path as models send it: absolute, except for ``../x``, left as it is for the test of that."""
        if path.startswith(".."):
            return path
        return str(self.ground.checkout / path)

    # -- a play --

    def bring(self) -> None:
        """Copy the settings of the user and of the project here into the scene, so that they reach loopback alone.

        Raises ClientFailed if that cannot be made sure.
        """
        raise NotImplementedError

    def ways(self) -> list[Way]:
        """Return the ways in which its models write."""
        raise NotImplementedError

    def choose(self, model: str) -> None:
        """Play with this model from now on."""
        self.model = model

    def session(self, prompt: str, mode: str) -> Seen:
        """Play a prompt in a session of its own. Raises ClientFailed."""
        raise NotImplementedError

    def at_terminal(self, mode: str, argv: list[str]) -> Seen:
        """Play the script at a terminal, as a person who says yes. Return the session, with the questions of our hooks.

        A client whose hooks can ask is left at its question about the person's line. Raises ClientFailed.
        """
        script, hooks_ask = self.models.scripts[SCRIPT], hook_config(self.name).asks is not None
        with self.ground.at_terminal(argv) as terminal:
            while terminal.reads():
                if self._is_over():
                    break
                answers = {**self.questions, **self._typed()}
                key = next((key for words, key in answers.items() if terminal.shows(words)), "")
                if not key:
                    continue
                if hooks_ask and YOURS in json.dumps(script[len(self.results(SCRIPT))].calls):
                    return Seen(mode, [terminal.shown])
                terminal.press(key)
            else:
                return self.seen(mode, " ".join(terminal.shown.split())[-300:])
        return Seen(mode, [])

    def _typed(self) -> dict[str, str]:
        """Return the words on the screen that ask for the prompt, and its paste: Enter after keys is a new line."""
        if not self.types_at or self.exchanges(SCRIPT):
            return {}
        return {self.types_at: f"\x1b[200~{play(SCRIPT)}\x1b[201~\r"}

    def without_terminal(self, mode: str, argv: list[str]) -> Seen:
        """Play the script until its last result is there: some clients wait for the network at their end.

        Raises ClientFailed.
        """
        return self.seen(mode, self.ground.run(argv, self._is_over))

    def _is_over(self) -> bool:
        return len(self.results(SCRIPT)) == len(self.models.scripts[SCRIPT]) - 1

    def seen(self, mode: str, trouble: str) -> Seen:
        """Return a session that has ended and asked nothing. Raises ClientFailed if its model was never asked."""
        if not self.exchanges(SCRIPT):
            raise ClientFailed(f"it did not start: {trouble}")
        return Seen(mode, [], trouble)

    @property
    def server(self) -> dict[str, Any]:
        """The other server of a play, as a client's settings have it."""
        return {**SERVER, "args": [*SERVER["args"], str(self.ground.listed)]}

    def _written_by_server(self, file: str) -> Way:
        calls = self.server_tool(FILES, "write_file", {"path": self.absolute(file), "content": SPOILT})
        return Way("another server's tool", file, calls, is_optional=True)

    # -- requests to the model --

    def exchanges(self, script: str) -> list[Exchange]:
        """The requests that belong to `script`, oldest first, the client's side errands left out."""
        return [
            exchange
            for exchange in self.models.exchanges(self.requests)
            if not self.dialect.is_errand(exchange.body) and self.dialect.position(exchange.body).script == script
        ]

    def results(self, script: str) -> list[str]:
        """The tool results that the model saw in its last request of `script`."""
        exchanges = self.exchanges(script)
        return self.dialect.results(exchanges[-1].body) if exchanges else []


class OneShot(Client):
    """A client that takes its prompt as a word of its command. It has one tool for whole files, and one for changes."""

    whole: ClassVar[str]  # the name of the tool for whole files
    changes: ClassVar[str]
    new_files_only: ClassVar[bool] = False  # its tool for whole files refuses one that is there
    patch_model: ClassVar[str] = ""  # has apply_patch in the place of both
    settings_for_loopback: ClassVar[dict[str, Any]]
    asking: ClassVar[tuple[str, ...]] = ()  # the modes in which it asks

    def point_at_model(self) -> None:
        """Set the variables that point sessions at the model on loopback."""
        raise NotImplementedError

    def started(self, prompt: str, *words: str) -> list[str]:
        """Return the command that plays a prompt; `words`: more options."""
        raise NotImplementedError

    def opened(self, prompt: str, *words: str) -> list[str]:
        """Return the command that plays a prompt at a terminal; `words` as above."""
        raise NotImplementedError

    def in_mode(self, mode: str) -> list[str]:
        """Return the options for a permission mode."""
        raise NotImplementedError

    def usual_mode(self) -> str:
        """Return the mode that it starts in here."""
        return next(iter(self.modes), "")

    def _chosen_mode(self, layers: Sequence[Layer], *place: str) -> str:
        """Return the mode that these settings choose; without one, the first of its modes."""
        found = last_of(layers, *place, kind=str)
        if found and found[0].replace("_", "-") in [mode.replace("_", "-") for mode in self.modes]:
            return str(found[0])
        return self.modes[0]

    def patch(self, body: str) -> list[Call]:
        """Return the calls that apply a patch with `body` between the markers."""
        raise NotImplementedError

    def ways(self) -> list[Way]:
        whole = Way(self.whole, "whole.md", [*self.look("whole.md"), self.create("whole.md", SPOILT)])
        if self.new_files_only:
            whole = Way(self.whole, NEW, [self.create(NEW, SPOILT)])
        found = [whole, Way(self.changes, "edit.md", self.change("edit.md", TEXT.strip(), SPOILT.strip()))]
        if self.model and self.model == self.patch_model:
            body = f"*** Update File: edit.md\n@@\n-{TEXT.strip()}\n+{SPOILT.strip()}"
            found = [Way("apply_patch", "edit.md", self.patch(body))]
        shell = Way("the shell", "shell.md", [self.shell("echo spoilt > shell.md")])
        return [*found, shell, self._written_by_server("server.md")]

    def session(self, prompt: str, mode: str) -> Seen:
        mode, program = mode or self.usual_mode(), runtime(self.name).program()
        if mode in self.asking:
            _name, *words = self.opened(prompt, *self.in_mode(mode))
            return self.at_terminal(mode, [program, *words])
        _name, *words = self.started(prompt, *self.in_mode(mode))
        return self.without_terminal(mode, [program, *words])

    def _bring_settings(self, users: Path, layers: Sequence[Layer]) -> None:
        """Copy settings and extensions from the user's folder `users`, and the settings of the project here."""
        refuse_services([layer for layer in layers if layer.is_policy])
        place, projects = self.ground.home / users.name, Path(layers[2].file)
        more = {**self.settings_for_loopback, "mcpServers": {FILES: {**self.server, "trust": True}}}
        place.mkdir()
        (place / "settings.json").write_text(json.dumps(more))
        copy(users / "settings.json", place / "settings.json", lambda text: sealed(text, **more))
        copy(users / "extensions", place / "extensions")
        copy(projects, self.ground.checkout / users.name / "settings.json", sealed)
        self.point_at_model()
