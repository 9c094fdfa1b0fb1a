"""The program in front of the check, in the hooks that are installed, in `doctor`, and in a platform's wheel."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.sessions import new_session, peer_locks, ready_store, write_payload

from swarm_hook_core.first_look import CLIENTS, CONTRACT
from swarm_mcp import installation
from swarm_mcp.doctor import enforcement, first_look
from swarm_mcp.doctor.own_checks import Asked
from swarm_mcp.runtimes import bundle, runtime, state_folder
from swarm_mcp.runtimes.installed import Installed

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[3]
ASKED = Asked("", ())
PASSES_ON = 'shift 2; exec "$@"'
PROGRAM = os.environ.get("SWARM_FIRST_LOOK", "")  # `make test` names it
HOOK = ROOT / "integrations" / "hook.sh"


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Put a program with this contract and this behaviour into the installation."""
    path = tmp_path / "a folder" / "swarm_check"
    monkeypatch.setattr(installation, "FIRST_LOOK", str(path))
    return lambda contract=CONTRACT, body=PASSES_ON: _put(path, contract, body)


def _put(path: Path, contract: object, body: str) -> str:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f'#!/bin/sh\n[ "$1" = --contract ] && echo {contract} && exit\n{body}\n')
    path.chmod(0o755)
    return str(path)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A local bundle, and where its hooks look for their program, with nothing there."""
    folder = tmp_path_factory.mktemp("installed").resolve()
    path = folder / "a folder" / "swarm_check"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(installation, "FIRST_LOOK", str(path))
        _put(path, CONTRACT, PASSES_ON)
        bundle.write(folder / "bundle", local=True)
    path.unlink()
    return folder / "bundle", path


def checks(tmp_path: Path) -> dict[str, str]:
    """Return the command of the check before a write, by client, in a local bundle."""
    files = bundle.contents(tmp_path / "bundle")
    found = {}
    for client in CLIENTS:
        hooks = json.loads(files[f"integrations/{client}/hooks.json"])["hooks"]
        found[client] = hooks["PreToolUse"][0]["hooks"][0]["command"]
    return found


def test_hooks_start_the_program_before_the_check(tmp_path: Path, program) -> None:
    without = checks(tmp_path)
    path = program()
    for client, command in checks(tmp_path).items():
        begun, _, rest = command.partition("; }; ")
        assert begun.startswith(f"[ -s '{path}' ] && [ -x '{path}' ] && ")
        rest, looked = (rest.partition("; }; ")[place] for place in (2, 0))
        assert f"exec '{path}' {CONTRACT} {client} " in looked
        assert rest == without[client]
        for check in (begun.rpartition("exec ")[2], looked.rpartition(f" {CONTRACT} {client} ")[2]):
            assert check.removesuffix(" 2>/dev/null") in rest, "it executes another check"


@pytest.mark.parametrize("contract", [CONTRACT + 1, "", "x"])
def test_a_program_of_another_contract_is_not_used(tmp_path: Path, program, contract: object) -> None:
    without = checks(tmp_path)
    program(contract)
    assert checks(tmp_path) == without
    (found,) = first_look.findings(ASKED)
    assert found.status == "warn" and "contract" in found.message and found.mend


@pytest.mark.skipif(not PROGRAM, reason="no program: make test")
def test_doctor_tries_the_program_both_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installation, "FIRST_LOOK", PROGRAM)
    (found,) = first_look.findings(ASKED)
    assert (found.status, found.mend) == ("ok", ""), found
    assert found.details == {"program": PROGRAM, "contract": CONTRACT}


FAULTS = {
    PASSES_ON: "does not let a free write of claude-code pass",  # it never passes anything
    "exit 0": "does not hand a write of claude-code to a locked file over",  # nor asks anything
    "echo; exit 0": "does not let a free write of claude-code pass",  # it speaks
    "case $(cat) in *locked*) exit 77;; esac": "does not hand a write of claude-code to a locked file over",
}


@pytest.mark.parametrize("body", FAULTS)
def test_doctor_finds_a_program_that_goes_wrong(program, body: str) -> None:
    (found,) = first_look.findings(ASKED)
    assert (found.status, "in Python alone" in found.message) == ("info", True)
    program(body=body)
    (found,) = first_look.findings(ASKED)
    assert found.status == "fail" and FAULTS[body] in found.message and "pipx install" in found.mend


def test_the_program_has_the_number_of_the_core() -> None:
    assert f"#define CONTRACT {CONTRACT}\n" in (ROOT / "native" / "swarm_check.h").read_text()


@pytest.mark.parametrize("fault", ["gone", "empty", "not executable", "another contract"])
@pytest.mark.parametrize("client", CLIENTS)
def test_a_program_that_cannot_serve_is_passed_over(installed: tuple[Path, Path], client: str, fault: str) -> None:
    """The hook's command runs the check that it ran before there was a program."""
    folder, path = installed
    if fault == "empty":
        path.touch(0o755)
    elif fault == "not executable":
        _put(path, CONTRACT, "exit 0")
        path.chmod(0o644)
    elif fault == "another contract":
        _put(path, CONTRACT + 1, '[ "$1" = 7 ] || { shift 2; exec "$@"; }')
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
    path.write_text("#!/bin/sh\nexit 0\n")
    path.chmod(0o755)


UNUSABLE = {
    "of another machine": _of_another_machine,
    "empty": lambda path: path.touch(0o755),
    "a folder": lambda path: path.mkdir(),
    "on a file system without execution": _unexecutable,
}


@pytest.mark.parametrize("shell", ["sh", "bash", "busybox"])
@pytest.mark.parametrize("is_noted", [False, True])
@pytest.mark.parametrize("fault", UNUSABLE)
def test_a_program_that_cannot_be_executed_leaves_the_payload_to_the_check_in_silence(
    tmp_path: Path, installed: tuple[Path, Path], monkeypatch, fault: str, is_noted: bool, shell: str
) -> None:
    """As in a home that machines share. `is_noted`: a repository's own hook reads the path from a note."""
    if not shutil.which(shell):
        pytest.skip(f"no {shell}")
    ready_store()
    folder, path = installed
    me, work = new_session(), tmp_path / "work"
    (work / ".git").mkdir(parents=True)
    hook = next(one for one in Installed(folder, "integrations/codex").commands() if one.event == "PreToolUse")
    shells = [shell, *["sh"] * (shell == "busybox")]
    words, environment = [*shells, "-c", hook.command], {**os.environ, **hook.environment}
    if is_noted:
        monkeypatch.setattr(installation, "FIRST_LOOK", _put(path, CONTRACT, PASSES_ON))
        installation.leave_first_look()
        path.unlink()
        Path(os.environ["SWARM_STATE_DIR"], "python").write_text(f"{sys.executable}\n")
        words = [*shells, str(HOOK), "codex", "pre_tool_use"]
    peer_locks(work, work / "locked")
    try:
        UNUSABLE[fault](path)
        for name, is_denied in (("locked", True), ("free", False)):
            given = json.dumps(write_payload("codex", me, work, str(work / name))).encode()
            done = subprocess.run(words, input=given, capture_output=True, timeout=60, env=environment, check=False)
            assert (done.returncode, b'"deny"' in done.stdout, done.stderr) == (0, is_denied, b"")
    finally:
        if os.path.ismount(path.parent):
            subprocess.run(["umount", str(path.parent)], check=True)
        path.rmdir() if path.is_dir() else path.unlink(missing_ok=True)


@pytest.mark.skipif(not PROGRAM, reason="no program: make test")
@pytest.mark.parametrize("client", CLIENTS)
def test_the_hook_with_the_program_denies_and_passes(
    tmp_path: Path, client: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installation, "FIRST_LOOK", PROGRAM)
    folder = tmp_path / "bundle"
    bundle.write(folder, local=True)
    installed = Installed(folder, f"integrations/{client}")
    assert any(PROGRAM in hook.command for hook in installed.commands())
    assert not any(path.name == "swarm_check" for path in folder.rglob("*")), "Codex hashes the folder"
    assert enforcement.prove(runtime(client), installed).status == "ok"


def test_a_portable_bundle_names_no_program(program) -> None:
    program()
    for name, content in bundle.contents(None).items():
        assert b"swarm_check" not in content or not name.endswith(".json"), name


def test_a_repositorys_hook_finds_the_program_that_the_coordinator_leaves(tmp_path: Path, program) -> None:
    """With its own number. Other clients, other events and hooks with an interpreter of their own do without."""
    state = Path(os.environ["SWARM_STATE_DIR"])
    state.mkdir(parents=True)
    (state / "python").write_text(f"{sys.executable}\n")
    path = program(body="""shift; printf 'looked %s' "$1"; cat >/dev/null""")
    installation.leave_first_look()
    assert (state / "first-look").read_text() == f"{path}\n"

    def said(*words: str) -> str:
        done = subprocess.run(["/bin/sh", HOOK, *words], input=b"{}", capture_output=True, timeout=60, check=True)
        return done.stdout.decode()

    for client in CLIENTS:
        assert said(client, "pre_tool_use") == f"looked {client}"
        assert said(client, "post_tool_use") == said(client, "pre_tool_use", sys.executable) == ""
    assert said("qwen", "pre_tool_use") == ""
    assert f'exec "$first" {CONTRACT} "$client"' in HOOK.read_text()
    os.remove(path)
    assert said("codex", "pre_tool_use") == ""
    installation.leave_first_look()
    assert not (state / "first-look").exists()


@pytest.mark.parametrize("contract", [CONTRACT + 1, ""])
def test_the_coordinator_leaves_no_program_that_cannot_serve(program, contract: object) -> None:
    program(contract)
    installation.leave_first_look()
    assert not os.path.lexists(os.path.join(os.environ["SWARM_STATE_DIR"], "first-look"))


def test_an_uninstallation_takes_the_note_away(program) -> None:
    program()
    installation.leave_first_look()
    state_folder.remove_ours()
    assert not os.path.lexists(os.environ["SWARM_STATE_DIR"])


def test_a_platforms_wheel_has_the_program(tmp_path: Path) -> None:
    sys.path.insert(0, str(Path(__file__).resolve().parents[3] / ".ci"))
    try:
        from platform_wheel import INSTALLED, PlatformWheel
    finally:
        del sys.path[0]
    hook = PlatformWheel(str(tmp_path), {}, None, None, str(tmp_path), "wheel")
    plain: dict[str, object] = {"force_include": {}}
    program = tmp_path / "swarm_check"
    program.write_bytes(b"")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SWARM_FIRST_LOOK", str(program))  # it could not be compiled
        hook.initialize("standard", plain)
    assert plain == {"force_include": {}}
    program.write_bytes(b"a program")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SWARM_FIRST_LOOK", str(program))
        patch.setenv("SWARM_PLATFORM", "manylinux_2_17_x86_64.musllinux_1_1_x86_64")
        hook.initialize("standard", plain)
    assert plain["force_include"] == {str(program): INSTALLED} and plain["pure_python"] is False
    assert plain["tag"] == "py3-none-manylinux_2_17_x86_64.musllinux_1_1_x86_64"
