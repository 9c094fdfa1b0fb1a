"""The line about refused writes: only if the kernel's mounts may be the reason."""

import pytest

from swarm_hook_core.kernel import refused
from swarm_hook_core.kernel.plans import NOT_HELD, Plan

PLAN = Plan("codex", "s", roots=["/srv/project"], paths=["/srv/project/notes.md", "/mnt/other/place"])


@pytest.mark.parametrize(
    "said",
    [
        "OSError: [Errno 30] Read-only file system: 'notes.md'",
        "rm: cannot remove 'tree/held.md': Device or resource busy",
        "/srv/project/build.sh: line 3: notes.md: Read-only file system",
        "touch: /mnt/other/place/in: Read-only file system",
        "write failed: EROFS",
    ],
)
def test_ours(said: str) -> None:
    assert refused._is_by_us(PLAN, f"begins\n{said}\nends")


@pytest.mark.parametrize(
    "said",
    [
        "OSError: [Errno 30] Read-only file system: '/home/me/.cache/x'",
        "mkdir: cannot create directory '/opt/x': Read-only file system",
        f"{NOT_HELD}: unshare: Operation not permitted\nOSError: [Errno 30] Read-only file system: 'notes.md'",
        "all is well",
    ],
)
def test_not_ours(said: str) -> None:
    assert not refused._is_by_us(PLAN, said)
