"""The files of the state folder, in names that are the same on each machine, for recordings.

The names of versions and of notes about HEAD hold the path of a work tree, the inode of its repository, and times.
"""

import re
import stat
from pathlib import Path

from swarm_hook_core.traces import AFTER, INPUTS, LATER, LOOK, LOST, MERGED, version_path
from swarm_hook_core.traces.versions import CONTENT, HALF, NO_FILE, NOT_KEPT, read_name

_PER_PLACE = re.compile(r"(traces|kept|heads)/[0-9a-f]+\.[0-9a-f]+/")
_TREE = re.compile(r"(heads/.*)\.[0-9a-f]{8}$")
_TIME = re.compile(f"({LATER}|{LOOK}|{AFTER}|{LOST}|{MERGED})" + r"(\d+)(-\d+-[0-7]+-[0-9a-f]+)?$")
_WITHOUT_CONTENT = {NO_FILE: "(no file)", NOT_KEPT: "(not kept)", HALF: "(half a copy)"}


def lines_of_files(top: Path) -> dict[str, list[str]]:
    """Return the lines of each file below the state folder `top`, by its path there.

    A version without a content is one line in brackets: its permissions say so, and only root can read it.
    """
    found = {}
    for path in sorted(path for path in top.rglob("*") if path.is_file()):
        name, mode = str(path.relative_to(top)), stat.S_IMODE(path.stat().st_mode)
        if _is_version(name) and not (mode & CONTENT and mode != HALF):
            found[name] = [_WITHOUT_CONTENT[mode]]
        else:
            found[name] = path.read_bytes().decode("utf-8", "replace").splitlines()
    return found


def plain_names(files: dict[str, list[str]]) -> dict[str, str]:
    """Return names without paths and numbers of the machine, by the present names of `files` (`lines_of_files`).

    A long name of a version holds the beginning of its file's path, and a checksum: the paths come from the
    journals. Raises KeyError for a version of a file that no journal names.
    """
    fields = {
        field for name in files if name.startswith("traces/") for line in files[name] for field in line.split("\0")
    }
    escaped = {Path(version_path("", "", path)).name: path for path in fields if path.startswith("/")}
    plain = {name: _plain(name, escaped) for name in files}
    assert len(set(plain.values())) == len(plain), f"two files have one name: {sorted(plain.values())}"
    return plain


def without_inodes(text: str) -> str:
    """Return `text`, with times as ``<HASH>``, without the inodes beside them: a new file system has small ones."""
    text = re.sub(r"<HASH> \d+ \d+\b", "<HASH> <N>", text)
    text = re.sub(r"<HASH> \d+ <HASH>", "<HASH> <N> <HASH>", text)
    return text


def _is_version(name: str) -> bool:
    return name.startswith("kept/") and name.count("/") == 3 and not name.rpartition("/")[2].startswith(INPUTS)


def _plain(name: str, escaped: dict[str, str]) -> str:
    folder, _slash, last = name.rpartition("/")
    if _is_version(name):
        file = _TIME.sub("", last)
        time = _TIME.sub(lambda found: f"{found[1]}<TIME>{'<FACTS>' if found[3] else ''}", last[len(file) :])
        if time.endswith("<FACTS>"):  # of a locked file: no journal has to name it
            name = f"{folder}/{read_name(last)[0].rpartition('/')[2]}{time}"
        else:
            name = f"{folder}/{escaped[file]}{time}"
    return _TREE.sub(r"\1.<TREE>", _PER_PLACE.sub(r"\1/<PLACE>/", name))
