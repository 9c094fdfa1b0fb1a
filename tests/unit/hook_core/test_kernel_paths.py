"""The paths to hold: real paths of existing files that others have locked."""

from pathlib import Path

import pytest
from support.fixtures import Ground

from swarm_hook_core.kernel.plans import Plan
from swarm_hook_core.kernel.reach import held_now


@pytest.fixture
def locked(ground: Ground):
    """Have a peer lock paths of the checkout; return the paths to hold for a session beside it."""
    peer, me = ground.session("peer"), ground.session("me")

    def lock(*names: str) -> list[str]:
        for name in names:
            ground.lock(peer, ground.repo / name)
        return held_now(Plan("claude-code", "none", me["id"], roots=[str(ground.repo)], store=ground.database))[0]

    return lock


def test_a_link_is_held_where_it_leads(ground: Ground, locked, tmp_path: Path) -> None:
    (ground.repo / "src").mkdir()
    (ground.repo / "src" / "real.py").write_text("")
    (ground.repo / "link.py").symlink_to("src/real.py")
    (ground.repo / "way").symlink_to("src")
    real = str(ground.repo / "src" / "real.py")
    assert locked("link.py") == [real]
    assert locked("way/real.py") == [real], "a folder on the way is a link"


def test_what_is_not_there_cannot_be_held(ground: Ground, locked) -> None:
    (ground.repo / "dangling").symlink_to("nowhere")
    (ground.repo / "there").write_text("")
    assert locked("missing", "no/such/folder", "dangling", "there") == [str(ground.repo / "there")]


def test_many_of_one_folder_and_the_folder_itself(ground: Ground, locked) -> None:
    (ground.repo / "src").mkdir()
    names = [f"src/f{number}.py" for number in range(20)]
    for name in names:
        (ground.repo / name).write_text("")
    assert sorted(locked(*names)) == sorted(str(ground.repo / name) for name in names)
    (ground.repo / "docs").mkdir()
    assert str(ground.repo / "docs") in locked("docs")
