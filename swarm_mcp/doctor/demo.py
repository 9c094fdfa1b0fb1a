"""The demo: three scenes, played through the plugin's real hook processes.

Two processes stand for agent clients (`played_session`). Everything happens in a temporary folder with a repository,
settings and a store of its own, so that the person's settings, git identity and clients do not matter.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import textwrap
from collections.abc import Callable
from pathlib import Path
from statistics import median

from swarm_mcp.doctor import demo_scenes
from swarm_mcp.doctor.played_session import PlayedSession
from swarm_mcp.runtimes import SHELL_VARIABLES, bundle

WIDTH = 79  # of a line
# A person's own git settings must not matter. The last four make a commit possible without them.
GIT = {
    "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_NAME": "you",
    "GIT_AUTHOR_EMAIL": "you@example.org", "GIT_COMMITTER_NAME": "you", "GIT_COMMITTER_EMAIL": "you@example.org",
}  # fmt: skip
SESSIONS = {  # client -> session id
    "claude-code": "5f0c2f6e-2f53-4b52-9a43-3b5f4f6c1d10",
    "codex": "9b41d7e2-270c-4251-afea-bde51fc291c9",
}
NEXT = (
    "swarm-mcp install   puts the plugin into the clients found here",
    "swarm-mcp doctor    proves it, with --play in the clients themselves",
    "swarm-mcp status    then shows your sessions, their locks and their refusals",
)


class Stage:
    """The folder of the demo, its sessions, and the words to its reader.

    say(line, mark, style)  prints a line; the first `mark` in it is shown in `style`
    note(doing)             announces a step that takes a moment
    """

    def __init__(self, root: Path, say: Callable[[str, str, str], None], note: Callable[[str], None]) -> None:
        self.root, self.note, self.fine = root, note, True
        self.folder = root / "shop"
        self.store = root / "store" / "swarm.db"
        self._say, self._sessions = say, dict[str, PlayedSession]()
        kept = {
            name: value
            for name, value in os.environ.items()
            # The demo may run in a git hook or in an agent's shell: neither must show.
            if name not in SHELL_VARIABLES and not name.startswith(("SWARM_", "HERDR_", "GIT_"))
        }
        kept.pop("AGENT_IDENTITY", None)
        places = {"SWARM_DB_PATH": self.store, "SWARM_STATE_DIR": root / "state", "SWARM_CONFIG_DIR": root / "config"}
        self.environment = {**kept, **GIT, **{name: str(path) for name, path in places.items()}}

    def session(self, name: str) -> PlayedSession:
        """Return the session of the client `name`. Its first use starts it, and its hook registers it."""
        if name not in self._sessions:
            self.note(f"{name}: its hook registers the session")
            started = PlayedSession(name, SESSIONS[name], self.folder, self.root / "plugin", self.environment)
            self._sessions[name] = started
            if "registered as" not in started.start():
                self.check(f"{name}: its hook registers the session", False)
        return self._sessions[name]

    def git(self, *words: str) -> None:
        """Run a git command as the person would. Raises CalledProcessError."""
        argv = ["git", "-c", "core.hooksPath=/dev/null", "-c", "commit.gpgsign=false", *words]
        subprocess.run(argv, cwd=self.folder, env=self.environment, check=True, capture_output=True)

    def text(self, name: str) -> str:
        """Return the text of a file of the folder; empty if it is gone."""
        try:
            return (self.folder / name).read_text(encoding="utf-8")
        except OSError:  # a call that should have been refused has removed it: a check tells that
            return ""

    def heading(self, text: str) -> None:
        """Begin a scene."""
        self._say("", "", "")
        self._say(text, text, "heading")

    def tell(self, text: str, mark: str = "", style: str = "heading") -> None:
        """Say a sentence of the story."""
        self._say(f"   {text}", mark, style)

    def shown(self, text: str) -> None:
        """Show lines of a file that are not committed."""
        for line in text.splitlines():
            self._say(f"   + {line}", f"+ {line}", "good")
        self._say("", "", "")

    def typed(self, command: str) -> None:
        """Show a command."""
        self._say(f"   $ {command}", command, "heading")

    def refused(self, ask: Callable[[], str], key: str) -> None:
        """Make a call that must be refused. Show the words for the model, with `key` in bold."""
        reason = ask().replace(f"{self.root}{os.sep}", "")
        if not reason:
            self.check("refused", False)
            return
        self._say("   refused; its model reads:", "refused", "fail")
        for line in textwrap.wrap(reason, WIDTH - 5, break_on_hyphens=False, break_long_words=False):
            self._say(f"   | {line}", *((key, "heading") if key in line else ("|", "idle")))

    def check(self, claim: str, fine: bool) -> None:
        """Say whether a claim came true."""
        self.fine = self.fine and fine
        word, style = ("ok ", "ok") if fine else ("NOT", "fail")
        self._say(f"   {word} {claim}", word.strip(), style)

    def tell_time(self) -> None:
        """Say how long the checks took."""
        took = [seconds for session in self._sessions.values() for seconds in session.checks]
        self._say("", "", "")
        self._say(
            f"{len(took)} calls were checked, in {median(took) * 1000:.0f} ms each (median, on this machine).", "", ""
        )

    def close(self) -> None:
        """End all sessions."""
        for session in self._sessions.values():
            session.kill()


def play(say: Callable[[str, str, str], None], note: Callable[[str], None]) -> bool:
    """Play the scenes; `say` and `note` as for Stage. Returns True if every step went as it must."""
    title = "Three scenes, played through the plugin's real hooks in a folder of their own."
    say(title, "", "")
    note("writing the plugin")
    with tempfile.TemporaryDirectory(prefix="swarm-demo-", ignore_cleanup_errors=True) as name:
        stage = Stage(Path(name).resolve(), say, note)
        demo_scenes.lay_out(stage)
        bundle.write(stage.root / "plugin", local=True)
        try:
            if shutil.which("git"):
                demo_scenes.your_work(stage)
                demo_scenes.an_agents_work(stage)
            else:
                stage.tell("git is not on PATH: the two scenes of uncommitted work are left out.")
            demo_scenes.a_lock(stage)
            stage.tell_time()
        finally:
            stage.close()
    return stage.fine
