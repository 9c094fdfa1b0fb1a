"""The analysis finds the writes of real commands: the corpus in ``tests/corpora/shell``.

``pytest -rP`` shows the figures; ``PYTHONPATH=tests python -m corpora report`` shows them, with every miss.
"""

from __future__ import annotations

import shutil
import sys
import zlib

import pytest
from corpora import blocks, report, truth

pytestmark = pytest.mark.slow

GOAL = 0.98
WRITING, READING = 250, 300  # commands that the corpus holds at least
ONE_IN = 50  # commands that are run again, to see that the record still holds
GUESSED_READS = 0.05  # of the read-only commands that may cost a line of context at most


@pytest.fixture(scope="module")
def record() -> dict[str, dict]:
    return truth.load()


def test_every_command_has_its_record(record: dict[str, dict]) -> None:
    every = [block for folder in blocks.FOLDERS for block in blocks.load(folder)]
    assert {block.key for block in every} == record.keys()
    assert not [block.key for block in every if record[block.key]["text"] != truth.text_of(block)], "record them anew"
    writing = [block for block in every if block.folder == "writes"]
    reading = [block for block in every if block.folder == "reads"]
    assert len(writing) >= WRITING and len(reading) >= READING
    assert not [block.key for block in writing if not record[block.key]["writes"]], "these wrote nothing"
    assert not [block.key for block in every if block.folder != "writes" and record[block.key]["writes"]], "these wrote"


def test_writes_are_found(record: dict[str, dict]) -> None:
    analysed = list(report.analyse(blocks.load("writes"), record))
    named = [one for one in analysed if one.block.is_literal]
    print(f"{len(named)} commands, {sum(not one.missed for one in named)} of them found whole\n{report.lines(named)}")
    found, real = report.recall(named)[""]
    whole = sum(not one.missed for one in named)
    assert found >= GOAL * real and whole >= GOAL * len(named), report.lines(named)
    silent = [one.block.key for one in analysed if one.missed and one.block.flags and not one.is_open]
    assert not silent, f"these write more than they name, and the analysis does not say so: {silent}"


def test_reading_is_never_denied(record: dict[str, dict]) -> None:
    analysed = list(report.analyse(blocks.load("reads"), record))
    assert not {one.block.key: sorted(one.beyond) for one in analysed if one.beyond}
    guessed = {one.block.key: one.guesses for one in analysed if one.guesses or one.possible}
    running = sum(one.runs for one in analysed)
    print(f"{len(analysed)} read-only commands: none denied, {len(guessed)} guesses, {running} run the project's code")
    assert len(guessed) <= GUESSED_READS * len(analysed), guessed


def test_what_only_stages_or_commits_meets_changed_files_only(record: dict[str, dict]) -> None:
    # A commit of everything takes up a peer's unfinished changes; files that it leaves alone do not matter.
    changed = {"repo/fix.patch", "repo/mail.patch", "repo/scratch.txt", "repo/src/new_module.py", "repo/src/app.py"}
    # Files named by the command, or changed as HEAD moves.
    changed |= {"repo/data/a.txt", "repo/CHANGELOG.md"}
    analysed = list(report.analyse(blocks.load("staging"), record))
    assert not {one.block.key: one.beyond - changed for one in analysed if not one.beyond <= changed}
    assert {one.block.key for one in analysed if one.beyond} >= {"staging/git/add", "staging/git/commit heredoc"}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="recorded with GNU tools, on Linux")
@pytest.mark.thorough
def test_the_record_still_holds(record: dict[str, dict]) -> None:
    every = [block for folder in blocks.FOLDERS for block in blocks.load(folder) if "computed" not in block.flags]
    sample = [block for block in every if zlib.crc32(block.key.encode()) % ONE_IN == 0 and not _lacks(block)]
    again = truth.run(sample)
    print(f"{len(again)} commands run again")
    differing = {key: entry["writes"] for key, entry in again.items() if entry["writes"] != record[key]["writes"]}
    assert not differing, {key: (writes, record[key]["writes"]) for key, writes in differing.items()}
    assert len(again) > len(every) // (2 * ONE_IN)


def _lacks(block: blocks.Block) -> bool:
    # A formatter's result, and the files that it may leave behind, depend on its version.
    return bool(truth.missing(block)) or block.kind == "formatters" or not shutil.which("bash")
