"""Links from a client's folders to files of a bundle, to run them in place."""

from __future__ import annotations

import os
from pathlib import Path

from swarm_mcp.errors import ClientFailed
from swarm_mcp.runtimes.steps import Steps
from swarm_mcp.runtimes.users_file import remove_empty


def root_of(target: str, name: str) -> Path | None:
    """Return the folder that has the path `target` as `name`, or None if it ends otherwise."""
    if target.endswith(f"/{name}"):
        return Path(target.removesuffix(f"/{name}"))
    return None


def leads_to(link: Path, name: str) -> Path | None:
    """Return the folder that the link leads to by `name` (it may be gone), or None."""
    try:
        return root_of(os.path.join(link.parent, os.readlink(link)), name)
    except OSError:  # no link
        return None


def put_link(link: Path, target: Path, steps: Steps) -> None:
    """Have `link` lead to `target`, in the place of an earlier link at once. Raises ClientFailed."""
    scratch = link.with_name(f".{link.name}.{os.getpid()}.tmp")
    with steps.step(f"linking {link} to {target}", f"linked {link} to {target}"):
        try:
            link.parent.mkdir(parents=True, exist_ok=True)
            scratch.symlink_to(target)
            os.replace(scratch, link)
        except OSError as error:
            scratch.unlink(missing_ok=True)
            raise ClientFailed(f"{link} cannot be made: {error.strerror}") from error


def put_links(links: dict[Path, str], root: Path, steps: Steps) -> None:
    """Have each of ``{link: name}`` lead to that name in `root`.

    Raises ClientFailed, also if a file of another owner is in the place of a link.
    """
    for link, name in links.items():
        found = leads_to(link, name)
        if found is None and os.path.lexists(link):
            raise ClientFailed(f"{link} is not ours; move it away and try again")
        if found != root:
            put_link(link, root / name, steps)


def take_link(link: Path, steps: Steps) -> None:
    """Remove a link, and the folders around it that are empty then. Raises ClientFailed."""
    with steps.step(f"removing {link}", f"removed {link}"):
        try:
            link.unlink()
        except OSError as error:
            raise ClientFailed(f"{link} cannot be removed: {error.strerror}") from error
        remove_empty(link.parent)
