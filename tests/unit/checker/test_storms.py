"""Many hooks of several sessions at once, with a checker and without: no error, and each write is noted once."""

import pytest
from support.checker_client import ALONE, RELAY, TWIN, Client

pytestmark = pytest.mark.slow
AT_ONCE = (4, 20)
SESSIONS, ROUNDS = 3, 3


@pytest.fixture(scope="module")
def sessions(shared_client: Client) -> list[str]:
    """Sessions beside the client's first one."""
    return [shared_client.join() for _ in range(SESSIONS)]


@pytest.mark.parametrize("way", [RELAY, TWIN, ALONE])
@pytest.mark.parametrize("count", AT_ONCE)
def test_a_storm_loses_no_write(client: Client, sessions: list[str], way: str, count: int) -> None:
    client.warm(RELAY)
    client.renew()
    wanted: dict[str, list[str]] = {session: [] for session in sessions}
    for one in range(ROUNDS):
        hooks = []
        for number in range(count):
            session, name = sessions[number % SESSIONS], f"new{one}-{number}.py"
            if number % 5 == 4:
                hooks.append((client.start(client.edit("held.py", session), way), True))
                continue
            call = client.bash(f"echo x > {name}", session) if number % 2 else client.edit(name, session)
            hooks.append((client.start(call, way), False))
            wanted[session].append(name)
        for hook, is_denied in hooks:
            output, errors = hook.communicate(timeout=300)
            assert (hook.returncode, errors) == (0, b"")
            assert (b'"deny"' in output) is is_denied, output
    assert {session: client.writes(session) for session in sessions} == {
        session: sorted(names) for session, names in wanted.items()
    }
    assert client.faults() == []
