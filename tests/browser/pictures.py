"""The pictures of the page in the docs: Now, Timeline and a file, in light and dark. ``make picture`` takes them.

They show the real page, over a busy store: its locks and refusals took place a moment ago, and are then moved apart in
time, so that the timeline has something to show.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from support.fixtures import Ground

from swarm_hook_core.traces import traces_dir

from .chromium import PATIENCE
from .png import smaller
from .scene import SESSIONS, Scene, busy

WIDTH, HEIGHT, MOST = 1100, 880, 80_000  # pixels; bytes of one picture
FOLDER = os.environ.get("SWARM_PICTURES", "")  # of a test itself no such variable is left
SPREAD = 170  # seconds between two events


@pytest.fixture
def ground(monkeypatch: pytest.MonkeyPatch):
    """The ground of the other tests, at a path that does not reveal this machine."""
    place = Path("/tmp/shop")
    place.mkdir(mode=0o700)
    try:
        made = Ground(place)
        monkeypatch.setenv("SWARM_DB_PATH", made.database)
        made.store().close()
        subprocess.run(["git", "-C", made.scope, "init", "-q"], check=True)
        yield made
    finally:
        shutil.rmtree(place)


def acted(ground: Ground) -> Scene:
    """The scene, with more events: locks are released, handed over and shared."""
    scene = busy(ground)
    with ground.store() as store:
        ann, bob, cy = (store.instances.of_session(runtime, name) for name, runtime in SESSIONS.items())
        for session, file, note in ((bob, "tests/test_app.py", "a slow test"), (cy, "README.md", "the new option")):
            store.locks.acquire(session, f"{ground.scope}/{file}", note)
        store.locks.release(cy, f"{ground.scope}/README.md")
        store.locks.acquire(ann, f"{ground.scope}/docs/usage.md", "examples")
        store.transfers.transfer(ann, f"{ground.scope}/docs/usage.md", cy.id, note="please finish them")
        store.locks.release(bob, f"{ground.scope}/tests/test_app.py")
    return scene


def spread(ground: Ground) -> None:
    """Move the events apart in time, the last of them to a moment ago."""
    later = "SELECT count(*) FROM events AS other WHERE other.id > events.id"
    ground.sql(f"UPDATE events SET created_at = created_at - ? * (1 + ({later}))", SPREAD)
    got = "SELECT max(created_at) FROM events WHERE subject = context.file AND type = 'context.lock_acquired'"
    ground.sql(f"UPDATE context SET created_at = coalesce(({got}), created_at)")
    denied = "SELECT max(created_at) FROM events WHERE type = 'context.lock_denied'"
    ground.sql(f"UPDATE swarm_waiters SET since = since - (unixepoch() - ({denied}))")


def spread_edits() -> None:
    """Move the edits apart in time, too. Afterwards no line has its author."""
    for number, path in enumerate(sorted(Path(traces_dir()).glob("*/*"))):
        lines = path.read_bytes().split(b"\n")
        wrote = [line for line in lines if b" wrote " in line]
        for at, line in enumerate(wrote * 3):
            ns, _, rest = line.partition(b" ")
            lines.append(b"%d %s" % (int(ns) - (len(wrote) * 3 - at) * (240 + 90 * number) * 10**9, rest))
        path.write_bytes(b"\n".join(lines) + b"\n")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["now", "timeline", "file"])
def test_picture(ground, served, chromium, name, scheme):
    if not FOLDER:
        pytest.fail("SWARM_PICTURES names the folder for the pictures; `make picture` does", pytrace=False)
    scene = acted(ground)
    spread(ground)
    if name == "timeline":
        spread_edits()
    path = {
        "now": scene.paths["this checkout"],
        "timeline": scene.paths["this timeline"],
        "file": scene.paths["a file of several"],
    }
    page = chromium.new_context(color_scheme=scheme, viewport={"width": WIDTH, "height": HEIGHT}).new_page()
    page.set_default_timeout(PATIENCE)
    page.goto(served.address)
    page.goto(served.origin + path[name])
    page.get_by_role("status").get_by_text("live", exact=True).wait_for()
    high = min(HEIGHT, page.evaluate("document.documentElement.scrollHeight"))
    taken = smaller(page.screenshot(clip={"x": 0, "y": 0, "width": WIDTH, "height": high}))
    assert len(taken) <= MOST, f"{len(taken):,} bytes"
    (Path(FOLDER) / f"page-{name}{'-dark' if scheme == 'dark' else ''}.png").write_bytes(taken)
    page.context.close()
