"""The layers of a client's settings that keep hooks from running, each as the real client was seen to read it."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.files import json_at

from swarm_mcp.cli.commands import doctor
from swarm_mcp.runtimes import claude_code, copilot, grok, runtime
from swarm_mcp.runtimes.base import Finding
from swarm_mcp.runtimes.claude_code import ClaudeSettings
from swarm_mcp.runtimes.codex import AppServer

OFF, ON = {"disableAllHooks": True}, {"disableAllHooks": False}
MANAGED, PLUGIN = {"allowManagedHooksOnly": True}, {"enabledPlugins": {"swarm@swarm": True}}
NO_PLUGIN = {"enabledPlugins": {"swarm@swarm": False}}
SIMPLE, SAFE = {"env": {"CLAUDE_CODE_SIMPLE": "1"}}, {"env": {"CLAUDE_CODE_SAFE_MODE": "1"}}
USER, PROJECT, LOCAL = "USER/settings.json", "top/.claude/settings.json", "top/.claude/settings.local.json"
POLICY, ADDED = "etc/managed-settings.json", "etc/managed-settings.d/10-more.json"
SUB_LOCAL = "top/sub/.claude/settings.local.json"
VARIABLES = (
    "CLAUDE_CODE_SIMPLE", "CLAUDE_CODE_SAFE_MODE", "CLAUDE_CODE_RESTRICTED", "QWEN_CODE_SIMPLE",
    "QWEN_CODE_SAFE_MODE", "GEMINI_CLI_TRUST_WORKSPACE", "GEMINI_RESTRICTED_MODE", "GEMINI_CLI_TRUSTED_FOLDERS_PATH",
    "OPENCODE_PURE", "KILO_PURE", "CLINE_GLOBAL_SETTINGS_PATH",
)  # fmt: skip


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a repository `top`, a linked work tree `linked` of it, and `etc` for policies."""
    folder = tmp_path.resolve()
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    (folder / "top" / "sub").mkdir(parents=True)
    git = ["git", "-C", str(folder / "top"), "-c", "user.name=x", "-c", "user.email=x@y"]
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "x"], ["worktree", "add", "-q", "../linked"]):
        subprocess.run([*git, *words], check=True, capture_output=True)
    for module in (claude_code, grok):
        monkeypatch.setattr(module, "POLICIES", folder / "etc")
    monkeypatch.setattr(copilot, "POLICY", folder / POLICY)
    return folder


def put(place: Path, files: dict[str, Any]) -> None:
    for name, content in files.items():
        json_at(place / name, content)


def named(place: Path, findings: list[Finding]) -> str:
    """Return the file, below `place`, in a finding that hooks are off. Empty without one."""
    (text,) = [found.message for found in findings if found.status == "fail"] or [""]
    words = [word.strip(",.") for word in text.split() if word.startswith(str(place))]
    return str(Path(words[0]).relative_to(place)) if words else text


@pytest.mark.parametrize(
    ("files", "folder", "file"),
    [
        ({}, "top", ""),
        ({USER: OFF}, "top", USER),
        ({PROJECT: OFF}, "top", PROJECT),
        ({LOCAL: OFF}, "top", LOCAL),
        ({PROJECT: OFF, LOCAL: ON}, "top", ""),
        ({USER: OFF, PROJECT: ON}, "top", ""),
        ({PROJECT: OFF}, "top/sub", ""),
        ({"top/sub/.claude/settings.json": OFF}, "top/sub", "top/sub/.claude/settings.json"),
        ({"top/sub/.claude/settings.json": OFF}, "top", ""),
        ({LOCAL: OFF}, "top/sub", LOCAL),
        ({SUB_LOCAL: OFF}, "top/sub", SUB_LOCAL),
        ({SUB_LOCAL: OFF, LOCAL: ON}, "top/sub", ""),
        ({LOCAL: OFF}, "linked", LOCAL),
        ({PROJECT: OFF}, "linked", ""),
        ({LOCAL: ON, "linked/.claude/settings.local.json": OFF}, "linked", ""),
        ({POLICY: OFF}, "top", POLICY),
        ({ADDED: OFF}, "top", ADDED),
        ({POLICY: OFF, ADDED: ON}, "top", ""),
        ({POLICY: ON, PROJECT: OFF}, "top", ""),
        ({POLICY: MANAGED}, "top", POLICY),
        ({POLICY: {**MANAGED, **PLUGIN}}, "top", ""),
        ({POLICY: MANAGED, ADDED: PLUGIN}, "top", ""),
        ({POLICY: MANAGED, PROJECT: PLUGIN}, "top", POLICY),
        ({POLICY: NO_PLUGIN}, "top", POLICY),
        ({USER: SIMPLE}, "top", USER),
        ({POLICY: SAFE}, "top", POLICY),
        ({PROJECT: SIMPLE, LOCAL: SAFE}, "top", ""),
        ({PROJECT: '{"disableAllHooks": true, // off\n}'}, "top", ""),
        ({PROJECT: '{"disableAllHooks": "true"}'}, "top", ""),
        ({PROJECT: '\ufeff{"disableAllHooks": true}'}, "top", PROJECT),
    ],
)
@pytest.mark.sampled
def test_claude_code_s_layers(place: Path, monkeypatch, files: dict[str, Any], folder: str, file: str) -> None:
    put(place, files)
    monkeypatch.chdir(place / folder)
    found = ClaudeSettings(place / "USER").findings()
    assert named(place, found) == file
    for one in found:  # a policy has no mend of the user's
        assert bool(one.mend) is not file.startswith("etc"), one
        assert not one.mend or str(place / file) in one.mend


@pytest.mark.parametrize("name", ["CLAUDE_CODE_SIMPLE", "CLAUDE_CODE_SAFE_MODE", "CLAUDE_CODE_RESTRICTED"])
def test_a_variable_that_switches_claude_code_s_hooks_off(place: Path, monkeypatch, name: str) -> None:
    monkeypatch.chdir(place / "top")
    monkeypatch.setenv(name, "0")
    assert ClaudeSettings(place / "USER").findings() == []
    monkeypatch.setenv(name, "true")
    (found,) = ClaudeSettings(place / "USER").findings()
    assert (found.status, found.mend) == ("fail", f"unset {name}")


def test_settings_that_cannot_be_known_are_told(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(place, {"USER/remote-settings.json": OFF, "preferences": ""})
    (place / PROJECT).mkdir(parents=True)
    monkeypatch.chdir(place / "top")
    monkeypatch.setattr(claude_code, "PREFERENCES", place / "preferences")
    found = ClaudeSettings(place / "USER").findings()
    assert [one.status for one in found] == ["warn"] * 3
    assert [str(place / PROJECT) in found[0].message, "organization" in found[1].message] == [True, True]


def test_the_file_that_disables_the_plugin_is_named(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place / "top")
    put(place, {USER: PLUGIN, PROJECT: NO_PLUGIN})
    assert ClaudeSettings(place / "USER").disabled_in() == str(place / PROJECT)
    put(place, {LOCAL: PLUGIN, POLICY: {"strictKnownMarketplaces": []}})
    settings = ClaudeSettings(place / "USER")
    assert (settings.disabled_in(), settings.policy_on_marketplaces()) == ("", str(place / POLICY))


GEMINI_OFF, GEMINI_ON = {"hooksConfig": {"enabled": False}}, {"hooksConfig": {"enabled": True}}
NAMED = {"hooksConfig": {"disabled": ["swarm"]}}
GEMINI_S, TRUSTING = "top/.gemini/settings.json", {"security": {"folderTrust": {"enabled": False}}}


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("client", "files", "file"),
    [
        ("qwen", {}, ""),
        ("qwen", {"USER": OFF}, "USER"),
        ("qwen", {"top/.qwen/settings.json": OFF}, "top/.qwen/settings.json"),
        ("qwen", {"USER": OFF, "top/.qwen/settings.json": ON}, ""),
        ("qwen", {"etc/settings.json": OFF}, "etc/settings.json"),
        ("qwen", {"etc/system-defaults.json": OFF}, "etc/system-defaults.json"),
        ("qwen", {"etc/settings.json": ON, "top/.qwen/settings.json": OFF}, ""),
        ("qwen", {"USER": {"env": {"QWEN_CODE_SIMPLE": "1"}}}, "USER"),
        ("qwen", {"top/.env": "A=1\nexport QWEN_CODE_SAFE_MODE='1' # off\n"}, "top/.env"),
        ("gemini", {}, ""),
        ("gemini", {"USER": GEMINI_OFF}, "USER"),
        ("gemini", {"USER": NAMED}, "USER"),
        ("gemini", {GEMINI_S: GEMINI_OFF, "USER": TRUSTING}, GEMINI_S),
        ("gemini", {GEMINI_S: NAMED, "USER": TRUSTING}, GEMINI_S),
        ("gemini", {"USER": GEMINI_OFF, GEMINI_S: GEMINI_ON}, "USER"),
        ("gemini", {"etc/settings.json": GEMINI_OFF}, "etc/settings.json"),
        ("gemini", {"etc/system-defaults.json": GEMINI_OFF}, "etc/system-defaults.json"),
        ("gemini", {"etc/settings.json": GEMINI_ON, GEMINI_S: GEMINI_OFF, "USER": TRUSTING}, ""),
    ],
)
def test_qwen_code_s_and_gemini_s_layers(
    home: Path, place: Path, monkeypatch: pytest.MonkeyPatch, client: str, files: dict[str, Any], file: str
) -> None:
    variable = {"qwen": "QWEN_CODE", "gemini": "GEMINI_CLI"}[client]
    monkeypatch.setenv(f"{variable}_SYSTEM_SETTINGS_PATH", str(place / "etc" / "settings.json"))
    monkeypatch.chdir(place / "top")
    users = home / f".{client}" / "settings.json"
    put(place, {str(users) if name == "USER" else name: content for name, content in files.items()})
    found = runtime(client).beside(place)
    told = " ".join(one.message for one in found if one.status == "fail")
    assert (str(users if file == "USER" else place / file) in told) if file else told == "", found
    assert all(bool(one.mend) is not file.startswith("etc") for one in found)


COPILOT_S = "top/.github/copilot"
PIN, SOURCES = "allow_managed_hooks_only = true\n", {"strictKnownMarketplaces": [{"source": "github", "repo": "a/b"}]}


@pytest.mark.parametrize(
    ("client", "files", "file"),
    [
        ("grok", {}, ""),
        ("grok", {"etc/requirements.toml": PIN}, "etc/requirements.toml"),
        ("grok", {"etc/managed_config.toml": f"a = 1\n{PIN}[b]\n"}, "etc/managed_config.toml"),
        ("grok", {"etc/requirements.toml": f"# {PIN}[a]\n{PIN}"}, ""),
        ("grok", {"etc/requirements.toml": "allow_managed_hooks_only = false"}, ""),
        ("grok", {"USER/requirements.toml": 'allowManagedHooksOnly = "x"'}, "USER/requirements.toml"),
        ("grok", {"USER/managed_config.toml": PIN}, "USER/managed_config.toml"),
        ("grok", {"USER/config.toml": PIN}, ""),
        ("grok", {POLICY: MANAGED}, POLICY),
        ("copilot", {}, ""),
        ("copilot", {POLICY: MANAGED}, POLICY),
        ("copilot", {POLICY: NO_PLUGIN}, POLICY),
        ("copilot", {POLICY: SOURCES}, POLICY),
        ("copilot", {POLICY: PLUGIN}, ""),
        ("copilot", {POLICY: OFF}, ""),
        ("copilot", {f"{COPILOT_S}/settings.json": NO_PLUGIN}, f"{COPILOT_S}/settings.json"),
        ("copilot", {f"{COPILOT_S}/settings.local.json": OFF}, f"{COPILOT_S}/settings.local.json"),
        ("copilot", {f"{COPILOT_S}/settings.json": OFF, f"{COPILOT_S}/settings.local.json": ON}, ""),
    ],
)
def test_grok_s_and_copilot_s_layers(
    home: Path, place: Path, monkeypatch: pytest.MonkeyPatch, client: str, files: dict[str, Any], file: str
) -> None:
    monkeypatch.chdir(place / "top")
    users = str(home / f".{client}")
    put(place, {name.replace("USER", users): content for name, content in files.items()})
    found = [one for one in runtime(client).beside(place) if one.status == "fail"]
    assert len(found) == bool(file), found
    assert all(str(place / file.replace("USER", users)) in one.message for one in found)
    assert all(bool(one.mend) is file.startswith(COPILOT_S) for one in found)


@pytest.mark.parametrize("name", ["opencode", "kilo"])
def test_a_variable_that_switches_plugins_off(place: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    variable = f"{name.upper()}_PURE"
    monkeypatch.setenv(variable, "0")
    assert [one for one in runtime(name).beside(place) if one.status == "fail"] == []
    monkeypatch.setenv(variable, "1")
    assert [one.mend for one in runtime(name).beside(place) if one.status == "fail"] == [f"unset {variable}"]


@pytest.mark.parametrize(
    ("rules", "status"),
    [
        ({}, "warn"),
        ({"top": "TRUST_FOLDER"}, "fail"),
        ({"top/sub": "TRUST_PARENT"}, "fail"),
        ({"": "TRUST_FOLDER", "top": "DO_NOT_TRUST"}, None),
        ({"elsewhere": "TRUST_FOLDER"}, "warn"),
    ],
)
def test_gemini_reads_the_settings_of_a_project_that_it_trusts(
    home: Path, place: Path, monkeypatch: pytest.MonkeyPatch, rules: dict[str, str], status: str | None
) -> None:
    monkeypatch.setenv("GEMINI_CLI_SYSTEM_SETTINGS_PATH", str(place / "etc" / "settings.json"))
    monkeypatch.chdir(place / "top")
    trusted = {str(place / folder): rule for folder, rule in rules.items()}
    put(place, {GEMINI_S: GEMINI_OFF, str(home / ".gemini" / "trustedFolders.json"): trusted})
    found = runtime("gemini").beside(place)
    assert [one.status for one in found] == ([status] if status else []), found
    assert all(str(place / GEMINI_S) in one.message for one in found)


PROJECT_TOML = {"name": {"type": "project", "dotCodexFolder": "/repo/.codex"}}


@pytest.mark.parametrize(
    ("config", "requirements", "said"),
    [
        ({}, {}, ("", "")),
        ({"features": {"hooks": False}}, {}, ("features.hooks = false", "/repo/.codex/config.toml")),
        ({"plugins": {"swarm@swarm": {"enabled": False}}}, {}, ("enabled = false", "/repo/.codex/config.toml")),
        ({}, {"allowManagedHooksOnly": True}, ("allow_managed_hooks_only", "policy")),
        ({}, {"featureRequirements": {"hooks": False}}, ("features.hooks", "policy")),
    ],
)
def test_codex_is_asked_for_its_settings(config: object, requirements: object, said: tuple[str, str]) -> None:
    class Server(AppServer):
        def __init__(self) -> None:
            pass

        def call(self, method: str, params: dict[str, Any], seconds: float = 0.0) -> dict[str, Any]:
            if method == "configRequirements/read":
                return {"requirements": requirements}
            origins = {"features.hooks": PROJECT_TOML, "plugins.swarm@swarm.enabled": PROJECT_TOML}
            return {"config": config, "origins": origins}

    key, file = Server().off()
    assert key.startswith(said[0]) and said[1] in file and bool(key) is bool(said[0])


@pytest.fixture
def ending() -> Iterator[Any]:
    clients = [runtime("claude-code"), runtime("codex")]
    yield lambda *findings: doctor._without_a_failure(clients, {"claude-code": list(findings), "codex": []})


def test_doctor_is_content_only_where_it_knows(ending: Any) -> None:
    fine = Finding("claude-code enforcement", "ok", "denied")
    assert "started by hand" in ending(fine) and ending(fine).endswith("swarm-mcp doctor --play")
    doubted = ending(fine, Finding("claude-code settings", "warn", "cannot be read"))
    assert "claude-code settings" in doubted and doubted.endswith("swarm-mcp doctor --play")
    assert "no agent client" in doctor._without_a_failure([], {})
