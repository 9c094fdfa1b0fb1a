"""Paths that a client mends before it opens them, as Gemini CLI and its kin do."""

import os

FOLDERS = 400  # folders to search for a file; the client stops after 50, not counting ignored ones


def opened(path: str, is_sought: bool) -> "list[str]":
    """Return every path that the client may open for `path`; relative ones count from this process's folder.

    The client takes the ``@`` of a mention off, unless a folder has that name, and decodes ``%2E``. With `is_sought`,
    and no file at a relative path, it opens the one file below with a path that ends so.
    """
    path = path.replace("\0", "")
    places = [path]
    if not os.path.isabs(path) and not os.path.lexists(path):
        if path[:1] == "@":
            bare = path[1:].lstrip("/\\")
        else:
            bare = path
        places.append(bare)
        if is_sought and (not os.path.lexists(bare) or os.path.lexists(path.partition("/")[0])):
            places += _ending_in(bare)
    return list(filter(None, dict.fromkeys(one for place in places for one in (place, _decoded(place)))))


def _decoded(path: str) -> str:
    """`path` read as part of an address."""
    if "%" not in path:
        return path
    from urllib.parse import unquote

    return unquote(path, errors="surrogateescape")


def _ending_in(end: str) -> "list[str]":
    """Absolute paths of the files below this process's folder that end in `end`, those nearest by first."""
    name, folders, found = os.path.basename(end), [os.getcwd()], []
    for folder in folders:  # the list grows meanwhile
        try:
            entries = list(os.scandir(folder))
        except OSError:
            continue  # the client passes over it as well
        for entry in entries:
            if entry.name == name and entry.path.endswith(end) and entry.is_file():
                found.append(entry.path)
            elif entry.name != ".git" and len(folders) < FOLDERS and entry.is_dir(follow_symlinks=False):
                folders.append(entry.path)
    return found
