"""A session that commits its own lines alone, by the tool, beside a person's uncommitted work."""

from __future__ import annotations

import subprocess

import pytest

from .client import Client

pytestmark = pytest.mark.ways("install")


def test_a_commit_has_the_session_s_own_work_alone(client: Client) -> None:
    ground = client.ground
    file = ground.checkout / "work.md"
    file.write_text("alpha\nbeta\ngamma\n")
    ground.commit(ground.checkout)
    file.write_text("PERSON\nbeta\ngamma\n")
    for name, value in (("user.name", "t"), ("user.email", "t@t")):
        subprocess.run(["git", "config", name, value], cwd=ground.checkout, check=True)
    client.run("mine", client.create("own.md", "MINE\n"), *client.swarm_tools(("commit", {"message": "mine"})))
    show = ("git", "show", "--format=%s", "--name-only", "HEAD")
    done = subprocess.run(show, cwd=ground.checkout, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["mine", "own.md"], client.results("mine")
    assert file.read_text() == "PERSON\nbeta\ngamma\n"
