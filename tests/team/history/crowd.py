"""Many machines in one process, each with one session: a part of two hundred that share a server."""

from __future__ import annotations

import json
import sys
import threading
from collections import Counter
from pathlib import Path

from swarm_mcp.team import protocol

from . import server_machine
from .server_machine import ServerMachine
from .workers import begun, work


def main() -> None:
    server_machine.LEASE, server_machine.MIRROR_LEASE = protocol.SESSION_LEASE, protocol.MIRROR_LEASE
    told = json.loads(sys.argv[1])
    report, stop = Path(told["report"]), Path(told["stop"])
    numbers = [told["machines"] * told["number"] + one for one in range(told["machines"])]
    machines = [ServerMachine(told["conninfo"], told["repository"], number, stop.exists) for number in numbers]
    reports = [report.with_suffix(f".{number}") for number in numbers]
    threads = [threading.Thread(target=one.run) for one in machines]
    for one, part in zip(machines, reports):
        one.sessions, one.pause = one.sessions[:1], 0.5
        threads.append(threading.Thread(target=work, args=(one, stop.exists, part, told["seed"])))
    for thread in threads:
        thread.start()
    while not all(one.has_joined() for one in machines):
        threads[0].join(0.1)
    begun(report).touch()
    for thread in threads:
        thread.join()
    parts = [json.loads(part.read_text()) for part in reports]
    whole = {name: [row for part in parts for row in part[name]] for name in ("history", "settled", "looks")}
    counts = sum((Counter(part["counts"]) for part in parts), Counter())
    report.write_text(json.dumps({**whole, "counts": counts}))


if __name__ == "__main__":
    main()
