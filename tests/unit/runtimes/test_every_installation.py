"""An installation in each client by files of ours: done once, found, and taken out without a trace."""

import shutil
from contextlib import suppress
from pathlib import Path

import pytest

from swarm_mcp.errors import SwarmError
from swarm_mcp.runtimes import bundle, runtime
from swarm_mcp.runtimes.steps import Steps

pytestmark = pytest.mark.slow

HOOKS = '{"PreToolUse": [{"matcher": "view", "hooks": [{"type": "command", "command": "true"}]}]}'
SERVERS = '{"files":{"command":"files","timeout":1.50}}'
# Client -> the files of a person's, in their home, that are to come back as they were.
PERSONS = {
    "auggie": {".augment/settings.json": f'{{\n  "hooks": {HOOKS},\n  "mcpServers": {SERVERS}\n}}\n'},
    "cline": {".cline/data/settings/cline_mcp_settings.json": f'{{"mcpServers":{SERVERS},\r\n\t"k": 1}}'},
    "copilot": {".copilot/settings.json": '// mine\n{\n    "a": 1, // kept\n    "enabledPlugins": {\n        "x@y": true,\n    },\n}\n'},
    "cursor": {
        ".cursor/hooks.json": '{\r\n  // mine\r\n  "version": 1,\r\n  "hooks": {"preToolUse": [{"command": "x"}],},\r\n}\r\n',
        ".cursor/mcp.json": f'{{"mcpServers": {SERVERS}}}',
    },
    "gemini": {".gemini/settings.json": '{ // mine\n  "hooksConfig": {"enabled": true},\n}\n'},
    "grok": {".grok/config.toml": "# mine\n[models]\ndefault = 'x'  # why", ".grok/hooks/mine.json": "{}"},
    "kilo": {".config/kilo/kilo.jsonc": '{ // mine\n  "mcp": {},\n}\n', ".config/kilo/plugin/mine.js": ""},
    "kimi": {".kimi-code/plugins/installed.json": '{\n  "version": 1,\n  "plugins": [{"id": "o", "root": "/o", "enabled": true}]\n}'},
    "letta": {".letta/settings.json": f'{{\n  "hooks": {HOOKS},\n  "a": 1\n}}\n'},
    "omp": {".omp/agent/config.yml": "# mine\nedit:\n  mode: replace\n", ".omp/agent/extensions/mine.ts": ""},
    "opencode": {".config/opencode/opencode.jsonc": '{ // mine\n  "mcp": {},\n}\n', ".config/opencode/plugin/mine.js": ""},
    "qwen": {".qwen/settings.json": '// mine\n{"a": 1}'},
}  # fmt: skip

SERVER = '{"mcpServers": {"swarm": {"command": "other"}}}'
# Client, a file of another owner in the way, or a broken one, its content, and a word of the refusal.
THEIRS = [
    ("auggie", ".augment/settings.json", SERVER, "swarm"),
    ("cline", ".cline/data/settings/cline_mcp_settings.json", SERVER, "not swarm's"),
    ("copilot", ".copilot/settings.json", "[1, 2", "JSON"),
    ("gemini", ".gemini/extensions/swarm/gemini-extension.json", '{"name": "swarm", "version": "9"}', "another extension"),
    ("gemini", ".gemini/extensions/swarm/.gemini-extension-install.json", '{"source": "/b", "type": "local"}', "another ex"),
    ("grok", ".grok/skills/swarm/SKILL.md", "mine", "is not ours"),
    ("kilo", ".config/kilo/plugin/swarm-mcp.ts", "export {}", "not ours"),
    ("kimi", ".kimi-code/plugins/installed.json", '{"plugins": [{"id": "swarm", "root": "/o"}]}', "another plugin"),
    ("kimi", ".kimi-code/plugins/installed.json", "[1, 2", "JSON"),
    ("omp", ".omp/agent/extensions/swarm-mcp.ts", "export {}", "not ours"),
    ("opencode", ".config/opencode/plugin/swarm-mcp.ts", "export {}", "not ours"),
    ("qwen", ".qwen/extensions/swarm/mine", "", "another extension"),
    ("qwen", ".qwen/extensions/swarm/.qwen-extension-install.json", '{"source": "/usr", "type": "link"}', "another extension"),
]  # fmt: skip


@pytest.fixture(scope="module")
def marketplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A local bundle, in a folder with a name that a shell would read otherwise."""
    folder = tmp_path_factory.mktemp("marketplace") / "a 'market' $place"
    bundle.write(folder, local=True)
    return folder


def below(home: Path) -> dict[str, bytes | None]:
    """All files and folders in the home but ours."""
    paths = [path for path in home.rglob("*") if path.relative_to(home).parts[0] not in ("state", "store", ".local")]
    return {str(path): path.read_bytes() if path.is_file() else None for path in paths}


@pytest.mark.parametrize("is_new", [False, True], ids=["beside a person's files", "in a new home"])
@pytest.mark.parametrize("name", PERSONS)
def test_it_is_done_once_found_and_taken_out_without_a_trace(
    name: str, is_new: bool, home: Path, marketplace: Path, tmp_path: Path
):
    (home / ".config").mkdir()
    for file, text in PERSONS[name].items() if not is_new else ():
        (home / file).parent.mkdir(parents=True, exist_ok=True)
        (home / file).write_bytes(text.encode())
    client, before = runtime(name), below(home)
    assert client.look(marketplace, Steps()).findings[0].status == "warn"
    assert not client.traces() and client.version() == ""
    shutil.copytree(marketplace, tmp_path / "moved")
    for place in (marketplace, tmp_path / "moved", marketplace):
        steps = Steps()
        assert client.install(place, steps).root == place and steps.done
    again = Steps()
    client.install(marketplace, again)
    assert again.done == [], "nothing is left to do"
    assert client.traces() and client.version() == bundle.__version__
    look = client.look(marketplace, Steps())
    assert look.findings[0].status == "ok" and look.installed and look.installed.commands()
    for _again in range(2):
        client.uninstall(Steps())
    assert below(home) == before and not client.traces()


@pytest.mark.parametrize(("name", "file", "content", "why"), THEIRS)
def test_what_is_somebody_else_s_is_left_alone(
    name: str, file: str, content: str, why: str, home: Path, marketplace: Path
):
    (home / file).parent.mkdir(parents=True)
    (home / file).write_text(content)
    client = runtime(name)
    with pytest.raises(SwarmError, match=why):
        client.install(marketplace, Steps())
    with suppress(SwarmError):  # a file that cannot be read says so again
        client.uninstall(Steps())
    assert not client.traces()
    assert {path for path, data in below(home).items() if data is not None} == {str(home / file)}
    assert (home / file).read_text() == content
