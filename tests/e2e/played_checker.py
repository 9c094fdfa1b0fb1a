"""Stands in for `swarm-mcp serve` below a played client: its checker keeps to the protocol only as a test wants it.

PLAYED: a folder. `manner` there is how the next connections are met; the last request is left in `head` and `payload`.
"""

import os
import socket
import sys
import time
from pathlib import Path

from swarm_hook_core.process import client_process
from swarm_mcp.checker import BEGUN, SIZES, checkers_dir, listening, name_of

ANSWER = '{"hookSpecificOutput": {"additionalContext": "by the checker"}}'


def received(connection: socket.socket, size: int) -> bytes:
    parts = []
    while size:
        part = connection.recv(min(size, 1 << 20))
        if not part:
            raise EOFError
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def meet(connection: socket.socket, manner: str, folder: Path) -> None:
    """Answer one connection in this manner: all but "answers" are faults."""
    if manner == "closes":
        return
    if manner == "waits":
        time.sleep(60)
    connection.sendall(BEGUN)
    sizes = received(connection, SIZES)
    head, payload = (received(connection, int(part, 16)) for part in (sizes[:8], sizes[8:]))
    for name, data in (("payload", payload), ("head", head)):
        (folder / f"{name}.new").write_bytes(data)
        (folder / f"{name}.new").replace(folder / name)
    if manner == "ends":
        os.kill(os.getpid(), 9)
    if manner == "is silent":
        time.sleep(60)
    output = ANSWER.encode()
    texts = {
        "answers": b"00%08x" % len(output) + output, "stops short": b"00%08x" % len(output) + output[:-1],
        "talks nonsense": b"00zzzzzzzz" + output, "refuses": b"",
    }  # fmt: skip
    connection.sendall(texts[manner])


def main() -> None:
    """Listen for the client that has started this process, until its end."""
    folder, place, name = Path(os.environ["PLAYED"]), checkers_dir(), name_of(client_process())
    os.makedirs(place, mode=0o700, exist_ok=True)
    (Path(place) / f"{name}.lock").write_text(str(os.getpid()))
    (Path(place) / "alone").touch()
    listener = listening(place, name)
    (folder / "ready").touch()
    while True:
        connection = listener.accept()[0]
        with connection:
            try:
                meet(connection, (folder / "manner").read_text(), folder)
            except (EOFError, OSError):
                continue  # the plugin has left


if __name__ == "__main__":
    assert sys.argv[1:] == ["serve"]
    main()
