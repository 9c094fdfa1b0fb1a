"""`swarm-mcp undo` in real clients: as a tool of the model, and typed by a person afterwards."""

import pytest

from .checks import assert_text
from .client import Client

pytestmark = pytest.mark.ways("install")

COMMITTED = "one\ntwo\nthree\n"
PERSONS = "one\ntwo\nthree\na person's\n"


def begin(client: Client) -> None:
    """Commit a file, and change it as a person does."""
    file = client.ground.checkout / "work.md"
    file.write_text(COMMITTED)
    (client.ground.checkout / "own.md").unlink(missing_ok=True)  # of the client before
    client.ground.commit(client.ground.checkout)
    file.write_text(PERSONS)


def test_the_model_takes_its_own_work_back(client: Client) -> None:
    begin(client)
    steps = [client.replace("work.md", "one", "ONE"), client.create("own.md", "own\n")]
    client.run("undo", *steps, *client.swarm_tools(("undo", {})))
    assert "undo_id" in client.last_result("undo"), client.last_result("undo")
    assert_text(client, "work.md", PERSONS)
    assert not (client.ground.checkout / "own.md").exists()


def test_a_person_takes_a_session_s_work_back_and_that_too(client: Client) -> None:
    begin(client)
    run = client.run("work", client.replace("work.md", "one", "ONE"), client.create("own.md", "own\n"))
    assert_text(client, "work.md", PERSONS.replace("one", "ONE"))
    done = client.ground.coordinator.json("undo", "--session", run.session)
    assert_text(client, "work.md", PERSONS)
    assert not (client.ground.checkout / "own.md").exists()
    client.ground.coordinator.json("undo", "--undo", done["id"])
    assert_text(client, "work.md", PERSONS.replace("one", "ONE"))
    assert_text(client, "own.md", "own\n")
