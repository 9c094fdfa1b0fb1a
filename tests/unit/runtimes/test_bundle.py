"""The marketplace folder: whole, current, self-sufficient, and gone without a trace."""

import getpass
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
import venv
from pathlib import Path

import pytest
from support.fixtures import FOLDERS, Ground
from support.patience import raise_limits
from support.requirement import requirement
from support.sessions import said_by

import swarm_hook_core
import swarm_mcp
from swarm_hook_core import denial
from swarm_mcp.errors import SwarmError
from swarm_mcp.installation import interpreter
from swarm_mcp.runtimes import bundle, users_file
from swarm_mcp.runtimes.users_file import read_record, remove_folder

pytestmark = [pytest.mark.slow, pytest.mark.thorough]

HS = "integrations/hs"
CHECKOUT = Path(__file__).resolve().parents[3]
RUNTIMES = ("claude-code", "codex", "pi")
ROOTS = {"pi": "SWARM_PLUGIN_ROOT"}  # the variable that commands find the plugin by, else CLAUDE_PLUGIN_ROOT
EVENTS = {"SessionStart", "SessionEnd", "PreToolUse", "PostToolUse", "UserPromptSubmit", "Stop"}
FAILED, SUBAGENTS = {"PostToolUseFailure"}, {"SubagentStart", "SubagentStop"}
# Codex has no event for a call that failed, pi has no subagents. Codex alone tells of a turn that is interrupted, and
# Claude Code that it is idle or that an error ended it: some turns' ends show by nothing else.
MORE = {
    "claude-code": FAILED | SUBAGENTS | {"Notification", "StopFailure", "ConfigChange"},
    "codex": SUBAGENTS | {"Interrupt"},
    "pi": FAILED,
}


# A call of each that writes held.py.
CALLS = {
    "claude-code": ("Write", {"file_path": "held.py", "content": "x"}),
    "codex": ("apply_patch", {"command": "*** Begin Patch\n*** Add File: held.py\n+x\n*** End Patch\n"}),
    "pi": ("write", {"path": "@held.py", "content": "x"}),
}


def tree(folder: Path) -> dict[str, bytes]:
    """Every file below `folder`, compiled modules aside."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def commands(folder: Path, runtime: str) -> dict[str, str]:
    """The shell command of each event."""
    wired = json.loads((folder / "integrations" / runtime / "hooks.json").read_text())["hooks"]
    return {event: groups[0]["hooks"][0]["command"] for event, groups in wired.items()}


def server(folder: Path, runtime: str) -> dict:
    return json.loads((folder / "integrations" / runtime / "mcp.json").read_text())["mcpServers"]["swarm"]


@pytest.fixture(params=[False, True], ids=["portable", "local"])
def bundled(request, tmp_path: Path) -> Path:
    """A bundle outside of everything."""
    folder = tmp_path / "a bundle"
    assert bundle.write(folder, local=request.param) is True
    return folder


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, Path]:
    """A portable bundle and a local one (True), for tests that only read them."""
    folders = {local: tmp_path_factory.mktemp("kept").resolve() / "a bundle" for local in (False, True)}
    for local, folder in folders.items():
        assert bundle.write(folder, local=local) is True
    return folders


@pytest.fixture(params=[False, True], ids=["portable", "local"])
def kept(request, bundles: dict[bool, Path]) -> Path:
    """Each of them."""
    return bundles[request.param]


def test_a_bundle_is_whole(kept: Path):
    """The bundle has every runtime's files, and the scripts that sessions of earlier releases still start."""
    files, record = set(tree(kept)), read_record(kept)
    parts = (".claude-plugin", ".codex-plugin", ".github/plugin", ".agents", "integrations", "skills")
    whole = {f"{part}/{name}" for part in parts for name in tree(CHECKOUT / part)}
    whole = {name for name in whole if not name.endswith("/README.md")}  # for readers of the repository
    whole -= {"integrations/git/guard.sh", "integrations/pi/package.json"}
    whole |= {f"swarm_hook_core/{name}" for name in tree(Path(swarm_hook_core.__file__).parent) if name.endswith(".py")}
    earlier = {f"integrations/{runtime}/hooks/pre_tool_use.py" for runtime in RUNTIMES}
    earlier |= {name.replace(HS, "integrations/harness") for name in whole if name.startswith(f"{HS}/")}
    local = "python" in record
    launcher = {"bin/swarm-mcp"} if local else set()
    small = {name for name in files if name.startswith("codex/")}
    assert {name.removeprefix("codex/") for name in small} <= whole and bool(small) is local
    made = {"integrations/gemini/hooks/hooks.json", "integrations/gemini/commands/swarm.toml"}
    made |= {f"integrations/gemini/{name}" for name in whole if name.startswith("skills/")}
    at_root = {"LICENSE", "install.json", "package.json", "qwen-extension.json", "kimi.plugin.json"}
    assert files == whole | earlier | launcher | small | made | at_root
    assert any(name.endswith("/SKILL.md") for name in files)
    assert (record["name"], record["version"]) == ("swarm", swarm_mcp.__version__)
    assert sorted([*record["files"], "install.json"]) == sorted(files)


@requirement("P-05")
def test_manifests_point_at_what_is_there(kept: Path):
    for manifest in (".claude-plugin/plugin.json", ".codex-plugin/plugin.json", ".github/plugin/plugin.json"):
        told = json.loads((kept / manifest).read_text())
        assert (told["name"], told["version"]) == ("swarm", swarm_mcp.__version__)
        named = [value for value in told.values() if isinstance(value, str) and value.startswith("./")]
        named += [
            item for value in told.values() if isinstance(value, list) for item in value if str(item).startswith("./")
        ]
        assert named and all((kept / path).exists() for path in named), named
    package = json.loads((kept / "package.json").read_text())
    assert package["version"] == swarm_mcp.__version__ and not package.get("dependencies")
    assert all((kept / path).exists() for paths in package["pi"].values() for path in paths)
    for marketplace in (".claude-plugin/marketplace.json", ".agents/plugins/marketplace.json"):
        told = json.loads((kept / marketplace).read_text())
        assert told["name"] == "swarm" and [plugin["name"] for plugin in told["plugins"]] == ["swarm"]
    (plugin,) = told["plugins"]
    assert plugin["source"]["path"] == ("./codex/" if read_record(kept).get("python") else "./")
    assert (kept / plugin["source"]["path"] / ".codex-plugin/plugin.json").is_file()


def test_every_wired_script_is_there_and_a_missing_one_denies_nothing(kept: Path):
    for runtime in RUNTIMES:
        wired = commands(kept, runtime)
        assert set(wired) == EVENTS | MORE[runtime]
        for event, command in wired.items():
            names = [
                part.split('"', 1)[0] for part in command.split(f"${{{ROOTS.get(runtime, 'CLAUDE_PLUGIN_ROOT')}}}/")[1:]
            ]
            assert names and all((kept / name).is_file() for name in names)
            direct = {"PreToolUse": bundle.ENTRY, "PostToolUse": bundle.STATE, "PostToolUseFailure": bundle.STATE}
            first = direct.get(event) if read_record(kept).get("python") else None
            assert names[0] == (first or bundle.HOOK), "a check around a call starts Python at once where it can"
            assert command.endswith("; exit 0")


@pytest.mark.parametrize(
    "left", [(), (bundle.HOOK,), (bundle.HOOK, bundle.ENTRY)], ids=lambda names: f"{len(names)} left"
)
def test_a_call_passes_in_silence_where_the_plugin_has_gone(tmp_path: Path, kept: Path, left: tuple[str, ...]):
    """No status of a shell or of Python reaches the client as a denial, even if files are missing."""
    root = tmp_path / "rest"
    for name in left:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(kept / name, root / name)
    for runtime in RUNTIMES:
        for event, command in commands(kept, runtime).items():
            if event.startswith(("PreToolUse", "PostToolUse")):
                env = {**os.environ, ROOTS.get(runtime, "CLAUDE_PLUGIN_ROOT"): str(root)}
                done = subprocess.run(
                    ["/bin/sh", "-c", command], input="{}", capture_output=True, text=True, env=env, timeout=60
                )
                assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), (runtime, event, done)


def test_no_links_and_nothing_but_files(kept: Path):
    for path in kept.rglob("*"):
        assert not path.is_symlink() and (path.is_file() or path.is_dir()), path
    assert not [path for path in kept.rglob("*") if path.name.endswith(".tmp")]


def test_the_portable_one_starts_everything_by_name_and_knows_no_machine(bundles: dict[bool, Path]):
    folder = bundles[False]
    for runtime in RUNTIMES:
        assert all("/bin/sh" in command and " -E " not in command for command in commands(folder, runtime).values())
        launcher, *words = server(folder, runtime)["args"]
        assert (server(folder, runtime)["command"], words) == ("/bin/sh", ["serve"]) and launcher.endswith(
            bundle.COORDINATOR
        )
    mine = [str(CHECKOUT), sys.executable, os.path.realpath(sys.executable), str(folder), os.path.expanduser("~")]
    mine += ["/home/", "/Users/", "/root/"]
    # An ordinary word, as the sources use it themselves, may be a prefix (/usr) or a machine's or a person's name.
    sources = b"".join(
        path.read_bytes() for path in CHECKOUT.glob("*/**/*") if path.suffix in (".py", ".md", ".json", ".sh")
    )
    names = [sys.prefix, sys.base_prefix, socket.gethostname(), f"/{getpass.getuser()}/"]
    mine += [name for name in names if name.encode() not in sources]
    for name, content in tree(folder).items():
        found = [word for word in mine if len(word) > 3 and word.encode() in content]
        assert not found, f"{name} names {found}"
    assert not list(folder.rglob("__pycache__"))


def test_the_local_one_names_real_paths(bundles: dict[bool, Path]):
    folder = bundles[True]
    record = read_record(folder)
    real = record["python"]
    assert os.path.isabs(real) and os.access(real, os.X_OK) and os.path.realpath(real) == real
    for runtime in RUNTIMES:
        wired = commands(folder, runtime)
        assert f" && exec {real} -E -s -S " in wired.pop("PreToolUse")
        assert all(command.endswith(f" {real}; exit 0") for command in wired.values())
        told = server(folder, runtime)
        assert os.access(told["command"], os.X_OK) and told["args"][-1] == "serve"
    for program in (record["coordinator"], [str(folder / "bin" / "swarm-mcp")]):
        told = subprocess.run([*program, "--version"], capture_output=True, text=True, cwd="/", env={}, timeout=60)
        assert told.stdout == f"swarm-mcp {swarm_mcp.__version__}\n", told
    compiled = [list((path.parent / "__pycache__").glob(f"{path.stem}.*.pyc")) for path in folder.rglob("*.py")]
    assert all(compiled)


def test_two_bundles_are_the_same_bytes(tmp_path: Path, bundles: dict[bool, Path]):
    """They differ only in the place of a local one, because the hooks that Codex copies name it."""
    for local, left in bundles.items():
        right = tmp_path / f"{local}" / left.name  # with a blank, too: it is quoted
        bundle.write(right, local)
        names = {name: content.replace(bytes(right), bytes(left)) for name, content in tree(right).items()}
        assert tree(left) == names


def earlier_checks(folder: Path, runtime: str) -> list[str]:
    """The checks that the release before `hook.py` wired, portable and local."""
    script = f'"{folder}/integrations/{runtime}/hooks/pre_tool_use.py"; exit 0'
    return [f'/bin/sh "{folder}/{bundle.HOOK}" {script}', f"{interpreter()} -E -s -S {script}"]


@pytest.mark.parametrize("runtime", RUNTIMES)
@requirement("P-01")
def test_hooks_run_from_it_without_the_checkout(ground: Ground, kept: Path, runtime: str):
    session = ground.session("mine", "me", runtime=runtime)
    ground.lock(ground.session("peer", "peer"), "held.py", "because")
    moved = ground.folder / "moved"
    shutil.copytree(kept, moved, ignore=shutil.ignore_patterns("__pycache__"))  # as a client copies it
    raise_limits(moved, moved)
    tool, tool_input = CALLS[runtime]
    environment = {name: os.environ[name] for name in ("HOME", "PATH", "SWARM_STATE_DIR")}
    environment.update({"SWARM_DB_PATH": ground.database, "PYTHONDONTWRITEBYTECODE": "1"})
    environment[ROOTS.get(runtime, "CLAUDE_PLUGIN_ROOT")] = str(moved)

    def run(command: str, event: str = "PreToolUse") -> str:
        payload = {"session_id": "mine", "cwd": ground.scope, "hook_event_name": event, "tool_name": tool,
                   "tool_input": tool_input, "source": "startup"}  # fmt: skip
        return said_by(command, payload, cwd="/", env=environment)

    wired = commands(moved, runtime)
    earlier_start = earlier_checks(moved, runtime)[0].replace("pre_tool_use", "session_start")
    assert "registered as" in run(earlier_start, "SessionStart")
    ground.backdate(session, 100)
    ends_at = time.time()
    assert run(wired["Stop"], "Stop") == ""
    (seen,) = ground.sql("SELECT last_seen FROM swarm_sessions WHERE instance_id = ?", session["id"])
    assert seen["last_seen"] >= int(ends_at)
    # And those of sessions that have begun before an upgrade. Last: what records a denial is at the store in the background,
    # and a coordinator waits only a moment for that.
    for check in (wired["PreToolUse"], *earlier_checks(moved, runtime)):
        answer = json.loads(run(check))["hookSpecificOutput"]
        Path(denial.counts_path()).unlink(missing_ok=True)  # a third denial has other words
        assert answer["permissionDecision"] == "deny" and "because" in answer["permissionDecisionReason"]
    faults = Path(os.environ["SWARM_STATE_DIR"], "faults.jsonl")
    assert not faults.exists(), faults.read_text()


def test_writing_again_changes_nothing(bundled: Path):
    local = "python" in read_record(bundled)

    def stamps() -> dict[Path, tuple[int, int]]:
        files = [path for path in bundled.rglob("*") if path.is_file() and path.suffix != ".pyc"]
        return {path: (path.stat().st_mtime_ns, path.stat().st_ino) for path in files}

    before = stamps()
    assert bundle.write(bundled, local=local) is False
    assert stamps() == before


def test_an_upgrade_brings_what_is_new_and_drops_what_is_not_part_of_it(bundled: Path):
    wanted = tree(bundled)
    record = read_record(bundled)
    local = "python" in record
    (bundled / "swarm_hook_core/core.py").write_text("old")
    dropped = bundled / "swarm_hook_core/old/dropped.py"
    (dropped.parent / "__pycache__").mkdir(parents=True)
    dropped.write_text("was part of an older one")
    (dropped.parent / "__pycache__" / "dropped.cpython-311.pyc").write_text("compiled")
    (bundled / "notes.txt").write_text("a person's own")
    (bundled / "LICENSE").unlink()
    record["files"].append("swarm_hook_core/old/dropped.py")
    (bundled / "install.json").write_text(json.dumps(record))
    assert bundle.write(bundled, local=local) is True
    assert tree(bundled) == {**wanted, "notes.txt": b"a person's own"} and not dropped.parent.exists()


def test_an_interrupted_upgrade_is_finished_by_the_next(bundled: Path, monkeypatch):
    wanted, local = tree(bundled), "python" in read_record(bundled)
    for name in ("swarm_hook_core/core.py", "skills/swarm-mcp/SKILL.md"):
        (bundled / name).write_text("old")
    compiled = bundled / "swarm_hook_core/__pycache__/core.cpython-311.pyc"
    compiled.parent.mkdir(exist_ok=True)
    compiled.write_bytes(b"what the old one was compiled to, which Python would take as it is")
    real, calls = users_file._replace, []

    def dying(path: Path, content: bytes) -> bool:
        calls.append(path)
        done = real(path, content)
        if path.name == "core.py":
            raise KeyboardInterrupt
        return done

    monkeypatch.setattr(users_file, "_replace", dying)
    with pytest.raises(KeyboardInterrupt):
        bundle.write(bundled, local=local)
    assert len(calls) > 1 and not compiled.exists()
    monkeypatch.undo()
    bundle.write(bundled, local=local)
    assert tree(bundled) == wanted


@pytest.mark.thorough
def test_there_is_no_moment_without_a_script(tmp_path: Path):
    folder = tmp_path / "running"
    in_both: list[set[Path]] = []
    for local in (False, True):
        bundle.write(folder, local=local)
        found = (path for path in folder.rglob("*") if path.suffix in (".py", ".json"))
        in_both.append({path for path in found if path.name != "install.json"})
    watched = sorted(set.intersection(*in_both))
    missing, stop, rounds = [], threading.Event(), [0]

    def watch() -> None:
        while not stop.is_set():
            for path in watched:
                try:
                    if not path.read_bytes():
                        missing.append(f"{path} was empty")
                except OSError as error:
                    missing.append(str(error))
            rounds[0] += 1

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        for turn in range(6):
            for path in watched:
                scratch = path.with_name("scratch")
                scratch.write_bytes(path.read_bytes() + b" ")
                os.replace(scratch, path)
            assert bundle.write(folder, local=turn % 2 == 0) is True
    finally:
        stop.set()
        watcher.join()
    assert not missing and rounds[0] > 3, missing[:5]


@pytest.mark.parametrize("name", ["LICENSE", "install.json", "swarm_hook_core/core.py"])
def test_foreign_files_are_refused_whole(tmp_path: Path, name: str):
    folder = tmp_path / "theirs"
    (folder / name).parent.mkdir(parents=True)
    (folder / name).write_text('{"mine": 1}')
    with pytest.raises(SwarmError) as error:
        bundle.write(folder)
    assert name in str(error.value)
    assert tree(folder) == {name: b'{"mine": 1}'}
    assert remove_folder(folder) is False and tree(folder) == {name: b'{"mine": 1}'}
    assert bundle.write(folder, force=True) is True


def test_other_files_in_the_folder_are_left_alone(tmp_path: Path):
    folder = tmp_path / "theirs"
    (folder / ".git").mkdir(parents=True)
    (folder / ".git" / "HEAD").write_text("ref")
    (folder / "README").write_text("r")
    bundle.write(folder)
    assert remove_folder(folder) is True
    assert tree(folder) == {".git/HEAD": b"ref", "README": b"r"}


@pytest.mark.parametrize(
    "record",
    [
        *('{"name": "swarm", "files": [NAMES]}'.replace("NAMES", name)
          for name in ('"../victim"', '"<victim>"', "5, null", '"a/../../victim"', '"/victim"', '""')),
        '{"files": 5}', "[]", "{",
    ],
)  # fmt: skip
def test_a_record_cannot_reach_outside_the_folder(ground: Ground, record: str):
    folder, victim = ground.folder / "bundle", ground.folder / "victim"
    folder.mkdir()
    victim.write_text("v")
    (folder / "install.json").write_text(record.replace("<victim>", str(victim)))
    done = ground.swarm("bundle", str(folder), "--force")
    assert done.code in (0, 1) and "internal error" not in done.err, done
    (folder / "install.json").write_text(record.replace("<victim>", str(victim)))
    remove_folder(folder)
    assert victim.read_text() == "v"


def test_links_in_the_way_are_not_followed(tmp_path: Path):
    folder, outside = tmp_path / "bundle", tmp_path / "outside"
    bundle.write(folder)
    outside.write_text("o")
    (folder / "LICENSE").unlink()
    (folder / "LICENSE").symlink_to(outside)
    bundle.write(folder, force=True)
    assert outside.read_text() == "o" and not (folder / "LICENSE").is_symlink()


def test_removal_leaves_nothing(bundled: Path):
    assert remove_folder(bundled) is True
    assert not bundled.exists()
    assert remove_folder(bundled) is False


def test_the_command_writes_one(ground: Ground):
    done = ground.swarm("bundle", "rel/b", "--json")
    assert done.json["changed"] is True and done.json["directory"] == f"{ground.scope}/rel/b"
    assert sorted([*done.json["files"], "install.json"]) == sorted(tree(ground.repo / "rel" / "b"))
    assert "already current" in ground.swarm("bundle", "rel/b").out
    (ground.repo / "file").write_text("")
    (ground.repo / "odd" / "LICENSE").mkdir(parents=True)
    for target in ("file", "file/b", "odd", "", "/proc/nowhere"):
        refused = ground.swarm("bundle", target)
        code = 2 - bool(target)
        assert refused.code == code and refused.err.count("\n") == 1, refused


def test_the_wheel_has_everything_and_works_alone(tmp_path: Path):
    wheels, place = tmp_path / "wheels", tmp_path / "venv"
    source = tmp_path / "source"
    ignored = shutil.ignore_patterns("__pycache__", ".git", "tests")
    shutil.copytree(CHECKOUT, source, ignore=ignored)  # a build must not touch the checkout
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "--no-cache-dir"]
    build = [*pip, "wheel", "--no-build-isolation", "--no-deps", "--no-index", str(source), "-w", str(wheels)]
    done = subprocess.run(build, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    shutil.rmtree(source)
    (wheel,) = wheels.glob("swarm_locks-*.whl")
    venv.create(place, with_pip=False)
    done = subprocess.run([*pip, "--python", str(place), "install", "--no-deps", "--no-index", str(wheel)],
                          capture_output=True, text=True, timeout=120)  # fmt: skip
    assert done.returncode == 0, done.stderr
    (site,) = place.glob("lib/python*/site-packages")
    dependencies = [folder for folder in FOLDERS if (Path(folder) / "platformdirs").is_dir()]
    (site / "dependencies.pth").write_text("\n".join(dependencies) + "\n")

    def installed(*argv: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [place / "bin" / "swarm-mcp", *argv], capture_output=True, text=True, cwd=tmp_path, timeout=60
        )

    where = [
        place / "bin" / "python",
        "-c",
        "import swarm_mcp, swarm_hook_core; print(swarm_mcp.__file__, swarm_hook_core.__file__)",
    ]
    told = subprocess.run(where, capture_output=True, text=True, cwd=tmp_path, timeout=60).stdout
    assert told.count(str(site)) == 2, told
    done = installed("bundle", str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    assert tree(tmp_path / "out") == bundle.contents(None)
    assert installed("bundle", str(tmp_path / "out"), "--local").returncode == 0
    record = read_record(tmp_path / "out")
    told = subprocess.run(
        [*record["coordinator"], "register", "--json"], capture_output=True, text=True, cwd=tmp_path, timeout=60
    )
    assert told.returncode == 0 and json.loads(told.stdout)["id"], told
    assert str(CHECKOUT) not in json.dumps(record)
