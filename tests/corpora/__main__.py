"""``PYTHONPATH=tests python -m corpora record|report [part of a key ...]``: of all commands, or those with such a key.

``record`` really runs them and writes their changes into ``shell/truth.json``; ``report`` prints the analysis's share
of those changes.
"""

import sys

from corpora import blocks, report, truth


def main(verb: str, *wanted: str) -> int:
    """Record or report; the exit status."""
    every = [block for folder in blocks.FOLDERS for block in blocks.load(folder)]
    chosen = [block for block in every if not wanted or any(part in block.key for part in wanted)]
    return {"record": _record, "report": _report}[verb](every, chosen)


def _record(every: list[blocks.Block], chosen: list[blocks.Block]) -> int:
    known = truth.load() if truth.RECORD.exists() else {}
    fresh = truth.run(chosen)
    keys = {block.key for block in every}
    truth.save({key: entry for key, entry in {**known, **fresh}.items() if key in keys})
    for block in chosen:
        entry = fresh.get(block.key)
        if entry is None:
            print(f"{block.key}: not run, needs {' '.join(truth.missing(block))}")
        elif (block.folder == "writes") != bool(entry["writes"]):
            print(f"{block.key}: status {entry['status']}, changed {entry['writes']}")
    return 0


def _report(_every: list[blocks.Block], chosen: list[blocks.Block]) -> int:
    analysed = list(report.analyse(chosen, truth.load()))
    print(report.lines([one for one in analysed if one.block.folder == "writes" and one.block.is_literal]))
    for one in analysed:
        if one.beyond:
            print(f"beyond: {one.block.key}: {' '.join(sorted(one.beyond)[:6])} ({len(one.beyond)})")
        if one.is_open and one.block.folder == "reads":
            said = "; ".join([*one.guesses, *["possible"] * bool(one.possible), *["runs"] * one.runs])
            print(f"open: {one.block.key} [{said}]")
        if one.block.flags and one.missed and not one.is_open:
            print(f"not open: {one.block.key}")
    slow = sorted(analysed, key=lambda one: -one.seconds)[:3]
    print("slowest:", ", ".join(f"{one.block.key} {one.seconds * 1000:.0f} ms" for one in slow))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
