"""The relay in C, in the hooks that are installed, in hooks of a repository, in `doctor`, and in a platform's wheel."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support.checkers import RELAY
from support.files import program_at
from support.sessions import new_session, peer_locks, ready_store

from swarm_hook_core import __version__
from swarm_hook_core.process import start_time
from swarm_mcp import installation
from swarm_mcp.checker import checkers_dir
from swarm_mcp.doctor import enforcement, own_checks
from swarm_mcp.doctor.own_checks import Asked
from swarm_mcp.runtimes import bundle, runtime
from swarm_mcp.runtimes.installed import Installed

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[3]
HOOK = ROOT / "integrations" / "hook.sh"
ASKED = Asked("", ())
CLIENTS = ("claude-code", "codex")
WAITING = "copilot"  # a client that takes any status for a denial: a shell of its hooks waits for the relay
PASSES_ON = 'shift 3; exec "$@"'  # as a relay that finds no checker


@pytest.fixture
def relay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Put a relay with this behaviour into the installation."""
    path = tmp_path / "a folder" / "swarm_relay"
    monkeypatch.setattr(installation, "RELAY", str(path))
    return lambda body=PASSES_ON: _put(path, body)


def _put(path: Path, body: str) -> str:
    program_at(path, f"#!/bin/sh\n[ $# != 0 ] || exit 0\n{body}\n")
    return str(path)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A local bundle, and the place where its hooks look for their relay, with nothing there."""
    folder = tmp_path_factory.mktemp("installed").resolve()
    path = folder / "a folder" / "swarm_relay"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(installation, "RELAY", str(path))
        _put(path, PASSES_ON)
        bundle.write(folder / "bundle", local=True)
    path.unlink()
    return folder / "bundle", path


def checks(tmp_path: Path) -> dict[str, str]:
    """Return the command of the check before a write, by client, in a local bundle."""
    files = bundle.contents(tmp_path / "bundle")
    found = {}
    for client in (*CLIENTS, WAITING):
        hooks = json.loads(files[f"integrations/{client}/hooks.json"])["hooks"]
        found[client] = hooks["PreToolUse"][0]["hooks"][0]["command"]
    return found


def test_hooks_start_the_relay_which_can_start_the_check(tmp_path: Path, relay: Callable[..., str]) -> None:
    without = checks(tmp_path)
    path = relay()
    for client, command in checks(tmp_path).items():
        _, relayed, rest = command.partition(f"'{path}' {__version__} {client} pre_tool_use ")
        assert relayed and path not in without[client]
        alone = rest.partition(" alone")[0]
        assert alone in without[client], "it executes another check"
        if client != WAITING:
            assert command.endswith(without[client]), "without the relay all is as it was"


@pytest.mark.parametrize("fault", ["gone", "empty", "not executable"])
@pytest.mark.parametrize("client", [*CLIENTS, WAITING])
@pytest.mark.sampled
def test_a_relay_that_cannot_serve_is_passed_over(installed: tuple[Path, Path], client: str, fault: str) -> None:
    """The hook's command runs the check that it ran before there was a relay."""
    folder, path = installed
    if fault == "empty":
        path.touch(0o755)
    elif fault == "not executable":
        _put(path, "exit 0")
        path.chmod(0o644)
    try:
        proof = enforcement.prove(runtime(client), Installed(folder, f"integrations/{client}"))
    finally:
        path.unlink(missing_ok=True)
    assert proof.status == "ok", proof


def _of_another_machine(path: Path) -> None:
    path.write_bytes(b"\x7fELF\2\1\1" + bytes(9) + b"\2\0\xf7\0" + bytes(200))  # no machine executes BPF
    path.chmod(0o755)


def _unexecutable(path: Path) -> None:
    """Put a file system without the right to execute around it."""
    words = ["mount", "-t", "tmpfs", "-o", "noexec,size=1m", "none", str(path.parent)]
    if not shutil.which("mount") or subprocess.run(words, capture_output=True, check=False).returncode:
        pytest.skip("this user mounts no file system")
    program_at(path, "#!/bin/sh\nexit 0\n")


@pytest.mark.parametrize("shell", ["sh", "bash"])
@pytest.mark.parametrize("client", CLIENTS)
def test_the_end_of_a_call_is_marked_and_asks_only_if_something_waits_for_it(
    tmp_path: Path, installed: tuple[Path, Path], client: str, shell: str
) -> None:
    """By the shell that the client has started anyway."""
    folder, path = installed
    hook = next(one for one in Installed(folder, f"integrations/{client}").commands() if one.event == "PostToolUse")
    environment = {**os.environ, **hook.environment, "SWARM_STATE_DIR": str(tmp_path)}

    def ran() -> str:
        words, given = [shell, "-c", hook.command], b"x" * 300_000  # more than a pipe holds
        done = subprocess.run(words, input=given, capture_output=True, timeout=60, env=environment, check=True)
        return done.stdout.decode() + done.stderr.decode()

    _put(path, 'printf "%s " "$@"; cat >/dev/null')
    script = folder / bundle.STATE
    try:
        assert ran() == ""
        (tmp_path / "ended").mkdir()
        assert ran() == "" and [path.name for path in (tmp_path / "ended").iterdir()] == [str(os.getpid())]
        for name in ("watched", "unheard", "awaited"):
            (tmp_path / name).mkdir()
            assert ran().startswith(f"{__version__} {client} post_tool_use ")
            (tmp_path / name).rmdir()
        script.rename(folder / "away")
        assert ran().startswith(f"{__version__} {client} post_tool_use "), "a check too many, without it"
    finally:
        path.unlink()
        if (folder / "away").exists():
            (folder / "away").rename(script)


UNUSABLE = {
    "of another machine": _of_another_machine,
    "empty": lambda path: path.touch(0o755),
    "a folder": lambda path: path.mkdir(),
    "on a file system without execution": _unexecutable,
}


@pytest.mark.parametrize("shell", ["sh", "bash", "dash", "busybox"])
@pytest.mark.parametrize("hook", ["codex", WAITING, "noted"])
@pytest.mark.parametrize("fault", UNUSABLE)
@pytest.mark.thorough
def test_a_relay_that_cannot_be_executed_leaves_the_payload_to_the_check_in_silence(
    tmp_path: Path, installed: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, fault: str, hook: str, shell: str
) -> None:
    """As in a home that machines share. `noted`: a repository's own hook reads the path from a note."""
    if not shutil.which(shell):
        pytest.skip(f"no {shell}")
    ready_store()
    folder, path = installed
    client = "codex" if hook == "noted" else hook
    me, work = new_session(), tmp_path / "work"
    (work / ".git").mkdir(parents=True)
    command = next(one for one in Installed(folder, f"integrations/{client}").commands() if one.event == "PreToolUse")
    shells = [shell, *["sh"] * (shell == "busybox")]
    words, environment = [*shells, "-c", command.command], {**os.environ, **command.environment}
    if hook == "noted":
        monkeypatch.setattr(installation, "RELAY", _put(path, PASSES_ON))
        installation.leave_relay()
        path.unlink()
        Path(os.environ["SWARM_STATE_DIR"], "python").write_text(f"{sys.executable}\n")
        words = [*shells, str(HOOK), "codex", "pre_tool_use"]
    peer_locks(work, work / "locked")
    writer = runtime(client)
    try:
        UNUSABLE[fault](path)
        for name, is_denied in (("locked", True), ("free", False)):
            given = json.dumps(writer.write_payload(me, str(work), str(work / name))).encode()
            done = subprocess.run(words, input=given, capture_output=True, timeout=60, env=environment, check=False)
            assert (done.returncode, b'"deny"' in done.stdout, done.stderr) == (0, is_denied, b"")
    finally:
        if os.path.ismount(path.parent):
            subprocess.run(["umount", str(path.parent)], check=True)
        path.rmdir() if path.is_dir() else path.unlink(missing_ok=True)


@pytest.mark.sampled
@pytest.mark.skipif(not RELAY, reason="the relay cannot be compiled here")
@pytest.mark.parametrize("client", [*CLIENTS, WAITING])
def test_hooks_with_the_relay_deny_and_let_pass_where_no_checker_answers(
    tmp_path: Path, client: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installation, "RELAY", RELAY)
    folder = tmp_path / "bundle"
    bundle.write(folder, local=True)
    installed = Installed(folder, f"integrations/{client}")
    assert any(RELAY in hook.command for hook in installed.commands())
    assert not any(path.name == "swarm_relay" for path in folder.rglob("*")), "Codex hashes the folder"
    assert enforcement.prove(runtime(client), installed).status == "ok"


def test_a_portable_bundle_names_no_relay(relay: Callable[..., str]) -> None:
    path = relay()
    assert not any(path.encode() in content for content in bundle.contents(None).values())


def said(client: str, event: str, *words: str, **more: str) -> str:
    """Return the output of a hook that starts without an installation."""
    given = ["/bin/sh", str(HOOK), client, event, *words]
    done = subprocess.run(
        given, input=b"{}", capture_output=True, timeout=60, check=True, env={**os.environ, **more}
    )  # fmt: skip
    return done.stdout.decode()


def test_a_repositorys_hook_finds_the_relay_that_a_server_leaves(relay: Callable[..., str]) -> None:
    """For the events that checkers answer, in all clients, but not where another client runs hooks of Claude Code's."""
    state = Path(os.environ["SWARM_STATE_DIR"])
    for name in ("watched", "unheard"):
        (state / name).mkdir(parents=True)
    (state / "python").write_text(f"{sys.executable}\n")
    path = relay("""printf '%s ' "$1" "$2" "$3"; cat >/dev/null""")
    installation.leave_relay()
    assert (state / "relay").read_text() == f"{path}\n"
    for client in (*CLIENTS, "qwen"):
        for event in ("pre_tool_use", "post_tool_use", "turn", "subagent"):
            assert said(client, event) == f"{__version__} {client} {event} "
            assert said(client, event, "", "alone") == ""
        assert not said(client, "session_start").startswith(__version__)
    assert said("claude-code", "pre_tool_use", CURSOR_VERSION="1") == ""
    assert said("codex", "pre_tool_use", CURSOR_VERSION="1") != ""
    os.remove(path)
    assert said("codex", "pre_tool_use") == ""
    installation.leave_relay()
    assert not (state / "relay").exists()


def test_a_server_leaves_no_relay_that_cannot_serve(relay: Callable[..., str]) -> None:
    Path(relay()).write_bytes(b"")  # as on a full disk
    Path(installation.RELAY).chmod(0o644)
    installation.leave_relay()
    assert not os.path.lexists(os.path.join(os.environ["SWARM_STATE_DIR"], "relay"))


def test_an_uninstallation_takes_the_note_away(relay: Callable[..., str]) -> None:
    relay()
    installation.leave_relay()
    bundle.remove_ours()
    assert not os.path.lexists(os.environ["SWARM_STATE_DIR"])


def test_doctor_says_which_relay_hooks_use(relay: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    path = Path(relay())
    found = own_checks.checkers(ASKED)[0]
    assert (found.name, found.status, found.mend, found.details) == ("relay", "ok", "", {"program": str(path)})
    for spoil in (lambda: path.write_text("#!/bin/sh\nexit 1\n"), lambda: path.chmod(0o644)):
        spoil()
        found = own_checks.checkers(ASKED)[0]
        assert (found.status, str(path) in found.message) == ("warn", True) and "pipx install" in found.mend
    path.unlink()
    monkeypatch.setattr(installation, "NOT_COMPILED", str(path.with_name("not-compiled")))
    assert (own_checks.checkers(ASKED)[0].status, own_checks.checkers(ASKED)[0].mend) == ("info", "")
    Path(installation.NOT_COMPILED).write_text("no C compiler (cc) was found\n")
    found = own_checks.checkers(ASKED)[0]
    assert (found.status, "no C compiler (cc) was found" in found.message) == ("info", True)
    assert "pipx install" in found.mend


def test_doctor_says_how_many_checkers_there_are_and_why_hooks_ran_alone() -> None:
    found = own_checks.checkers(ASKED)[1]
    assert (found.name, found.status) == ("checker", "info") and "no client is running" in found.message
    folder = Path(checkers_dir())
    folder.mkdir(parents=True)
    for name in (f"{os.getpid()}-{start_time(os.getpid())}", f"{os.getpid()}-1", "99999999-1"):
        (folder / name).touch()
        (folder / f"{name}.lock").touch()
    now = 2_000_000_000
    (folder / "alone").write_text(f"{now} none\n{now} busy\n{now} none\n1 none\ntorn\n{now} not answered\n")
    found = own_checks.checkers(ASKED)[1]
    assert (found.status, found.mend) == ("ok", "") and found.message.startswith("1 client with a checker now")
    assert "2 because their client had no checker" in found.message
    assert found.details["alone"] == {"none": 2, "busy": 1, "not answered": 1}


def test_a_platforms_wheel_has_the_relay(tmp_path: Path) -> None:
    sys.path.insert(0, str(ROOT / ".ci"))
    try:
        from platform_wheel import INSTALLED, PlatformWheel
    finally:
        del sys.path[0]
    hook = PlatformWheel(str(tmp_path), {}, None, None, str(tmp_path), "wheel")
    plain: dict[str, object] = {"force_include": {}}
    program = tmp_path / "swarm_relay"
    program.write_bytes(b"")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SWARM_RELAY", str(program))  # it could not be compiled
        hook.initialize("standard", plain)
    assert plain == {"force_include": {}}
    program.write_bytes(b"a program")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SWARM_RELAY", str(program))
        patch.setenv("SWARM_PLATFORM", "manylinux_2_17_x86_64.musllinux_1_1_x86_64")
        hook.initialize("standard", plain)
    assert plain["force_include"] == {str(program): INSTALLED} and plain["pure_python"] is False
    assert plain["tag"] == "py3-none-manylinux_2_17_x86_64.musllinux_1_1_x86_64"
