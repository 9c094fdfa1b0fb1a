"""oh-my-pi's own parts: its payloads, the five forms of its edits, and its only traces, links."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from support.sessions import captured, new_session, peer_locks, run

from swarm_hook_core import EDIT, REMOVE, REPLACE
from swarm_mcp.runtimes import bundle, hook_config, runtime
from swarm_mcp.runtimes.omp import home
from swarm_mcp.runtimes.steps import Steps

pytestmark = [pytest.mark.slow, pytest.mark.thorough]


def test_a_command_runs_in_the_folder_that_its_input_names(repo: Path):
    call = {**captured("omp", "PreToolUse.bash", repo), "session_id": new_session()}
    call["tool_input"]["cwd"] = "sub"
    peer_locks(repo, repo / "sub" / "shell.txt")
    assert str(repo / "sub" / "shell.txt") in run("omp", "pre_tool_use", call).reason


def test_the_call_of_a_device_writes_no_file_itself(repo: Path):
    peer_locks(repo, repo)
    call = {**captured("omp", "PreToolUse.write.device", repo), "session_id": new_session()}
    assert run("omp", "pre_tool_use", call).out == ""


@pytest.mark.parametrize(
    ("given", "changes"),
    [
        ({"path": "a", "old_string": "x", "new_string": "y"}, [("a", EDIT)]),
        ({"_path": "a", "old_string": "x", "new_string": "y"}, [("a", EDIT)]),
        ({"path": "a", "edits": [{"op": "create", "diff": "+x"}]}, [("a", REPLACE)]),
        ({"path": "a", "edits": [{"op": "delete"}]}, [("a", REMOVE)]),
        ({"path": "a", "edits": [{"rename": "b", "diff": "@@"}]}, [("a", REMOVE), ("b", REPLACE)]),
        ({"input": "*** Begin Patch\n*** Update File: a\n@@\n+x\n*** End Patch"}, [("a", EDIT)]),
        ({"input": "*** Begin Patch\n[a b.md#12Af]\nPUT 1.=1:\n+x\n*** End Patch"}, [("a b.md", EDIT)]),
        ({"input": '[a]\nPUT <1:\n+x\n["b#c"#1234]\nREM'}, [("a", EDIT), ("b#c", REMOVE)]),
        ({"_input": "[a#1234]\r\nPUT 1.=1:\r\n+x\r\nMV 'b'\r\n"}, [("a", REMOVE), ("b", REPLACE)]),
        ({"input": "\ufeff\u00b6a#1234\nPUT 1.=1:\n+x", "path": "a", "paths": ["a"]}, [("a", EDIT)]),
        ({"input": '<SM:EDIT path="a">\n<SM:FIND>\nx\n</SM:FIND>\n<SM:EDIT>\n<SM:EDIT all path=\'b\'>'}, [("a", EDIT), ("b", EDIT)]),
        ({"path": "a", "content": "x"}, [("a", REPLACE)]),
        ({"path": "a.zip:b/c", "content": "x"}, [("a.zip:b/c", REPLACE), ("a.zip", REPLACE)]),
        ({"path": "local://plan.md", "content": "x"}, []),
        ({"ops": [{"pat": "f", "out": "g"}], "paths": ["a.py", "b.py"]}, [("a.py", EDIT), ("b.py", EDIT)]),
    ],
)  # fmt: skip
def test_every_form_of_an_edit_names_its_files(given: dict[str, Any], changes: list[tuple[str, str]]):
    assert hook_config("omp").changes_of("edit", given) == changes


def test_a_path_below_the_home_is_read_as_the_client_does():
    place = os.path.join(os.path.expanduser("~"), "a")
    for given in ({"path": "~/a", "content": "x"}, {"input": "[~/a#1234]\nREM"}, {"ops": [], "paths": ["~/a"]}):
        assert [path for path, _how in hook_config("omp").changes_of("edit", given)] == [place]


@pytest.mark.parametrize("given", [None, [], {}, {"path": 1}, {"path": " "}, {"input": "x"}, {"input": ""}])
def test_a_call_that_names_no_file_is_said_to_be_unreadable(given: Any):
    with pytest.raises(ValueError, match="p"):
        hook_config("omp").changes_of("edit", given)


def files() -> dict[str, bytes]:
    return {str(path.relative_to(home())): path.read_bytes() for path in home().rglob("*") if path.is_file()}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A bundle, beside a home of the client with settings of a person."""
    bundle.write(tmp_path / "marketplace")
    home().mkdir(parents=True)
    (home() / "config.yml").write_text("# mine\nedit:\n  mode: replace\n")
    return tmp_path / "marketplace"


def install(place: Path) -> list[str]:
    steps = Steps()
    assert runtime("omp").install(place, steps).root == place
    return steps.done


def test_links_to_a_bundle_that_has_gone_are_told_and_led_elsewhere(place: Path, tmp_path: Path):
    client, old = runtime("omp"), tmp_path / "old"
    shutil.copytree(place, old)
    install(old)
    shutil.rmtree(old)
    (found,) = client.look(place, Steps()).findings
    assert found.status == "fail" and str(old) in found.message
    assert len(install(place)) == 3
    assert [found.status for found in client.look(place, Steps()).findings] == ["ok"]
