"""What programs do with their arguments: one module a family, loaded when one of its programs is met.

A family has ``RUN``: program -> function of a `Call`, which says through the call what is written, guessed,
run or printed. A program that no family knows is a guess; one in ``readers.NAMES`` writes nothing.
"""

FAMILIES = {
    "files": "cp mv rm rmdir unlink mkdir install ln link touch truncate tee dd mkfifo mknod shred split csplit"
    " sort uniq sponge chmod chown chgrp mktemp rename",
    "editors": "sed gsed perl awk gawk mawk nawk ed ex vi vim nvim view emacs nano patch",
    "formatters": "prettier black ruff isort autopep8 yapf gofmt goimports gofumpt eslint rustfmt clang-format biome"
    " dprint shfmt stylua swiftformat google-java-format ktlint rubocop standardrb php-cs-fixer terraform tofu"
    " stylelint autoflake pyupgrade docformatter mdformat taplo buf nixfmt alejandra ormolu fourmolu scalafmt dart"
    " zig xmllint jq yq codespell djlint sqlfluff pre-commit nbstripout jupytext cmake-format markdownlint",
    "archives": "tar bsdtar gtar unzip zip gzip gunzip bzip2 bunzip2 xz unxz zstd unzstd lz4 cpio 7z 7za ar jar unrar pax",
    "transfer": "rsync scp curl wget sftp aria2c http https gh",
    "interpreters": "python python3 python2 pypy pypy3 node nodejs deno bun ruby php lua osascript tclsh Rscript ipython",
    "wrappers": "env sudo doas command builtin exec nohup nice ionice timeout stdbuf time setsid chroot xargs parallel find"
    " fd fdfind bash sh zsh dash ksh fish su eval source . watch flock script strace ltrace caffeinate unbuffer npx bunx"
    " pnpx uvx uv poetry pipenv rye hatch nix-shell busybox ssh docker podman make_ trap coproc",
    "projects": "make gmake cmake ninja npm pnpm yarn pip pip3 cargo go mvn gradle gradlew bundle gem composer pytest tox"
    " nox jest vitest mocha tsc webpack vite rollup esbuild gcc g++ cc c++ clang clang++ rustc javac dotnet swift"
    " mix rake rspec phpunit playwright cypress mypy pyright coverage sphinx-build mkdocs protoc pdflatex latexmk pandoc"
    " convert magick ffmpeg sqlite3 psql mysql crontab apt apt-get brew",
    "listers": "echo printf pwd ls cat head tail grep egrep fgrep rg ag basename dirname realpath readlink seq true false"
    " which type test [ hostname whoami id uname date",
    "git": "git",
}
FAMILY_OF = {name: family for family, names in FAMILIES.items() for name in names.split()}


def program(name: str):
    """The function for program `name` (its base name), or None where nothing is known of it."""
    family = FAMILY_OF.get(name) or FAMILY_OF.get(name.rstrip("0123456789."))  # python3.12, gcc-13
    if family is None:
        from swarm_hook_core.effects.programs.readers import NAMES

        return _reads if name in NAMES else None
    full = f"swarm_hook_core.effects.programs.{family}"
    module = __import__(full, fromlist=["RUN"])
    return module.RUN.get(name) or module.RUN.get(name.rstrip("0123456789."))


def _reads(_call) -> None:
    """Writes nothing."""
