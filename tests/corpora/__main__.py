"""Record what every command of the corpus really does: ``PYTHONPATH=tests python -m corpora [part of a key ...]``."""

from __future__ import annotations

import sys

from corpora import blocks, truth

FOLDERS = ("writes", "reads", "staging")


def main(wanted: list[str]) -> int:
    """Run the commands whose key holds one of `wanted` (none: all), write the record, say what looks wrong."""
    known = truth.load() if truth.RECORD.exists() else {}
    every = [block for folder in FOLDERS for block in blocks.load(folder)]
    chosen = [block for block in every if not wanted or any(part in block.key for part in wanted)]
    fresh = truth.run(chosen)
    keys = {block.key for block in every}
    truth.save({key: entry for key, entry in {**known, **fresh}.items() if key in keys})
    for block in chosen:
        entry = fresh.get(block.key)
        if entry is None:
            print(f"{block.key}: not run, needs {' '.join(truth.missing(block))}")
        elif block.key.startswith("writes/") != bool(entry["writes"]):
            print(f"{block.key}: status {entry['status']}, changed {entry['writes']}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
