"""Many processes on two machines of a team, killed at random, over names that overlap: no two ever hold the same."""

from pathlib import Path

from support import lock_stress
from support.lock_model import FOLDERS, NAMES

from team.homes import Home

SECONDS = 20.0  # the locks of a killed process are free for others after its agent's next look


def test_no_two_processes_on_two_machines_hold_what_overlaps_whatever_is_killed(
    tmp_path: Path, team: str, repository: str
) -> None:
    homes = [Home(tmp_path, name) for name in ("north", "south")]
    for home in homes:
        for folder in FOLDERS:
            (home.clone / folder).mkdir(parents=True)
    try:
        for home in homes:
            home.run("team", "join", team, "--repository", repository)
        places = [lock_stress.Place(str(home.clone), home.environment) for home in homes]
        lock_stress.run(places, tmp_path / "stress", SECONDS)
        for home in homes:  # the leftovers of the dead are in no session's way
            told = home.json("lock", *NAMES, "--detach", "--ttl", "300", "--wait", "30")
            assert told["team"].get("settled") is True, told["team"]
            home.run("unlock", "--all", "--as", told["instance_id"])
    finally:
        for home in homes:
            home.end()
