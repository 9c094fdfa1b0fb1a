"""The changes of each command of the corpus in a real run, as ``shell/truth.json`` keeps them.

    {"writes/tee/append": {"text": sha1 of set-up and command, "writes": ["repo/a.txt"], "git": false, "status": 0}}

``git``: True if files inside ``.git`` changed. ``status``: the exit status; 127 if its program is not there.
"""

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterable

from corpora import sandbox
from corpora.blocks import SHELL, Block

RECORD = SHELL / "truth.json"


def load() -> dict[str, dict]:
    """The record. Raises OSError, ValueError."""
    return json.loads(RECORD.read_text(encoding="utf-8"))


def save(record: dict[str, dict]) -> None:
    """Write the record, one command a line."""
    lines = (f"{json.dumps(key)}: {json.dumps(record[key], ensure_ascii=False)}" for key in sorted(record))
    RECORD.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def text_of(block: Block) -> str:
    """Return the text that a record depends on."""
    return hashlib.sha1(f"{block.setup}\n{block.text}".encode()).hexdigest()[:12]


def missing(block: Block) -> list[str]:
    """The programs it needs that are not here."""
    return [name for name in block.needs if not shutil.which(name)]


def run(blocks: Iterable[Block]) -> dict[str, dict]:
    """Really run each of these in a fresh sandbox; the record of them. Those that lack a program are left out."""
    record = {}
    with tempfile.TemporaryDirectory(prefix="corpus-") as folder:
        folder = os.path.realpath(folder)
        base, root = f"{folder}/base", f"{folder}/box"
        sandbox.make(base)
        with sandbox.web(f"{base}/web") as port:
            for block in blocks:
                if missing(block):
                    continue
                sandbox.copy(base, root)
                setup, text = block.at(root, port)
                if setup:
                    sandbox.shell(setup, root, check=True)
                before = sandbox.Snapshot(root)
                status = sandbox.shell(text, root)
                writes, git = before.changed(sandbox.Snapshot(root))
                record[block.key] = {"text": text_of(block), "writes": writes, "git": git, "status": status}
    return record
