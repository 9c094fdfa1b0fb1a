"""A failing test beside another session's half-finished line: whose is it, and is one's own work green?"""

from __future__ import annotations

import json

import pytest

from .client import Client
from .clients import CLIENTS

pytestmark = pytest.mark.ways("install")

CODE = "def add(a, b):\n    return a + b\n\n\ndef half(a):\n    return a / 2\n"
TEST = "import calc\n\nassert calc.add(1, 2) == 3\nassert calc.half(4) == 2\nprint('all green')\n"
TOLD = "others have uncommitted lines here"


@pytest.mark.promise("a red of others is told, and one's own work can be tested alone", only=("codex",))
@pytest.mark.parametrize("name", CLIENTS)
def test_an_agent_is_told_of_others_lines_and_tests_its_own_alone(name: str, both: dict[str, Client]) -> None:
    client, (other,) = both[name], [one for one in both.values() if one.name != name]
    ground, checkout = client.ground, client.ground.checkout
    (checkout / "calc.py").write_text(CODE)
    (checkout / "test.py").write_text(TEST)
    (checkout / "Makefile").write_text("test:\n\t@python3 -B test.py\n")
    ground.commit(checkout)
    label = {f"SWARM_{other.prefix}_LABEL": "the-night-shift"}
    broken = other.replace("calc.py", "    return a + b", "    return a +")
    with other.held("breaks", broken, at=1, env=label) as live:
        steps = [client.replace("calc.py", "a / 2", "a // 2")]
        lines = ("make test", "make test", "swarm-mcp try -- make test", "swarm-mcp try --whose -- make test")
        client.run("works", *steps, *map(client.shell, lines))
        red, again, alone, whose = client.results("works")[-4:]
        heard = json.dumps(client.exchanges("works")[-1].body)
        live.go_on()
    assert "SyntaxError" in red and "SyntaxError" in again, (red, again)
    assert "all green" in alone, alone
    assert "red with the-night-shift" in whose and "lines of calc.py; green without them" in whose, whose
    assert heard.count(TOLD) == 1, heard
    assert f"{TOLD} (the-night-shift" in heard and ": calc.py); `swarm-mcp try -- make test` runs it" in heard, heard
