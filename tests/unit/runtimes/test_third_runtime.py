"""A runtime is one folder, one module and one line of the registry, also where the client speaks another dialect.

`editor` does not exist: its payloads have fields of other names, some below others, its tools' inputs are JSON texts,
and a hook of it denies with a flat object and exit status 2.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.files import files_at, program_at
from support.requirement import requirement
from support.sessions import ROOT, new_session, peer_locks, ready_store

pytestmark = [pytest.mark.slow, pytest.mark.thorough]

LINE = '    "editor": ("editor", "Editor"),\n'
CONFIG = '''\
"""Editor: a client with words of its own."""

from swarm_hook_core.config import Dialect, RuntimeConfig, paths_under_keys

RUNTIME = RuntimeConfig(
    runtime_name="editor",
    env_prefix="ED",
    scratch_dir_name="swarm-editor",
    write_tools={"save_buffer"},
    extract_paths=paths_under_keys("buffer"),
    replaces={"save_buffer"},
    dialect=Dialect(
        fields={
            "hook_event_name": "event", "session_id": "conversation.id", "cwd": "workspace.root", "tool_name": "tool",
            "tool_input": "arguments", "tool_use_id": "call",
        },
        tools={"terminal": "Bash"},
        events={"started": "SessionStart", "before_tool": "PreToolUse", "ended": "SessionEnd"},
        input_is_text=True,
        command="script",
        denial=lambda event, reason: {"decision": "deny", "reason": reason},
        words=lambda event, text, for_user: {"message": text},
        denial_status=2,
    ),
)
'''
MODULE = '''\
"""Editor runs the plugins that its plugins.txt names."""

from pathlib import Path

from swarm_mcp.runtimes.base import Finding, Look, Runtime
from swarm_mcp.runtimes.installed import YES, Coverage

LIST = Path.home() / "plugins.txt"


class Editor(Runtime):
    name = title = executable = harness = "editor"
    shell_tool = "terminal"
    coverage = Coverage(
        edits=YES, patches="no: it has none", shell=YES, other_tools=YES, subagents="no: it has none",
        told_before=YES, told_after=YES, ends=YES, verified=None,
    )

    def install(self, marketplace, steps):
        with steps.step("writing its list", "wrote its list"):
            LIST.write_text(str(marketplace))
        return self.installed_at(marketplace)

    def uninstall(self, steps):
        LIST.unlink(missing_ok=True)

    def traces(self):
        return LIST.exists()

    def look(self, marketplace, steps):
        if not self.traces():
            return Look([Finding("editor plugin", "warn", "not installed")], None)
        return Look([Finding("editor plugin", "ok", "listed")], self.installed_at(Path(LIST.read_text())))

    def write_payload(self, session_id, cwd, file):
        return {"event": "before_tool", "conversation": {"id": session_id}, "workspace": {"root": cwd},
                "tool": "save_buffer", "arguments": '{"buffer": "%s"}' % file}
'''


def wired(event: str) -> list[dict[str, Any]]:
    command = f'/bin/sh "${{SWARM_PLUGIN_ROOT}}/integrations/hook.sh" editor {event}'
    return [{"hooks": [{"type": "command", "command": command}]}]


EVENTS = {"SessionStart": "session_start", "PreToolUse": "pre_tool_use", "SessionEnd": "session_end"}
HOOKS = {event: wired(hook) for event, hook in EVENTS.items()}


class Place:
    """A checkout with the runtime in it, and a machine that has the client."""

    def __init__(self, folder: Path):
        self.source, self.repo = folder / "source", folder / "repo"
        ignored = shutil.ignore_patterns("__pycache__", ".git", "tests", ".*cache")
        shutil.copytree(ROOT, self.source, ignore=ignored)
        (self.repo / ".git").mkdir(parents=True)
        self.touched = {"integrations/editor/runtime.py": CONFIG, "swarm_mcp/runtimes/editor.py": MODULE,
                        "integrations/editor/hooks.json": json.dumps({"hooks": HOOKS})}  # fmt: skip
        registry = self.source / "swarm_mcp/runtimes/__init__.py"
        text = registry.read_text()
        self.touched["swarm_mcp/runtimes/__init__.py"] = text.replace('    "hs": (', f'{LINE}    "hs": (')
        files_at(self.source, self.touched)
        program = program_at(folder / "bin" / "editor", "#!/bin/sh\nexit 0\n")
        self.env = {**os.environ, "PYTHONPATH": str(self.source), "PATH": f"{program.parent}:{os.environ['PATH']}"}

    def swarm(self, *words: str) -> dict[str, Any]:
        """Return the output of a command of that checkout, as JSON."""
        code = "import sys; from swarm_mcp.cli.main import main; sys.exit(main())"
        argv = [sys.executable, "-c", code, *words, "--json"]
        done = subprocess.run(argv, env=self.env, cwd=self.repo, capture_output=True, text=True, check=False)
        assert done.stderr == "", done
        return dict(json.loads(done.stdout))

    def hook(self, wired_for: str, **payload: Any) -> tuple[int, dict[str, Any]]:
        """Exit status and answer of an installed hook."""
        root = Path(self.env["HOME"], "plugins.txt").read_text()
        tree = json.loads(Path(root, "integrations/editor/hooks.json").read_text())
        ((hook,),) = [group["hooks"] for group in tree["hooks"][wired_for]]
        done = subprocess.run(["/bin/sh", "-c", hook["command"]], input=json.dumps(payload), capture_output=True,
                              text=True, env={**self.env, "SWARM_PLUGIN_ROOT": root}, check=False)  # fmt: skip
        assert done.stderr == ""
        return done.returncode, json.loads(done.stdout or "{}")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    ready_store()
    return Place(tmp_path)


@requirement("P-02")
def test_a_runtime_is_one_folder_one_module_and_one_line(place: Place) -> None:
    before = (ROOT / "swarm_mcp/runtimes/__init__.py").read_text().splitlines()
    after = place.touched["swarm_mcp/runtimes/__init__.py"].splitlines()
    assert len(after) == len(before) + 1 and sum(map(len, map(str.splitlines, (CONFIG, MODULE)))) < 80

    (result,) = place.swarm("install", "--client", "editor")["results"]
    assert result["ok"] and any("canary lock was denied" in step for step in result["steps"]), result
    found = {check["name"]: check for check in place.swarm("doctor")["checks"]}
    assert found["editor enforcement"]["status"] == "ok" and found["editor plugin"]["status"] == "ok"
    covered = found["editor coverage"]
    assert covered["status"] == "warn" and "unverified" in covered["message"] and "patches (no" in covered["message"]

    me = new_session()
    facts = {"conversation": {"id": me}, "workspace": {"root": str(place.repo)}}

    def asked(tool: str, **tool_input: str) -> tuple[int, dict[str, Any]]:
        return place.hook("PreToolUse", event="before_tool", tool=tool, arguments=json.dumps(tool_input), **facts)

    status, greeting = place.hook("SessionStart", event="started", source="startup", **facts)
    assert status == 0 and set(greeting) == {"message"} and "is registered as" in greeting["message"]
    assert asked("save_buffer", buffer="f") == (0, {})
    peer = peer_locks(place.repo, place.repo / "f", "mine", "the peer")
    status, answer = asked("save_buffer", buffer="../repo/f")
    assert status == 2 and set(answer) == {"decision", "reason"} and answer["decision"] == "deny"
    who = f'"the peer" {peer["id"][:8]}'
    said = f"swarm lock blocked save_buffer for f: held by {who} (wait in line for it: `swarm-mcp lock f --wait 60`; "
    assert answer["reason"].startswith(f'{said}note: "mine";')
    status, answer = asked("terminal", script="echo x >> f")
    assert status == 2 and answer["reason"].startswith("swarm lock blocked terminal")
    assert asked("save_buffer", buffer="g") == asked("terminal", script="cat f") == (0, {})
    assert asked("Write", buffer="f") == (0, {}), "other runtimes' tools are not this one's"
    assert set(asked("save_buffer", path="f")[1]) == {"message"}, "it could not be checked, which is told"
    status, answer = place.hook("PreToolUse", event="before_tool", tool="save_buffer", arguments="{no JSON", **facts)
    assert status == 0 and set(answer) == {"message"}
    assert place.hook("SessionEnd", event="ended", **facts) == (0, {})
