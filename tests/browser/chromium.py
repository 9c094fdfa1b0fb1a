"""This machine's Chromium, without a window and in a private home, and its view of the page."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PATIENCE = 60_000  # milliseconds that something may take on a busy machine
# Names that lead to this machine, as a page of the network could have its own name lead here.
FOREIGN_NAME = "foreign.example"


class Lacking(Exception):
    """Something that these tests need is not on this machine; the message says how to get it."""


def program() -> str:
    """Return the path of Chromium: SWARM_TEST_CHROMIUM, or the one on PATH."""
    named = os.environ.get("SWARM_TEST_CHROMIUM", "")
    found = named or next(filter(None, map(shutil.which, PROGRAMS)), "")
    if not os.access(found, os.X_OK):
        raise Lacking(
            f"no Chromium {f'at {named}' if named else 'on PATH'}: install it (apt-get install chromium), or name one by"
            " SWARM_TEST_CHROMIUM"
        )
    return found


@contextmanager
def started(executable: str, home: Path) -> Iterator:
    """Chromium, as playwright drives it. It reaches this machine alone, and writes nothing outside of `home`."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        raise Lacking("no playwright: `make browser` installs it (pip install '.[browser]')") from None
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(home),
        "TMPDIR": str(home),
        "LANG": "C.UTF-8",
    }
    arguments = [
        # All other machines are unreachable.
        f"--host-resolver-rules=MAP {FOREIGN_NAME} 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
        "--disable-dev-shm-usage",  # containers have little of it
    ]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=executable,
            args=arguments,
            env=environment,
            timeout=PATIENCE,
            downloads_path=str(home),
            chromium_sandbox=False,  # neither root nor a container can have one; it shows nothing but our page
        )
        try:
            yield browser
        finally:
            browser.close()
