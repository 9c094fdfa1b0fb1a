"""`init` adds to a project's own files and loses nothing; `doctor` tells copies of swarm-mcp apart."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import repository
from support.files import folder_at, program_at, text_at
from support.fixtures import SWARM, Ground

from swarm_hook_core import coordinator
from swarm_mcp.doctor.own_checks import of_plugin, which_copy
from swarm_mcp.errors import SwarmError
from swarm_mcp.installation import plugin_source
from swarm_mcp.runtimes import bundle, client_settings, codex, runtime, users_file

pytestmark = [pytest.mark.slow, pytest.mark.thorough]


ENTRY = {"command": "swarm-mcp", "args": ["serve"]}
SKILLS = ("swarm-mcp", "swarm")


def config(ground: Ground) -> Path:
    return ground.repo / ".mcp.json"


def test_a_bare_project_gets_the_server_and_the_skills(ground: Ground):
    done = ground.swarm("init")
    assert done.code == 0 and done.err == ""
    assert json.loads(config(ground).read_text()) == {"mcpServers": {"swarm": ENTRY}}
    source = plugin_source() / "skills"
    for name in SKILLS:
        copy = ground.repo / ".claude" / "skills" / name
        for path in (source / name).rglob("*.md"):
            assert (copy / path.relative_to(source / name)).read_bytes() == path.read_bytes()
    for path in (".mcp.json", ".claude/skills/swarm-mcp"):
        assert f"  wrote {ground.repo / path}\n" in done.out
    assert not list(ground.repo.rglob("*.tmp"))


def test_a_second_time_nothing_changes(ground: Ground):
    ground.swarm("init")
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in ground.repo.rglob("*") if path.is_file()}
    steps = ground.swarm("init", "--json").json["steps"]
    assert [step["action"] for step in steps] == ["skipped"] * 3
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in before} == before


def test_dir_is_made_and_skills_can_be_left_out(ground: Ground):
    for flag in ("--no-skills", "--no-skill"):
        done = ground.swarm("init", "--dir", f"new/{flag}", flag, "--json")
        folder = ground.repo / "new" / flag
        assert done.json == {
            "directory": str(folder), "steps": [{"action": "wrote", "path": str(folder / ".mcp.json")}]
        }  # fmt: skip
        assert os.listdir(folder) == [".mcp.json"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            '{\n    "other": 1.50,\n    "mcpServers": {\n        "a": {"command": "x"}\n    }\n}\n',
            '{\n    "other": 1.50,\n    "mcpServers": {\n        "a": {"command": "x"},\n        "swarm": {\n'
            '            "command": "swarm-mcp",\n            "args": [\n                "serve"\n            ]\n'
            "        }\n    }\n}\n",
        ),
        ('{"x":1}', '{"x":1, "mcpServers": {"swarm": {"command": "swarm-mcp", "args": ["serve"]}}}'),
        (
            '{\r\n\t"x": "\\u00e9é"\r\n}\r\n',
            '{\r\n\t"x": "\\u00e9é",\r\n\t"mcpServers": {\r\n\t\t"swarm": {\r\n\t\t\t"command": "swarm-mcp",\r\n'
            '\t\t\t"args": [\r\n\t\t\t\t"serve"\r\n\t\t\t]\r\n\t\t}\r\n\t}\r\n}\r\n',
        ),
        (
            '{\n  "mcpServers": {}\n}',
            '{\n  "mcpServers": {\n    "swarm": {\n      "command": "swarm-mcp",\n      "args": [\n        "serve"\n'
            "      ]\n    }\n  }\n}",
        ),
        (
            '{\n  "mcpServers": {"swarm": {"command": "npx swarm-mcp", "env": {"A": "1"}}, "z": 1e2}\n}',
            '{\n  "mcpServers": {"swarm": {"command": "swarm-mcp", "env": {"A": "1"}, "args": ["serve"]}, "z": 1e2}\n}',
        ),
    ],
)
def test_every_other_byte_stays(ground: Ground, before: str, after: str):
    config(ground).write_bytes(before.encode())
    step = ground.swarm("init", "--no-skills", "--json").json["steps"][0]
    assert config(ground).read_bytes().decode() == after
    assert step["action"] == "updated"


def test_byte_order_mark_mode_and_link_stay(ground: Ground):
    real = ground.folder / "shared.json"
    real.write_bytes(users_file.BYTE_ORDER_MARK + b'{"a": 1}')
    real.chmod(0o640)
    config(ground).symlink_to(real)
    assert ground.swarm("init", "--no-skills").code == 0
    assert config(ground).is_symlink() and real.stat().st_mode & 0o777 == 0o640
    raw = real.read_bytes()
    assert raw.startswith(users_file.BYTE_ORDER_MARK) and json.loads(raw[3:])["mcpServers"]["swarm"] == ENTRY


@pytest.mark.parametrize(
    "content",
    [b"{", b"[]", b"null", b'{"mcpServers": []}', b'{"mcpServers": null}', b'{"a": 1,}', b"{} // note", b"\xff\xfe",
     b'{"a": NaN}', b"[" * 100_000, b'{"mcpServers": {"swarm": "x"}}'],
)  # fmt: skip
def test_what_cannot_be_merged_is_refused_and_untouched(ground: Ground, content: bytes):
    config(ground).write_bytes(content)
    done = ground.swarm("init")
    assert (done.code, done.out) == (1, "") and done.err.count("\n") == 1 and ".mcp.json" in done.err, done
    assert config(ground).read_bytes() == content
    assert sorted(os.listdir(ground.repo)) == [".git", ".mcp.json"]


@pytest.mark.parametrize("theirs", [{"command": "npx", "args": ["-y", "mine"]}, {"type": "http", "url": "u"}])
def test_ours_has_another_name_beside_somebody_else_s_server(ground: Ground, theirs: dict):
    config(ground).write_text(json.dumps({"mcpServers": {"swarm": theirs}}))
    for _again in range(2):
        assert ground.swarm("init", "--no-skills").code == 0
    assert json.loads(config(ground).read_text()) == {"mcpServers": {"swarm": theirs, "swarm-locks": ENTRY}}


def test_force_replaces_a_server_of_another_kind(ground: Ground):
    config(ground).write_text('{"mcpServers": {"swarm": {"type": "http", "url": "u"}}}')
    assert ground.swarm("init", "--no-skills", "--force").code == 0
    assert json.loads(config(ground).read_text()) == {"mcpServers": {"swarm": ENTRY}}


def test_skills_that_are_there_are_kept_unless_forced(ground: Ground):
    mine = text_at(ground.repo / ".claude" / "skills" / "swarm" / "SKILL.md", "mine")
    (mine.parent / "notes.md").write_text("mine too")
    steps = ground.swarm("init", "--json").json["steps"]
    assert [step["action"] for step in steps] == ["wrote", "wrote", "skipped"] and mine.read_text() == "mine"
    steps = ground.swarm("init", "--force", "--json").json["steps"]
    assert [step["action"] for step in steps] == ["skipped", "skipped", "updated"]
    assert mine.read_text() != "mine" and (mine.parent / "notes.md").read_text() == "mine too"


def test_a_linked_skill_is_not_written_through(ground: Ground):
    elsewhere = folder_at(ground.folder / "elsewhere")
    skill = ground.repo / ".claude" / "skills" / "swarm"
    skill.parent.mkdir(parents=True)
    skill.symlink_to(elsewhere)
    assert ground.swarm("init").code == 0
    assert ground.swarm("init", "--force").code == 1
    assert os.listdir(elsewhere) == []


def test_a_linked_file_of_a_skill_is_not_written_through(ground: Ground):
    elsewhere = text_at(ground.repo.parent / "theirs.md", "theirs")
    file = ground.repo / ".claude" / "skills" / "swarm" / "SKILL.md"
    file.parent.mkdir(parents=True)
    file.symlink_to(elsewhere)
    assert ground.swarm("init", "--force").code == 0
    assert elsewhere.read_text() == "theirs" and file.read_text() != "theirs"


def test_a_file_in_the_way_is_one_line(ground: Ground):
    (ground.repo / "file").write_text("x")
    done = ground.swarm("init", "--dir", "file")
    assert done.code == 1 and done.err.count("\n") == 1 and (ground.repo / "file").read_text() == "x"


def test_a_failed_write_leaves_the_old_file(ground: Ground, failing):
    config(ground).write_text('{"a": 1}')

    failing(os, "fsync", OSError(28, "No space left on device"))
    done = ground.swarm("init", "--no-skills")
    assert done.code == 1 and "No space left" in done.err
    assert config(ground).read_text() == '{"a": 1}' and sorted(os.listdir(ground.repo)) == [".git", ".mcp.json"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
SERVERS = st.dictionaries(st.text(), JSON, max_size=3)


@pytest.mark.slow
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    tree=st.dictionaries(st.text(), JSON, max_size=3), servers=st.none() | SERVERS,
    indent=st.sampled_from([None, 0, 1, 2, 8, "\t"]), ascii_only=st.booleans(), last=st.booleans(),
)  # fmt: skip
def test_any_file_is_the_same_afterwards_but_for_the_entry(
    tmp_path: Path, tree: dict, servers: dict | None, indent, ascii_only: bool, last: bool
):
    tree.pop("mcpServers", None)
    (servers or {}).pop("swarm", None)
    ours = {} if servers is None else {"mcpServers": servers}
    before = {**tree, **ours} if last else {**ours, **tree}
    path = tmp_path / ".mcp.json"
    text = json.dumps(before, indent=indent, ensure_ascii=ascii_only)
    path.write_text(text, encoding="utf-8", errors="surrogatepass")
    try:
        client_settings.add_server(path)
    except SwarmError as error:
        assert "not UTF-8" in str(error)
        return
    after = json.loads(path.read_text(encoding="utf-8"))
    assert after == {**before, "mcpServers": {**(servers or {}), "swarm": ENTRY}}
    assert list(after) == [*before, *(["mcpServers"] if servers is None else [])]
    assert client_settings.add_server(path) == "skipped"


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A plugin that looks for its command, on a machine without one."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(coordinator, "PLACES", ())
    monkeypatch.delenv("SWARM_UVX")
    bundle.write(tmp_path / "plugin")
    return tmp_path / "plugin"


def said(client: str, root: Path) -> tuple[str, str]:
    finding = of_plugin(runtime(client), root)
    assert finding.name == f"{client} command"
    return finding.status, finding.message


@pytest.mark.parametrize("client", ["claude-code", "codex", "pi"])
def test_a_plugin_that_was_installed_names_this_copy(client: str, tmp_path: Path) -> None:
    root = tmp_path / "plugin"
    bundle.write(root, local=True)
    assert said(client, root)[0] == "ok" and said(client, root)[1].startswith("this one")


def test_what_codex_copies_names_it_as_well(tmp_path: Path) -> None:
    bundle.write(tmp_path / "plugin", local=True)
    for name, content in codex.files_of(tmp_path / "plugin").items():
        (tmp_path / "copy" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "copy" / name).write_bytes(content)
    assert said("codex", tmp_path / "copy")[1].startswith("this one")


def test_a_plugin_that_names_another_copy(tmp_path: Path) -> None:
    root = tmp_path / "plugin"
    bundle.write(root, local=True)
    record = root / "install.json"
    for words, status in (([sys.executable, "-m", "swarm_mcp"], "info"), (["/none/such"], "fail")):
        record.write_text(json.dumps({**json.loads(record.read_text()), "coordinator": words}))
        assert said("claude-code", root)[0] == status


def test_a_plugin_that_looks_for_its_command(plugin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    status, words = said("claude-code", plugin)
    assert (status, words) == ("warn", "none; its sessions can lock nothing")
    (tmp_path / "bin" / "uv").symlink_to(sys.executable)
    assert said("claude-code", plugin) == ("info", "none yet; the next session's start has uv fetch it")
    text_at(Path(coordinator.fetching_log()), "error: no such index\nhint: none\n")
    assert said("claude-code", plugin) == ("warn", "none; uv could not fetch it: error: no such index")
    monkeypatch.setenv("SWARM_UVX", "off")
    assert said("claude-code", plugin)[0] == "warn"
    monkeypatch.delenv("SWARM_UVX")
    subprocess.run([*SWARM, "fetched"], check=True, capture_output=True, timeout=60)
    assert said("codex", plugin) == ("ok", f"the plugin's own, fetched by uv: {coordinator.launcher()}")
    ours = program_at(tmp_path / "bin" / "swarm-mcp", "#!/bin/sh\n: swarm_mcp.cli.main\n")
    assert said("pi", plugin) == ("ok", f"found on PATH: {ours}")
    monkeypatch.setenv("SWARM_MCP_BIN", "true")
    shutil.copy("/bin/true", tmp_path / "bin" / "true")
    assert said("pi", plugin)[0] == "info"


def test_this_process_knows_what_it_is(ground: Ground) -> None:
    assert which_copy().startswith("installed in ")
    subprocess.run([*SWARM, "fetched"], check=True, capture_output=True, timeout=60)
    assert which_copy().startswith("the plugin's own, fetched by uv: ")


def test_a_checkout_is_called_one(ground: Ground) -> None:
    code = "from swarm_mcp.doctor.own_checks import which_copy; print(which_copy())"
    env = {**os.environ, "PYTHONPATH": str(repository.ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, cwd=ground.repo, capture_output=True, text=True, timeout=60
    )
    assert done.stdout.startswith("a checkout: "), done.stderr
