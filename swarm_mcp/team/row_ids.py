"""Ids of rows for locks of other machines. Each ends with the lock's number on the server (``domain.lock``)."""

from __future__ import annotations

from zlib import crc32


def row_id(repository: str, top: str, number: int) -> str:
    """Return the id of the row of a repository's lock in the work tree with this `top`."""
    return f"team-{crc32(f'{repository} {top}'.encode('utf-8', 'surrogateescape')):08x}-{number}"
