"""Trees with a live session of another client: resets, switches, submodules, other tools; and a tree that has gone."""

import subprocess

import pytest

from .client import Client
from .clients import CLIENTS
from .conversation import Conversation

pytestmark = pytest.mark.ways("install")

PEER = "the-night-shift"
TREE = ".claude/worktrees/wt"
ALLOWED = ("-c", "protocol.file.allow=always")


def told(session: Conversation, name: str, command: str) -> str:
    """Return the answer to a shell command in a turn of its own."""
    session.run(name, session.client.shell(command))
    return session.client.last_result(name)


def short(tree: object) -> str:
    words = ["git", "-C", str(tree), "rev-parse", "--short", "HEAD"]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize("name", CLIENTS)
def test_a_tree_with_a_live_session_is_held(both: dict[str, Client], name: str) -> None:
    client, (other,) = both[name], set(CLIENTS) - {name}
    peer, ground = both[other], client.ground
    top = ground.checkout
    for key, value in (("user.name", "t"), ("user.email", "t@t")):
        ground.git(top, "config", key, value)
    ground.git(top, "commit", "-q", "--allow-empty", "-m", "second")
    ground.git(top, *ALLOWED, "submodule", "add", "-q", str(top), "module")
    ground.git(top, "commit", "-qam", "module")
    ground.git(top, "worktree", "add", "-q", "--detach", TREE)
    tree, module = top / TREE, top / "module"
    ground.git(tree, "commit", "-q", "--allow-empty", "-m", "Parse empty lines")
    lost, line = short(tree), "a person's line\n"
    (module / "notes.md").write_text(line)
    label = {f"SWARM_{peer.prefix}_LABEL": PEER}
    with Conversation(client) as session, Conversation(peer, label, tree) as tenant:
        tenant.run("works", peer.shell("ls"))
        # HEAD of the tenant's tree, from elsewhere
        for number, command in enumerate((f"git -C {TREE} checkout main~1", f"cd {TREE} && git reset --hard HEAD~1")):
            said = told(session, f"head-{number}", command)
            assert f'{lost} "Parse empty lines"' in said and PEER in said, said
            assert short(tree) == lost, "it was denied"
        # A line in a submodule
        for number, command in enumerate(("submodule foreach 'git reset --hard'", "reset --hard --recurse-submodules")):
            said = told(session, f"submodule-{number}", f"git {command}")
            assert "module/notes.md" in said and (module / "notes.md").read_text() == line, said
        # Other tools of version control
        told(session, "jj", "jj undo")
        assert "may discard or move the work of others" in client.said("jj")
        # The tenant's tree, by its root's name alone
        said = told(session, "destroys", f"but worktree destroy {TREE}")
        assert f"would remove {tree}" in said and lost in said, said
        # The tenant leaves its tree
        said = told(tenant, "leaves", "cd ../../.. && git checkout -b x")
        assert f"the files, the index or HEAD of the main checkout {top}" in said, said
        assert branch(top) == "main"
        # A script empties that tree
        (ground.tmp / "empties.sh").write_text(f"rm -rf {tree}/.git {tree}/*\n")
        tenant.run("falls", peer.shell(f"sh {ground.tmp}/empties.sh"), peer.shell("git checkout -b y"))
        said = peer.last_result("falls")
        assert f"{tree}, the work tree in which this session began, has gone" in said and branch(top) == "main", said
        # HEAD of the checkout, beside another session
        with Conversation(peer, label) as beside:
            beside.run("joins", peer.shell("ls"))
            (top / ".git" / "config.lock").touch()
            for number, command in enumerate(("git symbolic-ref HEAD refs/heads/x", "rm .git/config.lock")):
                said = told(session, f"beside-{number}", command)
                assert "swarm: " in said and "goes ahead" in said, said
            assert branch(top) == "main" and (top / ".git" / "config.lock").exists()
            (top / ".git" / "config.lock").unlink()


def branch(top: object) -> str:
    words = ["git", "-C", str(top), "branch", "--show-current"]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
