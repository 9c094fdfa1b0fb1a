"""Marks of files: texts by which a later look finds out that a file has changed."""

import os


def mark_of(path: str, like: str = "") -> str:
    """Return a text that changes when the file at `path` is modified or replaced; "-" for no file.

    The store changes all the time: a mark that begins with @, as `like` does, changes only when another file takes the
    store's place.
    """
    try:
        found = os.stat(path)
    except OSError:
        return "-"
    if like.startswith("@"):
        return f"@{found.st_dev}:{found.st_ino}"
    return f"{found.st_mtime_ns}:{found.st_size}:{found.st_ino}"
