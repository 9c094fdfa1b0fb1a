"""The page in a browser, with `OPEN` open pages beside `LOCKS` locks and `EVENTS` events: ``--part page``.

The coordinator of an installed plugin serves the page. Each open page is a stream of changes, and asks for its page
anew after each of them, as the script in a browser does; unlike the pages of one browser, they share nothing. Limits:
`SECONDS` for the first page of a process, for each view right after a commit, from a commit until the last open page
has it, and until it is visible in Chromium, if that can be driven. A check beside open pages, right after a commit that
they all ask about and at rest, against one without pages: `SLOWER` times the wall clock at rest, `BUSY` times the
processor time in any case.
"""

import http.client
import json
import signal
import sqlite3
import subprocess
import threading
import time
from pathlib import Path
from statistics import median
from urllib.parse import urlsplit

from browser.chromium import Lacking, program, started

from swarm_mcp.store import Store

from . import stores
from .plugin import Plugin, WrongAnswer, check_silence, write_payload
from .processes import run

OPEN, LOCKS, EVENTS = 50, 100_000, 100_000
SECONDS, SLOWER, BUSY = 0.5, 1.15, 1.15
MEMORY = 150  # MB
RUNS, CHECKS = 7, 30
VIEWS = (
    "/", "/timeline", "/timeline?span=86400", "/lines", "/work", "/workers", "/file?path=src/shown.py", "/session?id=holder-1"
)  # fmt: skip
RUNTIME = "claude-code"


class Served:
    """A process that serves the page of a store, and a browser's requests to it."""

    def __init__(self, plugin: Plugin, env: dict[str, str], checkout: str):
        began = time.perf_counter()
        argv = [*plugin.coordinator, "page", "--no-open", "--json"]
        self.process = subprocess.Popen(argv, env=env, cwd=checkout, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout
        address = json.loads(self.process.stdout.readline())["url"]
        self.started = time.perf_counter() - began
        self.address, self._place = address, urlsplit(address)
        self._cookie = ""
        opened = self._ask(f"/?{self._place.query}")
        self._cookie = opened.getheader("set-cookie", "").partition(";")[0]
        opened.read()

    def _ask(self, path: str) -> http.client.HTTPResponse:
        connection = http.client.HTTPConnection(self._place.hostname or "", self._place.port, timeout=60)
        headers = {"cookie": self._cookie, "connection": "keep-alive" if path == "/events" else "close"}
        connection.request("GET", path, headers=headers)
        return connection.getresponse()

    def stream(self) -> http.client.HTTPResponse:
        """The stream of changes, behind its first word."""
        found = self._ask("/events")
        next_change(found)
        return found

    def text(self, path: str) -> str:
        """Return a page, or raise WrongAnswer."""
        answer = self._ask(path)
        text = answer.read().decode()
        if answer.status != 200:
            raise WrongAnswer(f"{path} answered {answer.status}: {text[:300]}")
        return text

    def peak_megabytes(self) -> float:
        """The most memory that it had; 0 where the system does not say."""
        try:
            lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        except OSError:  # the process has ended
            return 0.0
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))

    def end(self) -> None:
        """End the process."""
        self.process.send_signal(signal.SIGINT)
        self.process.wait(timeout=60)


def next_change(stream: http.client.HTTPResponse) -> bool:
    """Wait for the next word of a stream; False at its end."""
    while line := stream.readline():
        if line.startswith(b"data:"):
            return True
    return False


class Browser:
    """The measurements; missed limits are in `missed`."""

    def __init__(self, plugin: Plugin, root: Path, checkout: str, env: dict[str, str]):
        self.plugin, self.root, self.checkout, self.env = plugin, root, checkout, env
        self.missed: list[str] = []
        self._seen: dict[int, str] = {}  # the last content of each open page
        self._is_open = True

    def measure(self) -> None:
        """Measure everything and print it."""
        path, other = self._store("page.db"), self._store("no-page.db")
        env = {**self.env, "SWARM_DB_PATH": path}
        print(f"beside {LOCKS:,} locks and {EVENTS:,} events of a day{'':17}  median s   worst s")
        starts, firsts = [], []
        for number in range(RUNS):
            served = Served(self.plugin, env, self.checkout)
            starts.append(served.started)
            began = time.perf_counter()
            self._is_right(served.text("/"))
            firsts.append(time.perf_counter() - began)
            if number < RUNS - 1:
                served.end()
        self._row("from the command to its address", starts, is_limited=False)
        self._row("the first page of a process", firsts)
        try:
            with Store(path) as store:
                self._open_pages(served, store, path)
                self._checks(path, other)
            found = served.peak_megabytes()
            print(f"\nmost memory of the page's process: {found:.0f} MB")
            if found > MEMORY:
                self.missed.append(f"page: {found:.0f} MB, limit {MEMORY}")
        finally:
            self._is_open = False
            served.end()

    def _store(self, name: str) -> str:
        path = str(self.root / name)
        stores.fill(path, self.checkout, LOCKS, "")
        stores.join(path, self.checkout, RUNTIME, "writer")
        with sqlite3.connect(path) as filling:
            filling.execute(
                "WITH RECURSIVE number(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < ?)"
                " INSERT INTO events (scope, type, actor, subject, payload, created_at)"
                " SELECT ?, CASE n % 3 WHEN 0 THEN 'context.lock_acquired' WHEN 1 THEN 'context.lock_released'"
                f" ELSE 'context.lock_denied' END, 'holder-' || (n % {stores.HOLDERS}), ? || '/src/' || (n % 999),"
                """ '{"holder": "holder-1", "note": "a note"}', unixepoch() - (? - n) * 86000 / ? FROM number""",
                (EVENTS, self.checkout, self.checkout, EVENTS, EVENTS),
            )
        return path

    def _open_pages(self, served: Served, store: Store, path: str) -> None:
        """The views, and how long a commit takes to reach `OPEN` pages."""
        streams = [served.stream() for _ in range(OPEN)]
        told = threading.Condition()
        for number, stream in enumerate(streams):
            threading.Thread(target=self._follow, args=(served, number, stream, told), daemon=True).start()
        for view in VIEWS:
            spent = []
            for _ in range(RUNS):
                self._commit(store)
                began = time.perf_counter()
                served.text(view)
                spent.append(time.perf_counter() - began)
                self._wait_for_all(told, self._note)
            self._row(f"{view} right after a commit, {OPEN} pages open", spent)
        spent = []
        for _ in range(RUNS):
            time.sleep(0.3)  # the news of the previous commit is over
            began = self._commit(store)
            self._wait_for_all(told, self._note)
            spent.append(time.perf_counter() - began)
        self._row(f"from a commit until all {OPEN} pages show it", spent)
        self._in_chromium(served, store)

    def _in_chromium(self, served: Served, store: Store) -> None:
        """Measure the time from a commit until it is visible in a browser, if there is one (``make browser``)."""
        home = self.root / "chromium"
        home.mkdir()
        try:
            with started(program(), home) as chromium:
                page = chromium.new_page()
                page.goto(served.address)
                page.get_by_role("status").get_by_text("live", exact=True).wait_for()
                spent = []
                for _ in range(RUNS):
                    time.sleep(0.3)
                    began = self._commit(store)
                    page.get_by_text(self._note).first.wait_for()
                    spent.append(time.perf_counter() - began)
        except Lacking as lacking:
            print(f"not measured: {lacking}")
            return
        self._row("from a commit until a page in Chromium shows it", spent)

    def _follow(self, served: Served, number: int, stream: http.client.HTTPResponse, told: threading.Condition) -> None:
        try:
            while next_change(stream) and self._is_open:
                found = served.text("/")
                with told:
                    self._seen[number] = found
                    told.notify_all()
        except (OSError, http.client.HTTPException, ValueError):
            return  # the page has ended

    def _commit(self, store: Store) -> float:
        """Lock one more file, with a note that is told from others'; when that was."""
        self._note = f"note-{time.perf_counter_ns()}"
        (row,) = store.instances.of_session_id("writer")
        store.locks.acquire(row, f"{self.checkout}/src/shown.py", self._note)
        return time.perf_counter()

    def _wait_for_all(self, told: threading.Condition, note: str) -> None:
        with told:
            if not told.wait_for(lambda: sum(note in one for one in self._seen.values()) == OPEN, 60):
                raise WrongAnswer(f"a commit did not reach all {OPEN} pages within a minute")

    def _is_right(self, text: str) -> None:
        if "module_" not in text or "<h1>Now</h1>" not in text:
            raise WrongAnswer(f"the first page is {text[:300]!r}")

    def _row(self, name: str, spent: list[float], is_limited: bool = True) -> None:
        print(f"{name:62} {median(spent):8.3f}  {max(spent):8.3f}", flush=True)
        if is_limited and median(spent) > SECONDS:
            self.missed.append(f"page: {name}: {median(spent):.2f} s, limit {SECONDS:g}")

    def _checks(self, shown: str, other: str) -> None:
        """Check a store shown by `OPEN` pages, in turn with one that no page shows."""
        command = self.plugin.command(RUNTIME, "PreToolUse")
        sent = write_payload(RUNTIME, "writer", self.checkout, f"{self.checkout}/src/free.py")
        print(
            f"\n{'a check of a store that ' + str(OPEN) + ' pages show, against one that none shows':62} {'wall':>8}  {'cpu':>8}"
        )
        for name, is_busy in (("at rest", False), ("right after a commit of which all pages are told", True)):
            found: dict[str, list] = {shown: [], other: []}
            with Store(shown) as first, Store(other) as second:
                for number in range(-1, CHECKS):
                    for path, store in ((shown, first), (other, second)):
                        if is_busy:
                            self._commit(store)
                        else:
                            time.sleep(0.02)
                        env = {**self.env, "SWARM_DB_PATH": path}
                        ran = run(command, sent, env, self.checkout)
                        check_silence(ran.output)
                        if number >= 0:
                            found[path].append(ran)
            wall, cpu = (
                median(getattr(one, what) for one in found[shown]) / median(getattr(one, what) for one in found[other])
                for what in ("seconds", "cpu")
            )
            print(f"{name:62} {wall:8.2f}  {cpu:8.2f}", flush=True)
            if not is_busy and wall > SLOWER:
                self.missed.append(f"page: a check {name}: {wall:.2f} times the wall clock, limit {SLOWER}")
            if cpu > BUSY:
                self.missed.append(f"page: a check {name}: {cpu:.2f} times the processor time, limit {BUSY}")
