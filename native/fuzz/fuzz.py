"""Fuzzes the parts of swarm_check that read payloads and journals, under two sanitizers.

    python native/fuzz/fuzz.py FOLDER SECONDS      builds into FOLDER; keeps the corpus there, and inputs that fail

With clang it is libFuzzer that runs ``target.c``. Elsewhere this program mutates the seeds itself, without coverage.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
NATIVE = HERE.parent
# The target has its own, or includes it.
LEFT_OUT = {"hand_over.c", "swarm_check.c", "store.c", "journal.c", "json.c", "near_locks.c"}
SANITIZE = "address,undefined"

EDIT = b'{"session_id": "11111111-1111-4111-8111-111111111111", "cwd": "\1", "tool_name": "%s", "tool_input": %s}'
PATCH = rb'{"command": "*** Begin Patch\n*** Update File: sub/deep.md\n@@\n-a\n+\u00e9\n*** End Patch\n"}'
ADDED = rb'{"command": "*** Begin Patch\n*** Add File: \1/new.md\n+a\n*** End Patch"}'
FIRST = b"\n3 session - codex\4id\4\1\n"
# ruff: noqa: E501
# A part of the target, and bytes for it; 1 to 4 stand for texts (``target.c``).
SEEDS = [
    b"\0" + EDIT % (b"Edit", b'{"file_path": "\1/sub/deep.md", "old_string": "a", "new_string": "\\u00e9"}'),
    b"\0" + EDIT % (b"Write", b'{"content": "x\\ny", "file_path": "notes.md"}'),
    b"\0" + EDIT % (b"Edit", b'{"file_path": "\1/notes.md", "n": [1, -2.5e+3, {"a": [true, false, null]}, ""]}'),
    b"\0" + EDIT % (b"Bash", b'{"command": "git status", "description": "x"}'),
    b"\1" + EDIT % (b"apply_patch", PATCH),
    b"\1" + EDIT % (b"apply_patch", ADDED),
    b"\1" + EDIT % (b"Bash", b'{"command": "ls -la"}'),
    b"\1" + EDIT % (b"shell", b'{"command": ["bash", "-lc", "rg -n x sub | head"]}'),
    b"\2" + FIRST + b"3 wrote - Edit\4\1/notes.md\4" + b"3 7 9\n3 is - Edit\4\1/notes.md\0041 2 3 4 5 ab\n",
    b"\2" + FIRST + b"3 ran - Bash\4\1\4cp * there\n3 ran - Bash\4\1\4cat deep.md\n3 over - Bash\4\1\n",
    b"\2" + FIRST + b"2 clears - Bash\4\1/sub\4remove\n2 aside - Bash\4\1\4husky\n2 back - Bash\4\1\n",
    b"\2" + FIRST + b"3 ran - Bash\4\1\4git status\n3 runs - Bash\4\1\n3 moved - Bash\4\1\4checkout\n3 far - x\4\1/a\4b\n",
    b"\3" + FIRST + b"3 wrote - Edit\4\1/notes.md\4" + b"3 7 9\n3 wrote - Edit\4\1/sub/deep.md\4-\n",
    b"\3" + FIRST + b"3 ran - Bash\4\1\4make\n3 wrote a1 Edit\4\1/notes.md\4-\n2 will - Edit\4\1/notes.md\4-\n",
    b"\3" + FIRST + b"3 is - Edit\4\1/notes.md\0041 2\n3 before - Bash\4\1/x\4-\n3 kept - Bash\4\1\n3 runs - Bash\4\1\ntorn",
    b"\4" + b"31\n\4\1/notes.md\n\4nocase:\1/notes.md\n",
]  # fmt: skip
PIECES = [
    b'"session_id": ', b'"cwd": ', b'"tool_name": ', b'"tool_input": ', b'"file_path": ', b'"command": ', b"\\u005f", b"\\ud800",
    b"*** Add File: ", b"*** Update File: ", b"*** Move to: ", b"*** End Patch", b"\4", b"\n", b"\1/sub/deep.md", b" wrote - ", b" ran - ",
    b" clears - ", b" aside - ", b" session - ", b"..", b"//", b"\xef\xbb\xbf", b"{", b"[" * 30, b"9" * 300, b"1e999", b"-", b"\\",
    b'"', b"\0", b"nocase:", b"x" * 200, b" far - ", b" is - ", b" runs - ", b" over - ", b"2", b"3", b"deep.md", b"*", b"$",
]  # fmt: skip


def build(out: Path, compiler: list[str], by_hand: bool, sanitize: str = SANITIZE) -> None:
    """Write the target to `out`: for libFuzzer, or with a `main` that reads inputs (`by_hand`)."""
    kinds = f"fuzzer,{sanitize}" if not by_hand else sanitize
    words = [*compiler, "-g", "-O1", "-std=c11", f"-fsanitize={kinds}", "-fno-sanitize-recover=all"]
    words += ["-Wl,--wrap=opendir,--wrap=closedir", *(["-DFUZZ_BY_HAND"] if by_hand else [])]
    sources = [str(path) for path in sorted(NATIVE.glob("*.c")) if path.name not in LEFT_OUT]
    subprocess.run([*words, f"-I{NATIVE}", str(HERE / "target.c"), *sources, "-o", str(out)], check=True)


def mutated(pick: random.Random, corpus: list[bytes]) -> bytes:
    """Return a seed with some bytes removed, doubled, exchanged, or with a piece put in."""
    data = bytearray(pick.choice(corpus))
    for _ in range(pick.choice((1, 1, 2, 3, 8))):
        at = pick.randrange(1, len(data) + 1) if data else 0
        end = min(len(data), at + pick.choice((1, 1, 2, 8, 40)))
        kind = pick.randrange(5)
        if kind == 0:
            del data[at:end]
        elif kind == 1:
            data[at:at] = data[at:end] * pick.choice((1, 2, 30))
        elif kind == 2 and at < len(data):
            data[at] = pick.randrange(256)
        elif kind == 3:
            data[at:at] = pick.choice(PIECES)
        else:
            other = pick.choice(corpus)
            data[at:] = other[pick.randrange(len(other)) :]
    return bytes(data[:60000])


def fed(program: Path, inputs: list[bytes]) -> subprocess.CompletedProcess[bytes]:
    """Run a target `by_hand` on the inputs."""
    data = b"".join(b"%d\n%s" % (len(one), one) for one in inputs)
    environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}
    return subprocess.run([str(program)], input=data, capture_output=True, env=environment, check=False)


def _by_mutations(program: Path, folder: Path, seconds: float) -> int:
    pick, begun, count = random.Random(), time.monotonic(), 0
    while time.monotonic() < begun + seconds:
        inputs = [mutated(pick, SEEDS) for _ in range(2000)]
        done = fed(program, inputs)
        count += len(inputs)
        if done.returncode:
            (folder / "failed").write_bytes(b"".join(b"%d\n%s" % (len(one), one) for one in inputs))
            print(done.stderr.decode("utf-8", "replace")[-4000:])
            return 1
    print(f"{count} inputs, no finding")
    return 0


def main() -> int:
    """Build, and fuzz for the given time."""
    folder, seconds = Path(sys.argv[1]), int(sys.argv[2])
    corpus = folder / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    program = folder / "target"
    clang = shutil.which("clang")
    if clang is None:
        build(program, [os.environ.get("CC", "cc")], by_hand=True)
        return _by_mutations(program, folder, seconds)
    build(program, [clang], by_hand=False)
    for number, seed in enumerate(SEEDS):
        (corpus / f"seed-{number}").write_bytes(seed)
    words = (piece for piece in PIECES if len(piece) < 40)
    listed = "\n".join('"' + "".join(f"\\x{byte:02x}" for byte in piece) + '"' for piece in words)
    (folder / "words").write_text(listed + "\n")
    options = [
        f"-max_total_time={seconds}",
        f"-dict={folder}/words",
        "-max_len=6000",
        "-detect_leaks=0",
        "-rss_limit_mb=3000",
    ]
    options += ["-print_final_stats=1", f"-artifact_prefix={folder}/", "-reload=0"]
    return subprocess.run([str(program), *options, str(corpus)], check=False).returncode


if __name__ == "__main__":
    raise SystemExit(main())
