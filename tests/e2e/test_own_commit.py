"""Two sessions, and a person, in one file: each commits its own lines, by the tool or at a terminal."""

import subprocess

import pytest
from support.fixtures import wait_for

from .client import Client
from .coordinator import PATIENCE
from .test_person import typed

pytestmark = pytest.mark.ways("install")

BEFORE = "alpha\nbeta\ngamma\ndelta\nomega\n"


def begin(client: Client, name: str) -> str:
    """Commit a file, change its last line as a person does, and return its name, that no other test has."""
    ground, file = client.ground, f"{client.name}-{name}.md"
    (ground.checkout / file).write_text(BEFORE)
    (ground.checkout / "own.md").unlink(missing_ok=True)  # of the client before
    ground.commit(ground.checkout)
    for name, value in (("user.name", "t"), ("user.email", "t@t")):
        ground.git(ground.checkout, "config", name, value)
    (ground.checkout / file).write_text(BEFORE.replace("omega", "PERSON"))
    return file


def asked(client: Client, *words: str) -> str:
    """Return git's answer in the checkout."""
    command = ["git", *words]
    return subprocess.run(command, cwd=client.ground.checkout, capture_output=True, text=True, check=True).stdout


def commit(message: str) -> tuple[str, dict[str, str]]:
    return ("commit", {"message": message})


def play_two_commits(client: Client) -> None:
    """Two sessions change adjacent lines, and commit them one after the other by their tools."""
    file = begin(client, "two")
    first = [client.replace(file, "beta", "FIRST"), *client.swarm_tools(commit("first"))]
    second = [client.replace(file, "gamma", "SECOND"), client.create("own.md", "SECOND\n")]
    present = BEFORE.replace("beta", "FIRST").replace("gamma", "SECOND").replace("omega", "PERSON")
    with client.held("first", *first, at=1) as session:
        client.run("second", *second, *client.swarm_tools(commit("second")))
        assert "own.md" in client.last_result("second") and "left_out" in client.last_result("second")
        assert asked(client, "show", f"HEAD:{file}") == BEFORE.replace("gamma", "SECOND")
        session.go_on()
    assert (client.ground.checkout / file).read_text() == present, client.results("first")
    assert asked(client, "log", "-2", "--format=%s").split() == ["first", "second"], client.results("first")
    assert asked(client, "show", f"HEAD:{file}") == present.replace("PERSON", "omega")
    assert asked(client, "status", "--porcelain") == f" M {file}\n"


def test_two_sessions_commit_their_parts_of_one_file(client: Client) -> None:
    play_two_commits(client)


def test_a_person_commits_at_a_terminal_what_no_session_wrote(client: Client) -> None:
    file = begin(client, "typed")
    client.run("work", client.replace(file, "beta", "SESSION"), client.create("own.md", "SESSION\n"))
    shown = typed(client, "commit", "-m", "typed", "--dry-run")
    assert shown.stdout.startswith(f"would commit on {asked(client, 'branch', '--show-current').strip()}: {file}\n"), (
        shown
    )
    done = typed(client, "commit", "-m", "typed")
    assert done.returncode == 0, done
    assert f"{file} line 2 ({client.name} " in done.stdout and f"own.md line 1 ({client.name} " in done.stdout
    assert asked(client, "log", "-1", "--format=%s") == "typed\n"
    assert asked(client, "show", f"HEAD:{file}") == BEFORE.replace("omega", "PERSON")
    assert asked(client, "status", "--porcelain") == f" M {file}\n?? own.md\n"
    again = typed(client, "commit", "-m", "again")
    assert again.returncode == 1 and "nothing of yours to commit: " in again.stderr


def test_a_person_s_script_beside_the_only_session_is_the_person_s(client: Client) -> None:
    ground, file = client.ground, begin(client, "script")

    def script(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(ground.bin / "swarm-mcp"), *words], cwd=ground.checkout, env=ground.env, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=PATIENCE, start_new_session=True,
        )  # fmt: skip

    present = BEFORE.replace("beta", "SESSION").replace("omega", "PERSON")
    with client.held("work", client.replace(file, "beta", "SESSION"), at=1) as session:
        assert script("undo").returncode == 1 and (ground.checkout / file).read_text() == present
        assert script("whoami").returncode == 1
        done = script("commit", "-m", "script")
        assert done.returncode == 0 and f"{file} line 2 ({client.name} " in done.stdout, done
        session.go_on()
    assert asked(client, "show", f"HEAD:{file}") == BEFORE.replace("omega", "PERSON")
    assert asked(client, "status", "--porcelain") == f" M {file}\n"


def test_an_agent_is_no_person_and_its_orphan_is_its_session_s(client: Client) -> None:
    file = begin(client, "orphan")
    (client.ground.checkout / "as_person.sh").write_text("#!/bin/sh\nexec swarm-mcp $1 --person $2 $3\n")
    (client.ground.checkout / "orphan.sh").write_text(
        "#!/bin/sh\n(setsid sh -c 'while [ $(ps -o ppid= -p $$) = '$$' ]; do :; done; swarm-mcp commit -m orphan "
        f"{file}; echo $? > ended' >/dev/null 2>&1 &)\n"
    )
    deeds = ("commit -m x", f"undo {file}", f"lock {file}")
    refused = [client.shell(f"sh as_person.sh {deed}") for deed in deeds]
    client.run("work", client.replace(file, "beta", "SESSION"), *refused, client.shell("sh orphan.sh"))
    told = client.results("work")
    assert sum("--person is for persons" in text for text in told) == len(deeds), told
    wait_for((client.ground.checkout / "ended").exists)
    assert asked(client, "log", "-1", "--format=%s") == "orphan\n", told
    assert asked(client, "show", f"HEAD:{file}") == BEFORE.replace("beta", "SESSION")
    assert "PERSON" in (client.ground.checkout / file).read_text()
    for name in ("ended", "orphan.sh", "as_person.sh"):
        (client.ground.checkout / name).unlink()


def test_an_agent_s_shell_commits_its_session_s_lines(client: Client) -> None:
    file = begin(client, "shell")
    command = "swarm-mcp commit -m shell"
    client.run("shell", client.replace(file, "beta", "SESSION"), client.shell(command))
    assert asked(client, "log", "-1", "--format=%s") == "shell\n", client.results("shell")
    assert asked(client, "show", f"HEAD:{file}") == BEFORE.replace("beta", "SESSION")


def test_the_commit_tool_takes_the_lines_of_commands_of_a_session_alone(client: Client) -> None:
    file = f"{client.name}-commands.md"
    made = client.ground.checkout / "own.sh"
    made.write_text(f"#!/bin/sh\necho BUILT >> {file}\n")
    made.chmod(0o755)
    begin(client, "commands")
    commands = (f"echo ADDED >> {file}", f"sed -i s/beta/EDITED/ {file}", "./own.sh")
    calls = [client.shell(command) for command in commands]
    client.run("commands", *calls, *client.swarm_tools(commit("commands")))
    after = BEFORE.replace("beta", "EDITED") + "ADDED\nBUILT\n"
    assert (client.ground.checkout / file).read_text() == after.replace("omega", "PERSON")
    assert asked(client, "show", f"HEAD:{file}") == after, client.results("commands")
    assert asked(client, "log", "-1", "--format=%s") == "commands\n"
