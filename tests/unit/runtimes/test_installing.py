"""Installing the plugin in several clients at once: the questions to each, the reports meanwhile, and faults."""

import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.altered import Limits
from support.files import program_at, text_at
from support.fixtures import SWARM, Ground
from support.harness_fixtures import gone_within
from support.listings import lines_of

from swarm_hook_core.state import store_path
from swarm_mcp.doctor import enforcement
from swarm_mcp.errors import ClientFailed
from swarm_mcp.installation import marketplace_folder
from swarm_mcp.runtimes import NAMES, base, bundle, runtime
from swarm_mcp.runtimes.base import Interrupted, SideBySide, Steps
from swarm_mcp.runtimes.codex import files_of
from swarm_mcp.runtimes.users_file import RECORD, put_folder

pytestmark = [pytest.mark.slow, pytest.mark.thorough]
INSTALLING = "and installing swarm@swarm ..."  # the end of a line of Claude Code's
PATIENCE = 60.0  # seconds before a test gives up

# Clients that keep their entries in a file, and write each call down before they answer. A call with a pipe of its name
# beside that file waits until the pipe is read.
# As releases of Node.js 20 do, this Claude Code knows --json for lists alone. `old` has its release, `copies` has it run
# a copy of the plugin.
CLAUDE = """
import json, os, shutil, sys
folder = {folder!r}
path = os.path.join(os.environ["CLAUDE_CONFIG_DIR"], "settings.json")
copy = os.path.join(os.path.dirname(path), "copy")
words = [word for word in sys.argv[1:] if word != "--json"]
old, copies = os.path.join(folder, "old"), os.path.exists(os.path.join(folder, "copies"))
with open(os.path.join(folder, "claude.calls"), "a") as calls:
    print(*words[1:3], file=calls)
if words == ["--version"]:
    sys.exit(print(open(old).read() if os.path.exists(old) else "99.0.0"))
if "--json" in sys.argv and ("list" not in words or os.path.exists(old)):
    sys.exit("error: unknown option '--json'")
gate = os.path.join(folder, "claude." + words[1])
if os.path.exists(gate):
    open(gate, "w").close()
state = json.load(open(path)) if os.path.exists(path) else {{"place": "", "plugins": []}}
if words[1] == "list":
    place = state["place"]
    at = {{"installPath": copy}} if copies else {{"readFromFolder": place}}
    print(json.dumps([{{"id": id, "version": {version!r}, "enabled": True, **at}} for id in state["plugins"]]))
elif words[1:3] == ["marketplace", "list"]:
    print(json.dumps([{{"name": "swarm", "path": state["place"]}}] if state["place"] else []))
elif words[1:3] == ["marketplace", "add"]:
    state["place"] = words[3]
elif words[1:3] == ["marketplace", "remove"]:
    if not state["place"]:
        sys.exit(1)
    state = {{"place": "", "plugins": state["plugins"] if os.path.exists(os.path.join(folder, "keeps")) else []}}
elif words[1] == "install" and "--marketplace" in words:
    if copies or os.path.exists(os.path.join(folder, "earlier")) or state["place"] not in ("", words[-1]):
        sys.exit(1)
    state = {{"place": words[-1], "plugins": ["swarm@swarm"]}}
elif words[1] == "install":
    state["plugins"] = words[2:]
    if copies:
        shutil.copytree(state["place"], copy)
elif words[1] == "uninstall":
    state["plugins"] = []
    shutil.rmtree(copy, ignore_errors=True)
os.makedirs(os.path.dirname(path), exist_ok=True)
json.dump(state, open(path, "w"))
"""
CODEX = """
import json, os, shutil, sys
folder = {folder!r}
home = os.environ["CODEX_HOME"]
path, copy = os.path.join(home, "state"), os.path.join(home, "plugins/cache/swarm/swarm/1")
words = [word for word in sys.argv[1:] if word != "--json"]
with open(os.path.join(folder, "codex.calls"), "a") as calls:
    print(*words[-3 if "marketplace" in words and words[2] != "list" else 0:][:3], file=calls)
state = json.load(open(path)) if os.path.exists(path) else {{"place": "", "trusted": []}}

def keep():
    os.makedirs(home, exist_ok=True)
    json.dump(state, open(path, "w"))

def answer(method, params):
    if method == "config/read":
        return {{"config": {{"hooks": {{"state": dict.fromkeys(state["trusted"])}}}}}}
    for edit in params.get("edits", []):
        value = edit["value"]
        state["trusted"] = sorted(value) if value else []
        keep()
    if method != "hooks/list" or not os.path.isdir(copy):
        return {{"data": []}}
    wired = json.load(open(os.path.join(copy, "integrations/codex/hooks.json")))["hooks"]
    return {{"data": [{{"hooks": [
        {{"key": "swarm@swarm:" + event, "pluginId": "swarm@swarm", "eventName": event[0].lower() + event[1:],
          "enabled": True, "trustStatus": "trusted" if "swarm@swarm:" + event in state["trusted"] else "untrusted",
          "currentHash": "h",
          "command": groups[0]["hooks"][0]["command"].replace("${{CLAUDE_PLUGIN_ROOT}}", copy)}}
        for event, groups in wired.items()]}}]}}

if words == ["app-server"]:
    for line in sys.stdin:
        request = json.loads(line)
        if "id" in request:
            print(json.dumps({{"id": request["id"], "result": answer(request["method"], request["params"])}}), flush=True)
elif words[1:3] == ["marketplace", "list"]:
    listed = [{{"name": "swarm", "marketplaceSource": {{"source": state["place"]}}}}] if state["place"] else []
    print(json.dumps({{"marketplaces": listed}}))
elif words[1:3] == ["marketplace", "add"]:
    state["place"] = words[3]
    keep()
elif words[1:3] == ["marketplace", "remove"]:
    state["place"] = ""
    keep()
elif words[1] == "add":
    shutil.rmtree(copy, ignore_errors=True)
    (plugin,) = json.load(open(os.path.join(state["place"], ".agents/plugins/marketplace.json")))["plugins"]
    shutil.copytree(os.path.join(state["place"], plugin["source"]["path"]), copy)
elif words[1] == "remove":
    shutil.rmtree(copy)
"""


class Clients:
    """Stand-ins for both clients on a PATH of their own."""

    def __init__(self, folder: Path):
        self.folder = folder

    def put(self, name: str, program: str) -> None:
        """Make `program` the client's command."""
        script = self.folder / name
        version = bundle.__version__
        program_at(script, f"#!{sys.executable} -IS\n" + program.format(folder=str(self.folder), version=version))

    def calls(self, name: str) -> list[str]:
        """Return the questions to the client since the last look, the first words of each call."""
        path = self.folder / f"{name}.calls"
        found = lines_of(path)
        path.unlink(missing_ok=True)
        return found

    def gate(self, call: str) -> Path:
        """Have Claude Code's `call` wait until the pipe that is returned is read from."""
        path = self.folder / f"claude.{call}"
        os.mkfifo(path)
        return path


@pytest.fixture
def clients(bin_folder: Path) -> Clients:
    made = Clients(bin_folder)
    made.put("claude", CLAUDE)
    made.put("codex", CODEX)
    return made


def test_each_client_is_started_as_seldom_as_can_be(ground: Ground, clients: Clients) -> None:
    def asked(*words: str, code: int = 0) -> tuple[list[str], list[str]]:
        done = ground.swarm(*words)
        assert done.code == code, done
        return clients.calls("claude"), clients.calls("codex")

    claude, codex = asked("install")
    assert claude == ["install swarm", "list"]
    assert len(codex) == 4 and codex[-1] == "app-server"
    claude, codex = asked("install")
    assert claude == ["list"] and len(codex) == 2, "nothing was to be done"
    claude, codex = asked("doctor")
    assert (claude[0], len(claude), codex) == ("list", 2, ["app-server", "--version"]), "and once for their releases"
    claude, codex = asked("uninstall")
    assert claude == ["marketplace remove"] and len(codex) == 3
    assert not marketplace_folder().exists()
    claude, codex = asked("uninstall")
    assert claude == ["marketplace remove"] and len(codex) == 2


def test_there_is_a_store_before_the_first_check(ground: Ground, clients: Clients) -> None:
    store = Path(store_path())
    assert ground.swarm("install", "--dry-run").code == 0 and not store.exists()
    assert ground.swarm("install").code == 0 and store.is_file()
    store.write_text("no database")
    assert ground.swarm("install").code == 0 and store.read_text() == "no database"
    assert "not a database" in ground.swarm("doctor").out


def test_each_client_s_own_files_tell_which_release_it_had(ground: Ground, clients: Clients) -> None:
    """And nothing is made of files in another form."""
    home = Path(os.environ["HOME"])
    claude = Path(os.environ["CLAUDE_CONFIG_DIR"], "plugins", "installed_plugins.json")
    codex = Path(os.environ["CODEX_HOME"], "plugins/cache/swarm/swarm/0.0.9/.codex-plugin/plugin.json")
    pi, hs = home / ".pi/agent/settings.json", home / ".harness/plugins/swarm/install.json"
    package = home / "package/package.json"
    everyone = [runtime(name) for name in NAMES]
    assert [client.version() for client in everyone] == [""] * len(everyone)
    for path, tree in {
        claude: {
            "plugins": {"swarm@swarm": [{"scope": "project", "version": "9"}, {"scope": "user", "version": "0.0.6"}]}
        },
        codex: {"version": "0.0.7"},
        pi: {"packages": [str(package.parent)]},
        package: {"name": "swarm-mcp", "version": "0.0.8"},
        hs: {"name": "swarm", "version": "0.0.9", "files": ["x"]},
    }.items():
        text_at(path, json.dumps(tree))
    found = {client.name: client.version() for client in everyone if client.version()}
    assert found == {"claude-code": "0.0.6", "codex": "0.0.7", "pi": "0.0.8", "hs": "0.0.9"}
    for text in (
        "{",
        "[]",
        '{"plugins": []}',
        '{"plugins": {"swarm@swarm": []}}',
        '{"plugins": {"swarm@swarm": {"a": 1}}}',
    ):
        for path in (claude, codex, pi, hs):
            path.write_text(text)
        assert [client.version() for client in everyone] == [""] * len(everyone), text


def test_an_upgrade_is_told_once(ground: Ground, clients: Clients) -> None:
    assert "Changes" not in ground.swarm("install", "--client", "codex").out
    manifest = Path(os.environ["CODEX_HOME"], "plugins/cache/swarm/swarm/1/.codex-plugin/plugin.json")
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "version": "0.0.1"}))
    done = ground.swarm("install", "--client", "codex")
    assert "Codex had 0.0.1. Changes:\n  Changed: " in done.out, done
    told = ground.swarm("install", "--client", "codex", "--json").json
    assert told["upgrade"] is None


def test_clients_that_are_not_here_are_named(ground: Ground, clients: Clients) -> None:
    told = ground.swarm("install", "--json").json
    assert [one["client"] for one in told["results"]] == ["claude-code", "codex"]
    assert told["absent"] == [name for name in NAMES if name not in ("claude-code", "codex")]
    for words in (["install"], ["install", "--dry-run"]):
        assert re.search(r"Not found on PATH, and left alone: .*pi \(pi\)", ground.swarm(*words).out)
    assert "Not found" not in ground.swarm("install", "--client", "codex").out


@pytest.mark.parametrize("other", ["an earlier release", "another marketplace of the name"])
def test_what_one_call_cannot_do_is_done_step_by_step(ground: Ground, clients: Clients, other: str) -> None:
    taken = other.startswith("another")
    if taken:
        settings = Path(os.environ["CLAUDE_CONFIG_DIR"], "settings.json")
        text_at(settings, json.dumps({"place": "/theirs", "plugins": []}))
    else:
        (clients.folder / "earlier").touch()
    (result,) = ground.swarm("install", "--client", "claude-code", "--json").json["results"]
    assert result["ok"], result
    removed = ["marketplace remove"] if taken else []
    assert clients.calls("claude") == [
        "install swarm", "marketplace list", *removed, "marketplace add", "install swarm@swarm", "list",
    ]  # fmt: skip
    told = [f"added the marketplace {marketplace_folder()}", "installed swarm@swarm"]
    assert result["steps"][-3:-1] == told and "canary lock" in result["steps"][-1]


def test_a_client_that_runs_a_copy_gets_a_new_one(ground: Ground, clients: Clients) -> None:
    (clients.folder / "copies").touch()
    assert ground.swarm("install", "--client", "claude-code").code == 0
    clients.calls("claude")
    assert ground.swarm("install", "--client", "claude-code").code == 0
    assert not {"uninstall swarm@swarm", "install swarm@swarm"} & set(clients.calls("claude")), "it is current"
    copied = Path(os.environ["CLAUDE_CONFIG_DIR"], "copy", "integrations", "hook.sh")
    copied.write_text("# as an earlier build had it\n")
    (look,) = [found for found in doctor(ground) if found["name"] == "claude-code plugin"]
    assert (look["status"], look["mend"]) == ("warn", "swarm-mcp install --client claude-code")
    assert ground.swarm("install", "--client", "claude-code").code == 0
    assert copied.read_bytes() == (marketplace_folder() / "integrations" / "hook.sh").read_bytes()


def test_a_release_that_is_too_old_is_refused_by_name(ground: Ground, clients: Clients) -> None:
    oldest = runtime("claude-code").oldest
    assert ground.swarm("install", "--client", "claude-code").code == 0
    (clients.folder / "old").write_text("2.0.30 (Claude Code)")
    (plugin,) = [found for found in doctor(ground) if found["name"] == "claude-code plugin"]
    assert plugin["status"] == "fail" and oldest in plugin["mend"], plugin
    done = ground.swarm("install", "--client", "claude-code")
    assert done.code == 1 and f"update Claude Code: {oldest} is the oldest release" in done.out, done


def test_a_release_that_takes_the_plugin_and_runs_no_hook_is_refused_by_name(ground: Ground, clients: Clients) -> None:
    program = program_at(clients.folder / "qwen", "#!/bin/sh\necho 0.23.3\n")
    done = ground.swarm("install", "--client", "qwen")
    assert done.code == 1 and f"update Qwen Code: {runtime('qwen').oldest} is the oldest release" in done.out, done
    assert not Path(os.environ["HOME"], ".qwen").exists()
    program.write_text(f"#!/bin/sh\necho {runtime('qwen').oldest}\n")
    assert ground.swarm("install", "--client", "qwen").code == 0


def test_doctor_warns_of_a_release_older_than_the_oldest_that_works(clients: Clients) -> None:
    client = runtime("claude-code")
    for release, is_old in (("2.0.30", True), ("2.1.99", True), (client.oldest, False), ("2.1.197", False)):
        (clients.folder / "old").write_text(f"{release} (Claude Code)")
        found = enforcement.coverage(client)
        assert (found.status == "warn", client.oldest in found.mend) == (is_old, is_old), found


def doctor(ground: Ground) -> list[dict[str, Any]]:
    """Return the checks of doctor."""
    return list(ground.swarm("doctor", "--json").json["checks"])


def test_a_client_that_keeps_the_plugin_of_a_removed_marketplace_is_asked_again(
    ground: Ground, clients: Clients
) -> None:
    (clients.folder / "keeps").touch()
    assert ground.swarm("install", "--client", "claude-code").code == 0
    clients.calls("claude")
    (result,) = ground.swarm("uninstall", "--client", "claude-code", "--json").json["results"]
    assert result["steps"] == ["uninstalled swarm@swarm", "removed the marketplace"]
    assert clients.calls("claude") == ["marketplace remove", "uninstall swarm@swarm"]
    assert not runtime("claude-code").traces()


@pytest.mark.parametrize("earlier", ["the folder beside", "the whole folder"])
def test_codex_is_brought_over_from_where_an_earlier_release_put_its_plugin(
    ground: Ground, clients: Clients, earlier: str
) -> None:
    """One release gave it a marketplace of its own, those before gave it all of the marketplace folder."""
    marketplace = marketplace_folder()
    assert ground.swarm("install", "--client", "codex").code == 0
    beside = marketplace.with_name("codex-plugin")
    home = Path(os.environ["CODEX_HOME"])
    state, copy = home / "state", home / "plugins/cache/swarm/swarm/1"
    if earlier == "the folder beside":
        files = {**files_of(marketplace), ".agents/plugins/marketplace.json": b"{}"}
        put_folder(beside, {**files, RECORD: json.dumps({"name": "swarm", "files": sorted(files)}).encode()})
        state.write_text(json.dumps({**json.loads(state.read_text()), "place": str(beside)}))
        shutil.rmtree(copy)
        shutil.copytree(beside, copy)
    else:
        shutil.rmtree(copy)
        shutil.copytree(marketplace, copy)
    (result,) = ground.swarm("install", "--client", "codex", "--json").json["results"]
    assert result["ok"], result
    assert json.loads(state.read_text())["place"] == str(marketplace) and not beside.exists()
    assert not list(copy.rglob("*.py"))
    # Its own copy is the same where it came from the folder beside: running sessions keep their hooks.
    assert ("installed swarm@swarm" in result["steps"]) is (earlier == "the whole folder")
    statuses = {check["name"]: check["status"] for check in ground.swarm("doctor", "--json").json["checks"]}
    assert statuses["codex plugin"] == statuses["codex hooks"] == "ok"


def test_uninstalling_takes_the_earlier_folder_along(ground: Ground, clients: Clients) -> None:
    assert ground.swarm("install", "--client", "codex").code == 0
    marketplace = marketplace_folder()
    beside = marketplace.with_name("codex-plugin")
    put_folder(beside, {"a": b"", RECORD: json.dumps({"name": "swarm", "files": ["a"]}).encode()})
    assert ground.swarm("uninstall").code == 0
    assert not beside.exists() and not marketplace.exists()


@pytest.mark.parametrize("broken", ["claude", "codex"])
def test_what_goes_wrong_in_one_client_keeps_the_other_from_nothing(
    ground: Ground, clients: Clients, broken: str
) -> None:
    clients.put(broken, "import sys; sys.exit('cannot start')")
    done = ground.swarm("install")
    failed, fine = ("Claude Code", "Codex") if broken == "claude" else ("Codex", "Claude Code")
    assert done.code == 1
    (told,) = [line for line in done.out.splitlines() if line.startswith(f"{failed}: FAILED: ")]
    assert told.startswith(f"{failed}: FAILED: `{broken} plugin marketplace ") and told.endswith(": cannot start")
    assert f"{fine}: done; sessions started from now on take part" in done.out
    results = {result["client"]: result for result in ground.swarm("install", "--json").json["results"]}
    assert [result["ok"] for result in results.values()] == [broken != "claude", broken != "codex"]
    assert list(results) == ["claude-code", "codex"]


class Running:
    """The command in a process of its own, its lines read as they come out of the pipe."""

    def __init__(self, ground: Ground, *words: str):
        self.process = subprocess.Popen(
            [*SWARM, *words], cwd=ground.repo, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )  # fmt: skip
        self.lines: list[str] = []
        self._rest = b""

    def until(self, wanted: Callable[[list[str]], bool]) -> None:
        """Read on until the lines are as `wanted`."""
        assert self.process.stdout
        end = time.monotonic() + PATIENCE
        while not wanted(self.lines):
            assert select.select([self.process.stdout], [], [], max(0, end - time.monotonic()))[0], self.lines
            read = os.read(self.process.stdout.fileno(), 65536)
            assert read, f"it has ended: {self.lines}"
            *whole, self._rest = (self._rest + read).split(b"\n")
            self.lines += [line.decode() for line in whole]

    def ended(self) -> int:
        """Read to the end; the exit code."""
        out, _ = self.process.communicate(timeout=PATIENCE)
        self.lines += (self._rest + out).decode().splitlines()
        return self.process.returncode


@pytest.fixture
def running(ground: Ground, clients: Clients) -> Iterator[Callable[..., Running]]:
    started: list[Running] = []
    ground.swarm("install", "--client", "codex")  # compiles the plugin, in this process
    clients.calls("codex")

    def start(*words: str) -> Running:
        started.append(Running(ground, *words))
        return started[-1]

    yield start
    for one in started:
        one.process.kill()
        one.process.communicate()


def test_steps_are_said_as_they_happen_also_in_a_pipe(clients: Clients, running: Callable[..., Running]) -> None:
    gate = clients.gate("install")
    command = running("install")
    # Codex is done while Claude Code is still at it, and both have been said.
    command.until(lambda lines: "Codex: done; sessions started from now on take part" in lines)
    command.until(lambda lines: any(INSTALLING in line for line in lines))
    assert "Claude Code: installed swarm@swarm" not in command.lines
    gate.read_bytes()
    assert command.ended() == 0
    ours = [line for line in command.lines if line.startswith("Claude Code: ")]
    at = ours.index(next(line for line in ours if INSTALLING in line))
    assert ours[at + 2] == "Claude Code: installed swarm@swarm" and "asking which plugins it has" in ours[at + 3]


def test_a_killed_installation_is_mended_by_the_next(
    ground: Ground, clients: Clients, running: Callable[..., Running]
) -> None:
    gate = clients.gate("install")
    command = running("install")
    command.until(lambda lines: any(INSTALLING in line for line in lines))
    command.process.send_signal(signal.SIGKILL)
    command.ended()
    gate.unlink()
    done = ground.swarm("install", "--json")
    assert done.code == 0 and all(result["ok"] for result in done.json["results"]), done


@pytest.mark.usefixtures("usual_signals")
def test_interrupted_it_says_what_to_do(clients: Clients, running: Callable[..., Running]) -> None:
    gate = clients.gate("install")
    command = running("install")
    command.until(lambda lines: any(INSTALLING in line for line in lines))
    command.process.send_signal(signal.SIGINT)
    gate.read_bytes()  # a step that has begun is finished
    assert command.ended() == 130
    assert command.lines[-1] == "swarm-mcp install: interrupted; run it again to finish"
    assert "Claude Code: done; sessions started from now on take part" not in command.lines


def test_leaving_early_finishes_the_step_and_begins_no_other() -> None:
    begun, finished = threading.Event(), threading.Event()

    def work(client: base.Runtime, tell: Callable[[str], None]) -> None:
        tell("first")
        begun.set()
        # Only its end shows that the block is left: the next word is one too many.
        with pytest.raises(Interrupted):
            while True:
                tell("second")
        finished.set()

    with pytest.raises(KeyboardInterrupt), SideBySide([runtime("pi")], work) as working:
        next(working.told())
        begun.wait(PATIENCE)
        raise KeyboardInterrupt
    assert finished.is_set(), "the block's end waits for the work"


def test_what_the_work_raises_comes_out() -> None:
    def work(client: base.Runtime, tell: Callable[[str], None]) -> None:
        tell("first")
        raise ZeroDivisionError

    with SideBySide([runtime("pi")], work) as working:
        told = working.told()
        assert next(told) == (runtime("pi"), "first")
        with pytest.raises(ZeroDivisionError):
            next(told)


def test_a_client_that_hangs_is_given_up_with_what_it_has_started(clients: Clients, limits: Limits) -> None:
    """The clients' commands are launchers: a child of theirs hangs."""
    program = clients.folder / "pi"
    started = clients.folder / "started"
    program_at(program, f"#!/bin/sh\nsleep 1000 &\necho $! > {started}\ntrap 'kill $!; exit 1' TERM\nwait\n")
    limits(base, COMMAND_SECONDS=5.0)  # it must have started
    with pytest.raises(
        ClientFailed, match=r"`pi install /m` did not end within 5 s and was given up; start it by hand"
    ):
        runtime("pi").install(Path("/m"), Steps())
    assert gone_within([int(started.read_text())], PATIENCE), "what it had started goes on"


def test_modules_that_are_compiled_already_stay_so(tmp_path: Path) -> None:
    target = tmp_path / "m"
    bundle.write(target, local=True)

    def compiled() -> dict[Path, Any]:
        return {path: (path.stat().st_ino, path.read_bytes()[:16]) for path in target.rglob("*.pyc")}

    before = compiled()
    assert len(before) > 30
    bundle.write(target, local=True)
    assert compiled() == before
    gone, foreign, *_ = sorted(before)
    gone.unlink()
    foreign.write_bytes(foreign.read_bytes()[:4] + bytes(12))  # as Python itself compiles it, by the source's time
    bundle.write(target, local=True)
    assert {path: head for path, (_, head) in compiled().items()} == {path: head for path, (_, head) in before.items()}
    assert len([path for path, found in compiled().items() if found != before[path]]) <= 2
    (target / "swarm_hook_core/paths.py").unlink()
    bundle.write(target, local=True)
    assert compiled().keys() == before.keys()
    assert json.loads((target / "install.json").read_text())["files"]
