"""Hermes' own features: code that calls its tools and writes files itself, and a shell that keeps its folder."""

from collections.abc import Iterator

import pytest

from .checks import assert_denied, assert_text, assert_untouched
from .client import Call
from .marketplace import Marketplace
from .more import OtherClient, prepared

pytestmark = pytest.mark.xdist_group("more-hermes")


@pytest.fixture(scope="module")
def installed() -> Iterator[OtherClient]:
    with prepared("hermes") as client:
        Marketplace(client.ground, "install").install(client.name)
        yield client


@pytest.fixture
def hermes(installed: OtherClient) -> Iterator[OtherClient]:
    installed.ground.renew()
    yield installed
    installed.ground.end_processes()


def code(text: str) -> Call:
    return {"name": "execute_code", "input": {"code": text}}


def test_code_is_read_and_its_calls_are_checked(hermes: OtherClient) -> None:
    hermes.ground.coordinator.peer_lock("notes.md")
    opened = "open('notes.md', 'w').write('mine')"
    called = "from hermes_tools import write_file\nwrite_file('notes.md', 'mine')\nprint('done')"
    typed = "from hermes_tools import terminal\nterminal('echo mine > notes.md')\nprint('done')"
    hermes.run("work", *map(code, (opened, called, typed)), code("open('free.md', 'w').write('free')"))
    told = hermes.results("work")
    assert len(told) == 4 and ["swarm lock blocked" in text for text in told] == [True, True, True, False], told
    assert "done" in told[1] and "done" in told[2], "the code goes on, and the model is told all the same"
    assert_untouched(hermes, "notes.md")
    assert_text(hermes, "free.md", "free")


def test_code_that_nobody_can_read_is_looked_at_afterwards(hermes: OtherClient) -> None:
    hermes.ground.coordinator.peer_lock("notes.md")
    (hermes.ground.checkout / "made.py").write_text("open('no' + 'tes.md', 'w').write('spoilt')")
    hermes.run("work", code("import runpy\nrunpy.run_path('made.py')"))
    assert "swarm-mcp restore" in hermes.last_result("work")


def test_paths_count_from_where_the_shell_has_gone(hermes: OtherClient) -> None:
    hermes.ground.coordinator.peer_lock("notes.md")
    own = {"name": "terminal", "input": {"command": "echo mine > notes.md", "workdir": str(hermes.ground.checkout)}}
    free = hermes.create("notes.md", "of its own\n")
    hermes.run("work", hermes.shell("cd sub"), free, own, hermes.replace("../notes.md", "line one", "mine"))
    assert ["swarm lock blocked" in text for text in hermes.results("work")] == [False, False, True, True]
    assert_denied(hermes, "work", "notes.md")
    assert_text(hermes, "sub/notes.md", "of its own\n")
