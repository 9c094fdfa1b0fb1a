"""Only the team agent loads the server's client: loading it takes longer than a whole check may."""

import subprocess
import sys

import pytest

from team.homes import Home, wait_for

DRIVER = "psycopg"
VERBS = (
    ["lock", "src/a.py", "--as", "s1"], ["why", "src/a.py"], ["why", "src/b.py"], ["locks"], ["status"], ["instances"],
    ["lock", "src/b.py", "--as", "s1"], ["unlock", "src/a.py", "--as", "s1"], ["guard", "check"],
)  # fmt: skip


@pytest.fixture
def homes(tmp_path, team: str, repository: str):
    """Two machines that have joined; src/b.py is locked on the other one."""
    made = [Home(tmp_path, name) for name in ("north", "south")]
    try:
        for one in made:
            one.run("team", "join", team, "--repository", repository)
        made[1].lock("src/b.py")
        made[0].begin("s1")
        wait_for(lambda: '"deny"' in made[0].write("s1", "src/b.py"))
        yield made
    finally:
        for one in made:
            one.end()


def loaded(said: str) -> set[str]:
    """Return the packages that a Python has loaded, from its own list."""
    names = (line.rpartition("|")[2].strip() for line in said.splitlines() if line.startswith("import time:"))
    return {name.partition(".")[0] for name in names}


def test_no_verb_loads_what_speaks_to_the_server(homes: list[Home]) -> None:
    north = homes[0]
    for words in VERBS:
        found = loaded(north.run(*words, code=None, PYTHONPROFILEIMPORTTIME="1").stderr)
        assert "swarm_mcp" in found and DRIVER not in found, words
    asked = [sys.executable, "-X", "importtime", "-c", f"import {DRIVER}"]
    assert DRIVER in loaded(subprocess.run(asked, capture_output=True, text=True, check=True).stderr)


@pytest.mark.parametrize("file", ["src/a.py", "src/b.py"])
def test_no_hook_does_whether_it_denies_or_not(homes: list[Home], file: str) -> None:
    ran = homes[0].check("s1", file, PYTHONPROFILEIMPORTTIME="1")
    found = loaded(ran.stderr)
    assert "swarm_hook_core" in found and DRIVER not in found
    assert ('"deny"' in ran.stdout) is (file == "src/b.py")
