"""The present content of a file or a symbolic link that is handled whole, without lines."""

from __future__ import annotations

import os
import stat

LARGEST = 16 * 1024 * 1024  # bytes of a file; a larger one is not read


def present(path: str) -> tuple[os.stat_result | None, bytes | None]:
    """Return the facts and the content of the file at `path`, of a link its target. Raises OSError.

    No facts for a missing file. No content for one over 16 MiB, a folder, or a device.
    """
    try:
        found = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None, None  # a missing file
    if stat.S_ISLNK(found.st_mode):
        return found, os.fsencode(os.readlink(path))
    if not stat.S_ISREG(found.st_mode) or found.st_size > LARGEST:
        return found, None
    with open(path, "rb") as file:
        data = file.read(LARGEST + 1)
    if len(data) > LARGEST:
        return found, None  # it has grown just now
    return found, data
