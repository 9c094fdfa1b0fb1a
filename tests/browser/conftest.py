"""Fixtures: a checkout and a store, the page's process over them, and tabs that show it.

A tool missing on the machine fails the test, it never skips. These tests have a process of their own (``make
browser``): playwright keeps an event loop running in it, and other tests that start one do not bear that.
"""

import os
import pty
import subprocess
from pathlib import Path

import pytest
from support.fixtures import SWARM, Ground

from .chromium import PATIENCE, Lacking, program, started


@pytest.fixture(scope="session")
def _chromium(tmp_path_factory: pytest.TempPathFactory):
    """Chromium, one for each worker of the tests, or the text about its absence."""
    with pytest.MonkeyPatch.context() as patch:
        home = tmp_path_factory.mktemp("chromium")
        patch.setenv("HOME", str(home))  # playwright's own process, too
        try:
            executable = program()
            with started(executable, home) as browser:
                yield browser
        except Lacking as lacking:
            yield lacking


@pytest.fixture
def chromium(_chromium):
    """Chromium. A new context of it shares nothing with another: no cookies, no workers."""
    if isinstance(_chromium, Lacking):
        pytest.fail(str(_chromium), pytrace=False)
    return _chromium


@pytest.fixture
def ground(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ground:
    """A checkout, known to git, and a store."""
    made = Ground(tmp_path.resolve())
    monkeypatch.setenv("SWARM_DB_PATH", made.database)
    made.store().close()
    subprocess.run(["git", "-C", made.scope, "init", "-q"], check=True)
    return made


class Served:
    """``swarm-mcp page`` in `folder`, at a terminal: its `address`, with the token, and its `origin`."""

    def __init__(self, folder: Path):
        self._terminal, inside = pty.openpty()
        self.process = subprocess.Popen(
            [*SWARM, "page", "--no-open"],
            cwd=folder, stdin=inside, stdout=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip
        os.close(inside)
        self.address = self.process.stdout.readline().strip()
        self.origin = self.address.partition("/?")[0]

    def kill(self) -> None:
        """End it as no program can foresee. Safe to call twice."""
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        if self._terminal >= 0:
            os.close(self._terminal)
        self._terminal = -1


@pytest.fixture
def served(ground: Ground):
    made = Served(ground.repo)
    yield made
    made.kill()


class Tab:
    """A tab with the page. `complaints`: the browser's objections to it, dialogs included."""

    def __init__(self, page, served: Served):
        self.page, self.served = page, served
        self.complaints: list[str] = []
        page.set_default_timeout(PATIENCE)
        page.on("console", lambda said: said.type in ("error", "warning") and self.complaints.append(said.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("dialog", self._dialog)

    def _dialog(self, dialog) -> None:
        self.complaints.append(f"a dialog: {dialog.message}")
        dialog.dismiss()

    def open(self, path: str = "") -> "Tab":
        """Go to the page by the address that the terminal shows; then on to `path`."""
        self.page.goto(self.served.address)
        return self.go(path) if path else self

    def go(self, path: str) -> "Tab":
        self.page.goto(self.served.origin + path)
        return self

    def is_live(self) -> "Tab":
        """Wait until it follows changes."""
        self.page.get_by_role("status").get_by_text("live", exact=True).wait_for()
        return self

    def shows(self, text: str) -> None:
        """Wait until this text is visible."""
        self.page.get_by_role("main").get_by_text(text).filter(visible=True).first.wait_for()

    def shows_no(self, text: str) -> None:
        """Wait until this text is gone."""
        self.page.get_by_role("main").get_by_text(text).first.wait_for(state="detached")


@pytest.fixture
def browse(chromium, served: Served):
    """Open tabs: ``browse()``; with the options of a context as playwright has them, in one of its own."""
    contexts = [chromium.new_context()]
    tabs: list[Tab] = []

    def new(**options) -> Tab:
        if options:
            contexts.append(chromium.new_context(**options))
        tabs.append(Tab((contexts[-1] if options else contexts[0]).new_page(), served))
        return tabs[-1]

    yield new
    for context in contexts:
        context.close()


@pytest.fixture
def tab(browse):
    """One tab with the page, without complaints of the browser."""
    made = browse().open()
    yield made
    assert made.complaints == []
