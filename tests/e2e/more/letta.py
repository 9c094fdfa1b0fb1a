"""Letta Code as the tests use it: with its local backend, which needs no account."""

import json
from pathlib import Path

from ..client import Call
from . import OtherClient


class Letta(OtherClient):
    name = executable = harness = "letta"
    prefix = "LETTA"
    requests = "/chat/completions"
    settings = (".letta/settings.json",)
    announced = False  # with -p
    _letta = ("letta", "--backend", "local")

    def prepare(self) -> None:
        self.ground.env.update(LETTA_CODE_TELEM="0", DISABLE_AUTOUPDATER="1", LETTA_LOCAL_BACKEND_EXPERIMENTAL="1")
        self.models.listed = ["scripted"]  # it refuses a model that its provider does not list
        folder = self.ground.home / ".letta"
        folder.mkdir()
        # As it has written them after its first start.
        settings = {"hooks": {}, "autoConversationTitles": False, "autoConversationTitlesRollbackApplied": True}
        (folder / "settings.json").write_text(json.dumps(settings, indent=2))
        address = ("--base-url", f"http://127.0.0.1:{self.models.port}/v1", "--api-key", "dummy-key-for-loopback")
        done = self.ground.run([*self._letta, "connect", "openai-compatible", *address])
        assert done.returncode == 0, done.stdout + done.stderr

    def wired_in(self) -> list[Path]:
        return [self.ground.home / ".letta" / "settings.json"]

    def command(self, prompt: str, resume: str | None, fork: str | None, extra: tuple[str, ...]) -> list[str]:
        which = ["--agent", resume] if resume else ["--new-agent", "--personality", "blank"]
        form = ("-m", "openai-compatible/scripted", "--output-format", "stream-json", "--yolo")
        return [*self._letta, *form, *which, *extra, "-p", prompt]

    def create(self, path: str, text: str) -> Call:
        return {"name": "Write", "input": {"file_path": self.absolute(path), "content": text}}

    def replace(self, path: str, old: str, new: str) -> Call:
        return {"name": "Edit", "input": {"file_path": self.absolute(path), "old_string": old, "new_string": new}}

    def shell(self, command: str) -> Call:
        return {"name": "Bash", "input": {"command": command, "description": "As scripted"}}
