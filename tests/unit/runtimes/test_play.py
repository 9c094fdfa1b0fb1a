"""The settings of a play: the person's, without any way to a real service. The plays themselves are in tests/e2e."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from swarm_mcp.errors import ClientFailed
from swarm_mcp.play import playing
from swarm_mcp.play.clients import Client
from swarm_mcp.play.makers import Grok, Kimi
from swarm_mcp.play.playing import KEPT, Outcome
from swarm_mcp.play.scene import Scene, refuse_services, sealed
from swarm_mcp.runtimes import grok, runtime
from swarm_mcp.runtimes.base import Look, Steps
from swarm_mcp.runtimes.client_settings import Layer

SERVICES = [
    {"apiKeyHelper": "get-key"},
    {"env": {"ANTHROPIC_BASE_URL": "https://model.example"}},
    {"env": {"CLAUDE_CODE_USE_BEDROCK": "1"}},
    {"env": {"HTTPS_PROXY": "http://proxy.example"}},
    {"awsAuthRefresh": "aws sso login"},
    {"security": {"auth": {"selectedType": "oauth-personal"}}},
    {"provider": {"work": {"options": {"baseURL": "https://model.example"}}}},
]


@pytest.mark.parametrize("settings", SERVICES, ids=json.dumps)
def test_a_service_is_left_out_of_a_copy_and_refused_in_a_policy(settings: dict[str, object]) -> None:
    kept = {"disableAllHooks": True, "hooks": {"Stop": []}, "env": {"CLAUDE_CODE_SIMPLE": "1"}}
    both = {**kept, **settings, "env": {**kept["env"], **settings.get("env", {})}}  # type: ignore[dict-item]
    found = json.loads(sealed(f"// a comment\n{json.dumps(both)}"))
    assert {name: found[name] for name in kept} == kept
    assert "example" not in json.dumps(found) and "selectedType" not in json.dumps(found)
    refuse_services([Layer("/etc/it", kept, is_policy=True)])
    with pytest.raises(ClientFailed, match="in /etc/it, a policy, may lead it to a real service"):
        refuse_services([Layer("/etc/it", both, is_policy=True)])


def test_a_copy_of_kimis_settings_has_no_service(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KIMI_CODE_HOME", str(tmp_path))
    service = 'base_url = "https://model.example"\n'
    of_services = f'[providers."a.b"]\n{service}\n[models.k]\nmodel = "k"\n\n[services.search]\n{service}\n'
    kept = "telemetry = false\n", '[[hooks]]\nevent = "Stop"\n'
    (tmp_path / "config.toml").write_text(f'default_model = "k"\n{kept[0]}{of_services}{kept[1]}')
    scene = Scene(runtime("kimi"))
    try:
        Kimi(scene).bring()
        assert (scene.home / ".kimi-code" / "config.toml").read_text() == "".join(kept)
    finally:
        scene.close()


def test_a_scene_has_its_own_places_and_no_way_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("ANTHROPIC_API_KEY", "OPENAI_BASE_URL", "AWS_PROFILE", "CODEX_HOME", "SWARM_DB_PATH", "CLAUDECODE"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("CLAUDE_CODE_SIMPLE", "1")
    scene = Scene(runtime("claude-code"))
    try:
        assert str(tmp_path) not in " ".join(value for name, value in scene.env.items() if name != "PATH")
        assert scene.env["PWD"] == str(scene.checkout) and scene.env["CLAUDE_CODE_SIMPLE"] == "1"
        assert scene.env["HTTPS_PROXY"] == f"http://127.0.0.1:{scene.models.port}"
        scene.set_up({"locked.md": "text\n", "new.md": ""})
        assert scene.text("locked.md") == "text\n" and not (scene.checkout / "new.md").exists()
    finally:
        scene.close()
    assert not scene.root.exists()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="no /proc")
def test_what_a_client_leaves_running_ends_with_its_scene() -> None:
    scene = Scene(runtime("cline"))
    try:
        left = subprocess.Popen(["sleep", "600"], env=scene.env, start_new_session=True)
    finally:
        scene.close()
    assert left.wait(60) == -signal.SIGKILL and not scene.root.exists()


def test_a_client_whose_script_is_over_is_not_waited_for_and_one_that_stands_still_is_told(monkeypatch) -> None:
    scene = Scene(runtime("codex"))
    try:
        assert scene.run(["sleep", "600"], lambda: True) == ""
        monkeypatch.setattr("swarm_mcp.play.scene.SECONDS", 0.1)
        assert "asked its model nothing for 0.1 s" in scene.run(["sleep", "600"])
    finally:
        scene.close()


def test_a_release_that_is_too_old_is_not_started(monkeypatch: pytest.MonkeyPatch) -> None:
    client = runtime("hermes")
    monkeypatch.setattr(client, "look", lambda *_given: Look([], client.installed_at(Path("/nowhere"))), raising=False)
    monkeypatch.setattr(client, "release", lambda: "0.16.0", raising=False)
    (found,) = playing.findings(client, "", Steps())
    assert (found.status, found.message) == ("fail", "not played: Hermes 0.16.0 is too old")
    assert client.oldest in found.mend


def test_all_modes_begin_with_the_default_one_and_none_is_played_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    class Played(Client):
        name, requests, modes = "codex", "/responses", ("one", "two", "three")

        def bring(self) -> None:
            """Nothing: no session is started."""

    played: list[str] = []

    def session(client: Client, scene: Scene, mode: str) -> Outcome:
        played.append(f"{client.model} {mode}")
        return Outcome(mode or "two", {}, KEPT, free=True, greeted=True, trouble="")

    codex = runtime("codex")
    monkeypatch.setattr(
        codex, "look", lambda _folder, _steps: Look([], codex.installed_at(Path("/nowhere"))), raising=False
    )
    monkeypatch.setattr(codex, "release", lambda: "1.0", raising=False)
    monkeypatch.setattr(playing, "CLIENTS", {"codex": Played})
    monkeypatch.setattr(playing, "_played", session)
    found = list(playing.findings(codex, "all", Steps(), ["a", "b"]))
    assert played == ["a ", "a one", "a three", "b ", "b one", "b three"]
    assert [one.details["mode"] for one in found if one.details["by_default"]] == ["two", "two"]


def test_a_service_in_a_policy_of_grok_is_refused(monkeypatch: pytest.MonkeyPatch, home: Path, tmp_path: Path) -> None:
    monkeypatch.setattr(grok, "POLICIES", tmp_path)
    for text in ("[models]\nbase_url = 'https://model.example'\n", "allow_managed_hooks_only = true\n"):
        (tmp_path / "requirements.toml").write_text(text)
        scene = Scene(runtime("grok"))
        try:
            if "url" in text:
                with pytest.raises(ClientFailed, match="requirements.toml, a policy, may lead it to a real service"):
                    Grok(scene).bring()
            else:
                Grok(scene).bring()
        finally:
            scene.close()
