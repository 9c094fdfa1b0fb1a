"""The plugins in docs/examples do as they say, copied as they are."""

import contextlib
import json
import shutil
from pathlib import Path

import pytest
from support.fixtures import SWARM
from support.loop_fixtures import Model, Say, loop, sessions
from support.screen import Played

from swarm_mcp.play.models import LoopbackServer, QuietHandler

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"


def copied(name: str, project: Path) -> None:
    """Copy the plugin as its user would."""
    shutil.copytree(EXAMPLES / name, project / ".harness" / "plugins" / name)


def test_costs_add_up(model: Model, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copied("costs", project)
    monkeypatch.setenv("COST_IN", "3")
    monkeypatch.setenv("COST_OUT", "15")
    model.script = [Say("", (("list_dir", {}),)), Say("Done.")]
    done = loop("go")
    assert done.code == 0 and done.out == "Done.\n"
    costs = json.loads((sessions()[0] / "costs.json").read_text())
    assert costs["in"] > 0 and costs["out"] > 0
    assert costs["dollars"] == pytest.approx((costs["in"] * 3 + costs["out"] * 15) / 1e6, abs=1e-6)
    assert f"so far: {costs['in']} tokens in, {costs['out']} out, $" in done.err


class Page(QuietHandler):
    """Answers with a page at one address, and 404 elsewhere."""

    def do_GET(self) -> None:
        page = b"<title>Lamps</title><script>hidden()</script><p>Two &amp;  three"
        self.send_response(200 if self.path == "/lamps" else 404)
        self.send_header("content-type", "text/html; charset=utf-8")
        self.send_header("content-length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)


def test_a_page_is_fetched(model: Model, project: Path) -> None:
    copied("fetch", project)
    with contextlib.closing(LoopbackServer(Page)) as web:
        urls = [f"{web.address}/lamps", f"{web.address}/none", "file:///etc/passwd"]
        model.script = [Say("", tuple(("fetch_page", {"url": url}) for url in urls)), Say("Done.")]
        assert loop("go").code == 0
    page, missing, local = model.told()
    assert page == "Lamps Two & three" and "fetch_page" in model.tools()
    assert missing == "error: HTTP Error 404: Not Found"
    assert local == "error: file:///etc/passwd is no address of a web page"


@pytest.mark.parametrize(("typed", "runs"), [("y", True), ("n", False), (None, False)])
def test_a_gate_asks_the_person(model: Model, project: Path, typed: str | None, runs: bool) -> None:
    copied("ask", project)
    model.script = [Say("", (("bash", {"command": "touch made"}),)), Say("Done.")]
    if typed is None:
        assert loop("go").code == 0  # without a terminal
    else:
        with Played([*SWARM, "loop", "go"], cwd=project) as played:
            played.until(lambda screen: "Run it" in screen.text)
            played.types(f"{typed}\n")
            assert played.ended() == 0
    assert (project / "made").exists() is runs
    assert ("did not allow" in model.told()[0]) is not runs
