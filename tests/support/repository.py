"""This repository's own files, for tests of building, installing and releasing."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def names() -> list[str]:
    """Every file of the repository as it would be were the work tree committed now. Outside a clone the test is skipped."""
    argv = ["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    if not (ROOT / ".git").exists():
        pytest.skip("this is no clone of the repository")
    listing = subprocess.run(argv, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    # A deleted file is listed until that is committed.
    return [name for name in listing.split("\0") if name and ((ROOT / name).is_symlink() or (ROOT / name).exists())]


def copied(target: Path) -> Path:
    """Copy those files to `target`, and return it."""
    for name in names():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, target / name, follow_symlinks=False)
    return target
