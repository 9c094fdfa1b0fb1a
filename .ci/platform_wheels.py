"""Compiles the relay for all platforms, and makes a wheel with it for each.

usage: .ci/platform_wheels.py DIST PROGRAMS     DIST has the source archive that the wheels are made from
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    dist, programs = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    sys.path.insert(0, str(ROOT / "native"))
    from build import PLATFORMS  # type: ignore[import-not-found]

    subprocess.run([sys.executable, ROOT / "native" / "build.py", programs, *PLATFORMS], check=True)
    (archive,) = dist.glob("*.tar.gz")
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(archive) as source:
            source.extractall(folder, filter="data")
        (root,) = Path(folder).iterdir()
        for target, platform in PLATFORMS.items():
            program = str(programs / f"swarm_relay-{target}")
            environment = {**os.environ, "SWARM_RELAY": program, "SWARM_PLATFORM": platform}
            build = [
                sys.executable,
                "-m",
                "build",
                "-qq",
                "--no-isolation",
                "--wheel",
                "--outdir",
                str(dist),
                str(root),
            ]
            subprocess.run(build, check=True, env=environment)


if __name__ == "__main__":
    main()
