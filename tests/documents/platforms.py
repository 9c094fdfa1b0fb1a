"""Print the table of platforms in docs/install.md: those for which the package index has all wheels.

usage: python tests/documents/platforms.py

Each cell is an answer of `pip download --only-binary=:all:`, and fetches the wheel if there is one. It takes some
minutes and a network.
"""

import subprocess
import sys
import tempfile

NEWEST, OLDEST = "3.14", "3.10"
# All that we need, directly or not, and that is not pure Python. MarkupSafe does without its compiled part.
PACKAGES = ("rpds-py", "pysqlite3")
GLIBC = ("2_34", "2_28", "2_24", "2_17", "2_12", "2_5")
MUSL = ("1_2", "1_1")
PLATFORMS = {
    "Linux, glibc, x86-64": [f"manylinux_{release}_x86_64" for release in GLIBC] + ["manylinux2014_x86_64"],
    "Linux, glibc, aarch64": [f"manylinux_{release}_aarch64" for release in GLIBC] + ["manylinux2014_aarch64"],
    "Linux, musl, x86-64": [f"musllinux_{release}_x86_64" for release in MUSL],
    "Linux, musl, aarch64": [f"musllinux_{release}_aarch64" for release in MUSL],
    "macOS, arm64": [f"macosx_{release}_0_{kind}" for release in range(11, 16) for kind in ("arm64", "universal2")],
    "macOS, x86-64": [f"macosx_{release}_{kind}" for release in ("10_9", "10_12", "10_13", "10_15", "11_0", "12_0",
                      "13_0", "14_0", "15_0") for kind in ("x86_64", "universal2")],
}  # fmt: skip


def has_wheel(package: str, tags: list[str], python: str, abis: list[str]) -> bool:
    """Return True if the index has a wheel of `package` for these platform tags."""
    with tempfile.TemporaryDirectory() as folder:
        argv = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        argv += ["--only-binary=:all:", "--dest", folder, "--implementation", "cp", "--python-version", python]
        argv += [f"--platform={tag}" for tag in tags] + [f"--abi={abi}" for abi in abis]
        return subprocess.run([*argv, package], capture_output=True).returncode == 0


def main() -> None:
    builds = {version: (version, [f"cp{version.replace('.', '')}", "abi3", "none"]) for version in (OLDEST, NEWEST)}
    builds[f"{NEWEST} free-threaded"] = (NEWEST, [f"cp{NEWEST.replace('.', '')}t", "none"])
    print("| platform | " + " | ".join(PACKAGES) + " |\n|" + "---|" * (len(PACKAGES) + 1))
    for name, tags in PLATFORMS.items():
        cells = []
        for package in PACKAGES:
            there = [build for build, how in builds.items() if has_wheel(package, tags, *how)]
            lacking = [build for build in builds if build not in there]
            cells.append("wheel" if not lacking else f"not for {', '.join(lacking)}" if there else "none")
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
