"""Switching on the kernel's hold: `install --kernel`, and doctor's lines about it."""

import json
import os
import stat
import sys
from pathlib import Path

import pytest
from support.files import program_at, text_at
from support.fixtures import Ground

from swarm_hook_core import settings
from swarm_hook_core.kernel import namespace
from swarm_hook_core.state import config_path
from swarm_mcp.cli.commands import install as verb
from swarm_mcp.doctor import enforcement, own_checks
from swarm_mcp.runtimes import NAMES, hook_config, runtime
from swarm_mcp.runtimes.base import Finding

pytestmark = pytest.mark.slow

REFUSED = "unshare: Operation not permitted (kernel.apparmor_restrict_unprivileged_userns is 1)"


@pytest.fixture
def bin_folder(bin_folder: Path, ground: Ground, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same; the current folder is the checkout."""
    monkeypatch.chdir(ground.repo)
    return bin_folder


@pytest.fixture
def installing(bin_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installation into Claude Code that leaves the client alone."""
    put(bin_folder, "claude")
    monkeypatch.setattr(verb, "write_bundle", lambda *args, **options: False)
    monkeypatch.setattr(verb, "_install_into", lambda client, steps, folder: None)


def put(folder: Path, name: str, says: str = "") -> None:
    """Make `name` a client's command that says this of its release."""
    program_at(folder / name, f"#!/bin/sh\n[ \"$*\" = --version ] && echo '{says}'\n")


def can(monkeypatch: pytest.MonkeyPatch, why: str = "", platform: str = "linux") -> None:
    """Have the kernel be able to hold files, or not for this reason."""
    monkeypatch.setattr(namespace, "again", lambda: why)
    monkeypatch.setattr(enforcement.sys, "platform", platform)


def found(*names: str) -> Finding:
    return next(one for one in own_checks.findings("", [runtime(name) for name in names]) if one.name == "kernel")


def config() -> dict:
    return json.loads(Path(config_path()).read_text()) if os.path.exists(config_path()) else {}


@pytest.mark.usefixtures("installing")
def test_install_switches_it_on_and_off_and_leaves_the_rest_alone(ground: Ground, monkeypatch) -> None:
    can(monkeypatch)
    os.makedirs(os.path.dirname(config_path()))
    Path(config_path()).write_text('{"strict": true}')
    (line,) = [line for line in ground.swarm("install", "--kernel").out.splitlines() if line.startswith("kernel: ")]
    assert line.startswith(f"kernel: on in {config_path()}") and "it works " in line
    assert config() == {"strict": True, "kernel": True} and settings.kernel("CC", str(ground.repo))
    told = ground.swarm("install", "--kernel", "--json").json["kernel"]
    assert (told["on"], told["changed"], told["works"], told["why"], told["mend"]) == (True, False, True, None, None)
    assert ground.swarm("install", "--json").json["kernel"] is None and "kernel" in config(), "unasked it stays"
    told = ground.swarm("install", "--no-kernel", "--json").json["kernel"]
    assert (told["on"], told["changed"]) == (False, True) and config() == {"strict": True}
    assert "kernel: off in " in ground.swarm("install", "--no-kernel").out


@pytest.mark.usefixtures("installing")
def test_install_says_whose_commands_are_held_and_whose_release_is_not(
    ground: Ground, bin_folder: Path, monkeypatch
) -> None:
    can(monkeypatch)
    put(bin_folder, "codex", "codex-cli 0.1.0")
    told = ground.swarm("install", "--kernel", "--json").json["kernel"]
    assert told["held"] == ["Claude Code"] and told["not_held"][0].startswith("Codex 0.1.0 (tested with ")
    out = ground.swarm("install", "--kernel").out
    assert "held: commands of Claude Code; not held: those of Codex 0.1.0 (tested with " in out


@pytest.mark.usefixtures("installing")
def test_install_says_why_nothing_can_be_held_and_what_mends_it(ground: Ground, monkeypatch) -> None:
    can(monkeypatch, REFUSED)
    done = ground.swarm("install", "--kernel")
    assert done.code == 0 and f"does not work here: {REFUSED}; mend: sudo sysctl" in done.out
    told = ground.swarm("install", "--kernel", "--json").json["kernel"]
    assert not told["works"] and told["why"] == REFUSED and "sysctl" in told["mend"]


@pytest.mark.usefixtures("installing")
def test_install_says_who_says_otherwise(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    can(monkeypatch)
    monkeypatch.setenv("SWARM_KERNEL", "0")
    assert "(otherwise here, by SWARM_KERNEL)" in ground.swarm("install", "--kernel").out
    monkeypatch.delenv("SWARM_KERNEL")
    Path(config_path()).write_text(json.dumps({"checkouts": {str(ground.repo): {"kernel": False}}}))
    assert f"otherwise here, set for {ground.repo} in" in ground.swarm("install", "--kernel").out


@pytest.mark.usefixtures("installing")
def test_what_cannot_be_switched_on_keeps_all_from_being_installed(ground: Ground, failing) -> None:
    failing(verb, "write_bundle", pytest.fail.Exception("it was installed"))
    assert ground.swarm("install", "--kernel", "--no-kernel").code == 2
    os.makedirs(os.path.dirname(config_path()))
    Path(config_path()).write_text("{")
    done = ground.swarm("install", "--kernel")
    assert done.code == 1 and "was left as it is" in done.err and Path(config_path()).read_text() == "{"


@pytest.mark.usefixtures("installing")
def test_a_dry_run_changes_nothing(ground: Ground) -> None:
    assert f"would set `kernel` on in {config_path()}" in ground.swarm("install", "--kernel", "--dry-run").out
    for words, wanted in ([["--kernel"], True], [["--no-kernel"], False], [[], None]):
        assert ground.swarm("install", "--dry-run", "--json", *words).json["kernel"] is wanted
    assert config() == {}


@pytest.mark.usefixtures("bin_folder")
def test_while_it_is_off_nothing_is_tried_and_the_switch_is_named(ground: Ground, failing) -> None:
    failing(namespace, "again", pytest.fail.Exception("it was tried"))
    finding = found("claude-code")
    assert (finding.status, finding.mend) == ("info", "swarm-mcp install --kernel") and "off" in finding.message


def test_where_it_works_it_says_whose_commands_are_held(bin_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    can(monkeypatch)
    monkeypatch.setenv("SWARM_KERNEL", "1")
    tested = hook_config("codex").kernel_versions
    for release in tested:
        put(bin_folder, "codex", f"codex-cli {release}")
        finding = found("claude-code", "codex", "gemini")
        assert finding.status == "ok" and ("as root" if os.geteuid() == 0 else "in a user namespace") in finding.message
        assert f"held: commands of Claude Code, Codex {release}; not held: those of Gemini CLI" in finding.message
        assert finding.details["on"] == list(NAMES)
    put(bin_folder, "codex", "codex-cli 0.1.0")
    assert f"; not held: those of Codex 0.1.0 (tested with {', '.join(tested)})" in found("codex").message
    put(bin_folder, "codex")
    assert "Codex of an unknown release" in found("codex").message


@pytest.mark.usefixtures("bin_folder")
def test_a_client_for_which_it_is_off_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    can(monkeypatch)
    monkeypatch.setenv("SWARM_CC_KERNEL", "1")
    finding = found("claude-code", "gemini")
    assert finding.details["on"] == ["claude-code"] and "Gemini" not in finding.message


@pytest.mark.usefixtures("bin_folder")
def test_where_it_does_not_work_it_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWARM_KERNEL", "1")
    can(monkeypatch, REFUSED)
    finding = found("claude-code")
    assert finding.status == "warn" and REFUSED in finding.message and "sudo sysctl" in finding.mend


@pytest.mark.usefixtures("bin_folder")
def test_on_macos_it_is_unverified(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWARM_KERNEL", "1")
    can(monkeypatch, platform="darwin")
    finding = found()
    assert finding.status == "info" and "unverified" in finding.message


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel of Linux holds files")
@pytest.mark.usefixtures("bin_folder")
def test_it_is_really_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWARM_KERNEL", "1")
    finding = found()
    assert finding.status in ("ok", "warn") and (finding.details["why"] is None) == (finding.status == "ok")
    assert os.path.exists(os.path.join(os.environ["SWARM_STATE_DIR"], "kernel", "probe"))


@pytest.mark.usefixtures("bin_folder")
def test_a_state_folder_that_cannot_be_written_fails_no_check(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWARM_KERNEL", "1")
    blocked = text_at(ground.folder / "blocked", "no folder")
    assert stat.S_ISREG(blocked.stat().st_mode)
    monkeypatch.setenv("SWARM_STATE_DIR", str(blocked))
    finding = found()
    assert finding.status == "warn" and str(blocked) in finding.message
