"""`make matrix`: play the scenarios in a release of a client, and write the row down."""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from . import rows
from .playing import NOT_HELD, NOT_PLAYED, installed, outcomes
from .releases import CLIENTS, PINNED, at_hand, families, fetch, put_in_place, version_in
from .scenarios import SCENARIOS

REPOSITORY = Path(__file__).resolve().parent.parent.parent


def main() -> int:
    """Exit status 1: a promise did not hold, or, with ``--check``, an outcome is another than the row has it."""
    parser = argparse.ArgumentParser(prog="make matrix", description=__doc__)
    parser.add_argument("--client", choices=CLIENTS, action="append", help="several times for several; without: all")
    parser.add_argument("--release", default="latest", help="a version, `latest`, or `pinned`: the one at hand")
    parser.add_argument("--model", action="append", help="of these families alone")
    parser.add_argument("--scenario", choices=SCENARIOS, action="append", help="these alone")
    parser.add_argument("--check", action="store_true", help="compare with the rows, and write nothing")
    parser.add_argument("--folder", help="a folder that keeps the releases; without: one that is removed")
    given = parser.parse_args()
    # A shell has its background jobs ignore it, and their children would, too: with a handler here they do not.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    pinned = Path(os.environ["SWARM_E2E_CLIENTS"]).absolute()
    failed = False
    with tempfile.TemporaryDirectory() as scratch:
        for client in given.client or CLIENTS:
            folder = Path(given.folder or scratch) / f"{client}-{given.release}"
            if given.release == PINNED:
                release = version_in(at_hand(client), client)
            else:
                try:
                    release = fetch(client, given.release, folder)
                except subprocess.CalledProcessError:
                    print(f"{client} {given.release} cannot be fetched: its installer says why above", file=sys.stderr)
                    failed = True  # the other clients' rows are still to be had
                    continue
                put_in_place(client, folder, pinned)
            print(f"{client} {release}", file=sys.stderr)
            chosen = [one for one in families(client) if not given.model or one.model in given.model]
            alone = Path(tempfile.mkdtemp(dir=scratch))
            with installed(client, alone) as there:
                for family in chosen:
                    mode = "" if given.check else "all"
                    found = {family.model: outcomes(there, family, given.scenario or SCENARIOS, mode)}
                    if given.check:
                        failed |= bool(rows.unlike(client, release, found))
                        continue
                    rows.put(client, release, found)
                    failed |= any(said.startswith((NOT_HELD, NOT_PLAYED)) for said in found[family.model].values())
            if not given.check:
                rows.write_verified(client, REPOSITORY)
                (REPOSITORY / "docs" / "dev" / "matrix.md").write_text(rows.page())
    return int(failed)


sys.exit(main())
