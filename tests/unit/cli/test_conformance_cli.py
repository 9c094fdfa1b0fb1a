"""The recorded command lines, run again: the same exit codes, the same JSON, the same lines of text."""

import json

import pytest
from support import captures, deviations
from support.captures import Names, Verdict, differences
from support.fixtures import Done, Ground
from support.requirement import requirement

pytestmark = pytest.mark.slow

RECORD = captures.load("cli")


def of_run(run: dict, done: Done, names: Names) -> list[str]:
    """The differences between a run and the recorded one."""
    found = [] if done.code == run["exit"] else [f"exit: {done.code}, not {run['exit']}"]
    found += differences(run.get("err", ""), done.err, names, "stderr")
    if "json" not in run:
        return found + differences(run.get("out", ""), done.out, names, "stdout")
    try:
        value = json.loads(done.out)
    except ValueError:
        return [*found, f"stdout: no JSON: {done.out}"]
    assert done.out == json.dumps(value, indent=2, ensure_ascii=False) + "\n"
    return found + differences(run["json"], value, names)


@requirement("P-26")
def test_every_recorded_run_ends_alike(ground: Ground, monkeypatch):
    monkeypatch.setenv("SWARM_HERDR_BIN", str(ground.folder / "no-herdr"))
    project = ground.folder / "proj"
    (project / ".git").mkdir(parents=True)
    names, verdict = Names(str(ground.folder)), Verdict(deviations.CLI)
    for run in RECORD:
        argv = names.fill(run["argv"])
        if argv[0] == "doctor":
            argv.append("--no-clients")
        with monkeypatch.context() as patch:
            for name, value in run.get("env", {}).items():
                patch.setenv(name, value)
            done = ground.swarm(*argv, cwd=project)
            if run["n"] in deviations.FORCED_RUNS:
                assert done.code == 1
                done = ground.swarm(*argv, deviations.FORCED_RUNS[run["n"]], cwd=project)
        verdict.judge(f"{run['n']} {' '.join(run['argv'])}", of_run(run, done, names))
    verdict.deliver()
