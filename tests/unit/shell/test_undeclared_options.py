"""Undeclared options of a program: its `-o` is written, its other subcommands and options are a guess."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from swarm_hook_core.shell import effects_of

# Command -> (certainly written, possibly written); `f` and `dir/f` are there.
NAMED = {
    "frob -i in -o f": ("f", ""),
    "frob -of": ("f", ""),
    "frob -o=f": ("f", ""),
    "frob --output f; frob --output=g": ("f g", ""),
    "frob --out f; frob --out-file g; frob --outFile h; frob -outfile i; frob --sarif-output j": ("f g h i j", ""),
    "frob --out-dir dir; frob --install-directory=dir; frob --reportDir dir": ("", "dir/f"),
    "frob -o dir": ("", "dir/f"),
    "frob --outdated f; frob --outline f; frob --output-format f; frob --cache-dir dir; frob --working-directory dir":
        ("", ""),
    "frob -o -; frob --output -v f": ("", ""),
    "python3 gen.py -x 1 --output f": ("f", ""),
    "node gen.js -o f": ("f", ""),
    "./gen -o f": ("f", ""),
    "sudo frob -o f; ls | xargs frob -o g": ("f g", ""),
    # known programs with rows that do not declare it
    "rubocop --out f .; scc -o g; cloc --out=h .; nc -o i host 1": ("f g h i", ""),
    "dotnet publish -o dir": ("", "dir/f"),
    "corepack enable --install-directory dir": ("", "dir/f"),
    "docker scout cves --output f image": ("f", ""),
    "gcc --compile a.c; g++ b.c --output f": ("a.o f", ""),
    "gcc -MMD -c a.c -o dir/a.o": ("dir/a.d dir/a.o", ""),
    "go build cmd/x.go; go build -C dir y.go": ("x dir/y", ""),
    "nmap -oN f host; tcpdump -w g -i lo": ("f g", ""),
    "frob list -o f": ("f", ""),
    "gio copy f g; gio rename dir/f h": ("g dir/h g/f dir/f", ""),
    # their `-o` means something else, and stands before files that they only read
    "ps -o pid; grep -o f f; strings -o f; ls -o f; nm -o f; lsof -o f; hexdump -o f; rg -o f f; mvn -o f": ("", ""),
    "find . -name a -o -name f; test -f f -o f; set -o f; echo -o f; ssh -o f host": ("", ""),
    "kubectl get pods -o f": ("", ""),
}  # fmt: skip
GUESSED = """
npm frob
npm shrinkwrap
pip lock
cargo frob
gem unpack x
go frob
apt-get download x
brew bundle dump
volta pin node
corepack use pnpm@9
docker frob
docker init
docker compose frob
kubectl frob
helm frob .
gh attestation download x
uv frob
poetry new x
mise use node@20
direnv edit .
gcc --frob a.c
jq --in-place . f
shellcheck --fix f
git frob
frob
frob --helpful
frob get x
frob -l f
screen -dm make
""".strip().split("\n")
QUIET = """
npm ls --depth 0
npm --prefix dir ls
npm -h
npm frob --help
pip list -o
pip --disable-pip-version-check list
cargo tree
cargo +nightly metadata
gem list
go list ./...
go version
apt-get update
apt list --installed
docker ps -a
docker image ls
docker -H tcp://h ps
docker compose -f x.yml logs
kubectl -n kube-system get pods
kubectl get pods
helm list
gh pr view 1
gh run list
uv pip list
uv --version
poetry show
mise ls
direnv status
gcc --version
gcc -E a.c
jq . f
shellcheck f
tr --delete a
frob --help
frob sub --help
frob -V
frob version
frob status --short
frob list
frob -l
apt-cache policy nginx
rpm -qa
screen -ls
nmap -sV localhost
tcpdump -i lo
curl --write-out '%{http_code}' http://host.invalid
""".strip().split("\n")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "dir").mkdir()
    for name in ("f", "dir/f"):
        (tmp_path / name).write_text("")
    return tmp_path


def of(command: str, folder: Path):
    return effects_of(command, str(folder), {"HOME": str(folder), "PATH": os.environ["PATH"]})


@pytest.mark.parametrize("command", NAMED)
def test_an_output_that_is_named_is_written(command: str, folder: Path) -> None:
    certain, possible = NAMED[command]
    effects = of(command, folder)
    written = {os.path.relpath(os.path.join(one.folder, one.path), folder) for one in effects.writes}
    assert written - {"a.out"} == set(certain.split())
    asked = {name for name in ("f", "dir/f") for tree in effects.trees if tree.admits(str(folder / name)) is None
             if str(folder / name).startswith(tree.root + "/")}  # fmt: skip
    assert asked == set(possible.split())


@pytest.mark.parametrize("command", GUESSED)
def test_a_subcommand_or_option_that_nobody_knows_is_a_guess(command: str, folder: Path) -> None:
    effects = of(command, folder)
    assert effects.guesses or effects.git


@pytest.mark.parametrize("command", QUIET)
def test_what_is_known_to_read_stays_quiet(command: str, folder: Path) -> None:
    effects = of(command, folder)
    assert not [guess.why for guess in effects.guesses] and not effects.writes and not effects.trees
