"""The place of a play: a private home, a repository with a peer's locks and a person's line, and a scripted model."""

from __future__ import annotations

import fcntl
import fnmatch
import json
import os
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from swarm_hook_core.paths import git_root
from swarm_hook_core.state import DEFAULT_STORE, config_path, state_dir
from swarm_mcp.errors import ClientFailed
from swarm_mcp.folders import here
from swarm_mcp.play.models import ModelServer
from swarm_mcp.processes import with_variable
from swarm_mcp.runtimes import SHELL_VARIABLES
from swarm_mcp.runtimes.base import Runtime
from swarm_mcp.runtimes.client_settings import Layer, with_comments
from swarm_mcp.runtimes.json_editor import object_of
from swarm_mcp.runtimes.user_settings import CHECKOUTS
from swarm_mcp.runtimes.users_file import object_in
from swarm_mcp.store import Store
from swarm_mcp.store.sessions import Registration

MODULES = "node_modules"  # are large, and only read
LEASE_SECONDS = 600
SECONDS = 180.0  # without a request to the model, after which a session is given up
FREE, YOURS, LINE = "free.md", "yours.md", "a person's line\n"
# Variables that lead a client to a real service, or to an account there.
SERVICE = re.compile(
    r"^(ANTHROPIC|AWS|OTEL|OPENAI|AZURE|GOOGLE|VERTEX|CLOUD_ML)_|^CLAUDE_CODE_(USE_|OAUTH|API|ENABLE_TELEMETRY)"
    r"|(API_KEY|TOKEN|SECRET|AUTH|CREDENTIALS?|BASE_URL|API_BASE|ENDPOINT|_PROXY|PROXY_URL)$",
    re.IGNORECASE,
)
# The places of swarm and of clients follow the home.
_PLACES = re.compile(
    r"^(SWARM_(DB_PATH|STATE_DIR|CONFIG_DIR|MCP_\w*)|XDG_\w+|AGENT_IDENTITY|GIT_\w+"
    r"|CLAUDE_CONFIG_DIR|PI_CODING_AGENT_DIR|(CODEX|COPILOT|GROK|QWEN|HERMES|GEMINI_CLI|KIMI_CODE)_HOME"
    r"|CLINE_(DIR|DATA_DIR|(MCP|GLOBAL)_SETTINGS_PATH)|GEMINI_CLI_TRUSTED_FOLDERS_PATH)$"
)
_SWARM = "Library/Application Support/swarm-mcp" if sys.platform == "darwin" else ""


_CONTROL = re.compile(r"\x1b\[[0-9;?>]*[a-zA-Z]|\x1b\][^\x07]*\x07|\s")


class Terminal:
    """The terminal of a client: `shown` has the text since the last key."""

    def __init__(self, handle: int, process: subprocess.Popen[str], is_stuck: Callable[[], bool]):
        self.shown = ""
        self._handle, self._process, self._is_stuck = handle, process, is_stuck
        size = struct.pack("HHHH", 50, 160, 0, 0)
        fcntl.ioctl(handle, termios.TIOCSWINSZ, size)

    def reads(self) -> bool:
        """Read the news of the screen for a moment. Return False if the client has ended, or is stuck."""
        if select.select([self._handle], [], [], 0.1)[0]:
            self.shown += _CONTROL.sub(" ", os.read(self._handle, 65536).decode("utf-8", "replace"))
        return self._process.poll() is None and not self._is_stuck()

    def shows(self, words: str) -> bool:
        """Return True if these words are there; a client may leave out spaces, and move the cursor instead."""
        return "".join(words.split()) in "".join(self.shown.split())

    def press(self, keys: str) -> None:
        """Type."""
        self.shown = ""
        os.write(self._handle, keys.encode())


class Scene:
    """One client's private home, checkout and model. Nothing of the user's is changed by the sessions in it."""

    def __init__(self, runtime: Runtime):
        # Not in the folder for temporary files: sandboxes of clients leave that writable.
        base = next((place for place in ("/var/tmp",) if os.access(place, os.W_OK)), None)
        self.root = Path(tempfile.mkdtemp(prefix="play-", dir=base)).resolve()
        self.home, self.checkout, temporary = (self.root / name for name in ("home", "checkout", "tmp"))
        for folder in (self.home, self.checkout, temporary):
            folder.mkdir()
        self.listed = self.root / "listed"  # is there once the client has the tools of the play's own server
        self.models = ModelServer()
        nowhere = f"http://127.0.0.1:{self.models.port}"  # it refuses to stand between a client and another host
        self.env = {
            **{name: value for name, value in os.environ.items() if not _is_left_out(name, runtime)},
            **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy"), nowhere),
            **dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost"),
            "HOME": str(self.home), "PWD": str(self.checkout), "TMPDIR": str(temporary), "SWARM_UVX": "off",
        }  # fmt: skip
        self._bring_swarm()

    def close(self) -> None:
        """Remove it all, and end what a client has started apart from itself, such as Cline's hub."""
        self.models.close()
        for pid in with_variable("HOME", str(self.home)):
            with suppress(OSError):  # it has just ended
                os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self.root, ignore_errors=True)

    def set_up(self, files: dict[str, str]) -> None:
        """Begin anew, with a line of a person's that is not committed, and these files locked by a peer.

        A file without a text is not there.
        """
        store = self.home / DEFAULT_STORE.removeprefix("~/")
        for place in (self.checkout / ".git", store.parent):
            shutil.rmtree(place, ignore_errors=True)
        store.parent.mkdir(exist_ok=True)  # a hook's process that notes a denial may have been at work there
        self.models.reset()
        self.listed.unlink(missing_ok=True)
        for name, text in {**files, YOURS: "committed\n", FREE: ""}.items():
            (self.checkout / name).unlink(missing_ok=True)
            if text:
                (self.checkout / name).write_text(text, encoding="utf-8")
        for words in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "--message=begin"]):
            self._git(*words)
        with open(self.checkout / YOURS, "a", encoding="utf-8") as file:
            file.write(LINE)
        with Store(str(store)) as opened:
            peer = opened.instances.register(
                Registration(str(self.checkout), label="doctor", lease_seconds=LEASE_SECONDS)
            )
            for name in files:
                opened.locks.acquire(peer, str(self.checkout / name), "the play of swarm-mcp doctor")

    def text(self, name: str) -> str:
        """Return the content of a file of the checkout. It is empty if the file is gone."""
        try:
            return (self.checkout / name).read_text(encoding="utf-8", errors="replace")
        except OSError:  # the caller compares it with the text that should be there
            return ""

    @contextmanager
    def started(self, argv: list[str], **more: Any) -> Iterator[subprocess.Popen[str]]:
        """Start a client's command here. When the block ends, the command and all it has started end, too."""
        try:
            process = subprocess.Popen(
                argv, cwd=self.checkout, env=self.env, encoding="utf-8", errors="replace", start_new_session=True,
                **{"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more},
            )  # fmt: skip
        except OSError as error:
            raise ClientFailed(f"`{argv[0]}` could not be started: {error.strerror}") from error
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):  # it has ended, with all its children
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream:
                    stream.close()

    @contextmanager
    def at_terminal(self, argv: list[str]) -> Iterator[Terminal]:
        """Start a client's command at a terminal; it ends with the block."""
        outer, inner = os.openpty()
        try:
            with self.started(argv, stdin=inner, stdout=inner, stderr=inner) as process:
                yield Terminal(outer, process, self._stuck())
        finally:
            os.close(outer)
            os.close(inner)

    def run(self, argv: list[str], is_over: Callable[[], bool] = lambda: False) -> str:
        """Run a client's command to its end, or until `is_over`. Returns its complaint if it fails.

        Raises ClientFailed if it cannot be started.
        """
        is_stuck = self._stuck()
        with self.started(argv) as process:
            while True:
                try:
                    output, complaints = process.communicate(timeout=1)
                    break
                except subprocess.TimeoutExpired:
                    if is_over():
                        return ""
                    if is_stuck():
                        return f"`{Path(argv[0]).name}` asked its model nothing for {SECONDS:g} s, and did not end"
        if process.returncode:
            return (complaints.strip() or output.strip()).splitlines()[-1][:200]
        return ""

    # ---------------------------------------------------------------- innards

    def _stuck(self) -> Callable[[], bool]:
        """Return a function that tells if a session that starts now makes no progress: a busy machine is only slow."""
        begun = time.time()
        return lambda: self.models.quiet_seconds(begun) > SECONDS

    @property
    def state(self) -> Path:
        """The state folder of swarm in this home."""
        return self.home / (_SWARM or ".local/state/swarm-mcp")

    def _bring_swarm(self) -> None:
        """Copy the user's settings of swarm, those of this checkout for the checkout of the play, and small notes."""
        for name in ("relay", "python"):
            copy(Path(state_dir(), name), self.state / name)
        settings = object_in(Path(config_path()))
        checkouts = object_of(settings.get(CHECKOUTS))
        if git_root(here()) in checkouts:
            settings[CHECKOUTS] = {**checkouts, str(self.checkout): checkouts[git_root(here())]}
        if settings:
            place = self.home / (_SWARM or ".config/swarm-mcp") / "config.json"
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(json.dumps(settings), encoding="utf-8")

    def _git(self, *words: str) -> None:
        names = ["-c", "user.name=doctor", "-c", "user.email=doctor@localhost", "-c", "core.hooksPath=/dev/null"]
        done = subprocess.run(["git", *names, *words], cwd=self.checkout, env=self.env, capture_output=True, text=True)
        if done.returncode:
            raise ClientFailed(f"git {words[0]} failed: {done.stderr.strip()[:200]}")


def copy(source: Path, place: Path, change: Callable[[str], str] = str) -> None:
    """Copy a file or a folder, if it is there; `change` makes the new text of a file."""
    place.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        modules = source / MODULES
        ignored = shutil.ignore_patterns(MODULES)
        shutil.copytree(source, place, symlinks=True, dirs_exist_ok=True, ignore=ignored)
        if modules.is_dir():
            (place / MODULES).symlink_to(modules)
    elif source.is_file():
        text = source.read_text(encoding="utf-8", errors="surrogateescape")
        place.write_text(change(text), encoding="utf-8", errors="surrogateescape")


def _is_left_out(name: str, runtime: Runtime) -> bool:
    if name in SHELL_VARIABLES or SERVICE.search(name) or _PLACES.match(name):
        return True
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in runtime.session_variables)


# The user's settings for a play: copies that reach the model on loopback alone.

# Keys of settings that lead a client to a real service, or to an account there.
_SERVICE_KEYS = re.compile(
    r"^(\w+Helper|\w+AuthRefresh|awsCredentialExport|forceLogin\w*|selectedType|enforcedType|modelProviders|telemetry"
    r"|\w*proxy|\w*base_?url|\w*api_?key|\w*endpoint)$",
    re.IGNORECASE,
)


def _is_of_a_service(key: str) -> bool:
    return bool(_SERVICE_KEYS.match(key) or SERVICE.search(key))


def _service_keys(settings: dict[str, Any]) -> list[str]:
    """Return the keys of these settings, at any depth, that lead to a real service."""
    found = []
    for key, value in settings.items():
        if _is_of_a_service(key):
            found.append(key)
        elif isinstance(value, dict):
            found += [f"{key}.{below}" for below in _service_keys(value)]
    return found


def refuse_services(policies: Sequence[Layer]) -> None:
    """Raise ClientFailed if a policy, which the copies cannot change, leads to a real service."""
    for layer in policies:
        for key in _service_keys(layer.settings):
            text = f"{key} in {layer.file}, a policy, may lead it to a real service, and cannot be overridden"
            raise ClientFailed(text)


def sealed(text: str, **more: Any) -> str:
    """Return the text of a settings file without the keys that lead to a real service, and with these besides."""
    try:
        settings = object_of(with_comments(text))
    except ValueError:  # the client passes over it, too
        return text
    return json.dumps(_merged(_without_services(settings), more))


def _without_services(settings: dict[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in settings.items() if not _is_of_a_service(key)}
    return {key: _without_services(value) if isinstance(value, dict) else value for key, value in kept.items()}


def _merged(settings: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    merged = dict(settings)
    for key, value in more.items():
        merged[key] = _merged(object_of(settings.get(key)), value) if isinstance(value, dict) else value
    return merged
