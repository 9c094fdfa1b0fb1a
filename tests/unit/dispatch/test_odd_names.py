"""Names of folders, titles and labels are foreign text: nothing of them is ever expanded or executed."""

from pathlib import Path

import pytest
from support import supervised
from support.fixtures import Ground
from support.supervised import GATEWAY, dispatch, over, reaches

# `$TRAP` is a path in the environment of all that is started here.
COMMANDS = ["#(touch $TRAP)", "$(touch $TRAP)", "`touch $TRAP`", "#{l:x}", "##(touch $TRAP)", "%H", "%%", "$HOME", "!!"]
SIGNS = ["'", '"', "\n", ";", "\\", "\t", "\x1b]2;titled\x07", "\x1b[2J", "\x9b31m", "\u202e", "~", "*", "&", "|", "é"]
ALL = "a" + "".join([*COMMANDS, *SIGNS]) + "b"


@pytest.mark.parametrize("odd", [ALL, "-x;"], ids=["every sign", "like a flag"])
def test_a_worker_is_started_by_odd_names(
    ground: Ground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, odd: str
) -> None:
    trap = tmp_path / "sprung"
    monkeypatch.setenv("TRAP", str(trap))
    lead = ground.session("lead", GATEWAY)
    folder = ground.repo / odd
    folder.mkdir()
    (folder / "said").write_text(odd)
    try:
        given = {"name": odd, "label": "odd:" + "".join(odd.split()), "cwd": str(folder)}
        answer = dispatch(ground, lead, odd, "cat said; pwd > here; echo fine", **given)
        assert answer["status"] == "spawned", answer
        reaches(ground, answer, "done")
        over(ground, answer)
    finally:
        supervised.end_all(ground)
    assert (folder / "here").read_text() == f"{folder}\n"
    assert not trap.exists()
