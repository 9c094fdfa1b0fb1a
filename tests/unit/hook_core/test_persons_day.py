"""A day of one person and one agent in one checkout, played through the check: refusals for the right deeds alone.

Each line is one deed, in order: ``agent:`` runs a command that must pass in silence; ``edit:`` and ``write:`` are the
agent's own tools; ``person:`` is a command of the person, in a terminal or an editor that no hook sees; ``refused:`` is a
command of the agent that would lose the person's work.
"""

import os
import subprocess
from pathlib import Path

import pytest
from support.altered import Limits
from support.traced import Player, git
from support.world import some_time_passes

from swarm_hook_core.state import ended_mark
from swarm_hook_core.traces import keeping

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_faults")]

DAY = """
agent: git status --short
agent: ls -la
agent: cat notes.md
agent: grep -rn alpha .
edit: notes.md | beta | BETA
agent: git diff
agent: python3 check.py > check.log
agent: python3 check.py > check.log 2>&1
agent: cat check.log
agent: rm check.log
agent: git add notes.md
agent: git commit -qm "notes: beta"
agent: git log --oneline -3
agent: echo scratch > scratch.txt
agent: mv scratch.txt scratch2.txt
agent: rm scratch2.txt
write: plan.txt | one
agent: cp plan.txt plan2.txt
agent: rm -f plan2.txt
person: printf 'person one\\nperson two\\n' >> other.md
agent: git status --short
agent: git diff -- other.md
refused: git checkout .
refused: git checkout -- other.md
refused: git stash
edit: notes.md | gamma | GAMMA
agent: git checkout -- notes.md
edit: notes.md | gamma | GAMMA
agent: git stash push -q -- notes.md
agent: git stash pop -q
agent: git restore notes.md
refused: git reset --hard
refused: git reset --hard HEAD
agent: git reset -q
agent: rm plan.txt
agent: python3 gen.py
agent: git status --short
agent: rm -rf build
agent: python3 gen.py
agent: git clean -fdq build
agent: python3 gen.py
person: echo 'remember the milk' > todo.txt
agent: ls
refused: git clean -fd
refused: git clean -fdx
refused: rm -rf ./*
refused: rm todo.txt
agent: git clean -fdq build
agent: cat todo.txt
agent: sed -i 's/alpha/ALPHA/' sub/deep.md
agent: git checkout -- sub/deep.md
person: sed -i 's/beta/person/' sub/deep.md
agent: git diff sub
refused: git restore sub
refused: git checkout HEAD -- sub/deep.md
edit: sub/deep.md | gamma | agent
refused: git checkout -- sub/deep.md
refused: rm -r sub
refused: cp notes.md sub/deep.md
agent: git add sub/deep.md
refused: git restore --staged --worktree sub/deep.md
person: git add -A && git commit -qm "mine"
agent: git log --oneline -1
edit: sub/deep.md | alpha | again
agent: git checkout .
agent: git switch -q -c topic
agent: echo line >> notes.md
agent: git commit -qam topic
agent: git switch -q main
agent: git merge -q topic
agent: git branch -d topic
agent: python3 format.py
agent: git diff --stat
agent: git checkout -- notes.md other.md
agent: python3 format.py && git stash -q && git stash drop -q
person: echo 'a late idea' >> notes.md
agent: python3 check.py
refused: git switch -f -c other
refused: git stash -u
refused: git rebase --autostash HEAD~1
refused: git checkout -f
agent: git switch -q -c other
agent: git switch -q main
agent: cat notes.md
agent: echo '# a new beginning' | cat - notes.md > notes.new
agent: rm notes.new
agent: git worktree add -q ../beside
agent: git worktree remove --force ../beside
person: rm todo.txt
agent: git checkout -- todo.txt
agent: mkdir -p out && echo x > out/a && echo y > out/b
agent: rm -r out
agent: git add -A
agent: git commit -qm "all of it"
agent: git reset -q --hard
"""
CHECK = "import sys\nprint('all is well')\n"
GEN = "import os\nos.makedirs('build', exist_ok=True)\nfor n in 'abc': open('build/' + n, 'w').write(n)\n"
FORMAT = "for n in ('notes.md', 'other.md'):\n    t = open(n).read()\n    open(n, 'w').write(t.upper() + ' ')\n"


def ends(player: Player) -> None:
    """Leave the mark that the client's hook leaves after a call."""
    Path(ended_mark()).parent.mkdir(exist_ok=True)
    Path(ended_mark()).write_bytes(b"")
    some_time_passes()


def test_no_false_refusal_and_each_sweep_over_a_person_s_lines_is_refused(work: Path, limits: Limits) -> None:
    limits(keeping, NEAR_NS=0)
    git(work, "config", "user.name", "t")
    git(work, "config", "user.email", "t@t")
    for name, text in (("check.py", CHECK), ("gen.py", GEN), ("format.py", FORMAT)):
        (work / name).write_text(text)
    git(work, "add", ".")
    git(work, "commit", "-qm", "tools")
    agent = Player("claude-code", work)
    deeds = [line.partition(": ") for line in DAY.strip().splitlines()]
    assert len(deeds) >= 60
    for kind, _, deed in deeds:
        parts = deed.split(" | ")
        before = {path: path.read_bytes() for path in work.rglob("*") if path.is_file() and ".git" not in path.parts}
        if kind == "person":
            subprocess.run(["bash", "-c", deed], cwd=work, check=True, capture_output=True)
            some_time_passes()
            continue
        if kind == "edit":
            said = agent.edits(*parts)
        elif kind == "write":
            said = agent.writes(parts[0], parts[1] + "\n")
        else:
            said = agent.runs(deed)
            if "would stage a person's work" in said or "would commit a person's work" in said:
                said = agent.runs(deed)  # told once of each file that goes along
        if kind == "refused":
            assert said.startswith("denied: ") and "a person's work" in said, (deed, said)
            assert before == {path: path.read_bytes() for path in before if os.path.lexists(path)}, deed
        else:
            assert said == "", (deed, said)
            ends(agent)
