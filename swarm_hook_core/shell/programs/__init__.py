"""What programs do with their arguments: one module a family, loaded when one of its programs is met.

A family has ``RUN``: program -> function of a `Call`, which says through the call what is written, guessed,
run or printed. A program that no family knows is a guess; one in ``readers.NAMES`` writes nothing.
"""

FAMILIES = {
    "files": "rm grm rmdir unlink mkdir touch gtouch truncate shred mknod mkfifo chmod chown chgrp chflags setfacl"
    " xattr mktemp rename prename rename.ul file-rename perl-rename trash trash-put gio dos2unix unix2dos",
    "copies": "cp gcp mv gmv ln gln link install ginstall rsync ditto",
    "filters": "tee dd sort gsort uniq sponge split gsplit csplit tree less xxd iconv shuf gshuf base64 base32"
    " uudecode",
    "outputs": "tmux screen rpm nmap masscan tcpdump tshark dumpcap ngrep sdiff xsv sar cppcheck"
    " nvidia-smi trivy grype pygmentize highlight qrencode xmlstarlet ptx file"
    " openssl gpg gpg2 age ssh-keygen mlr strip objcopy ranlib pdftotext m4 plutil defaults screencapture",
    "sed": "sed gsed",
    "awk": "awk gawk mawk nawk goawk",
    "perl": "perl",
    "patch": "patch gpatch",
    "editors": "ed red ex vi vim nvim view rvim gvim mvim emacs emacsclient nano pico micro hx joe kak mcedit code"
    " subl zed cursor",
    "archives": "tar bsdtar gtar 7z 7za 7zz 7zr rar unrar unzip zip cpio pax ar jar gar",
    "compressors": "gzip bzip2 xz lzma zstd lz4 brotli compress lzip gunzip pigz unpigz bunzip2 pbzip2 unxz unlzma"
    " unzstd unlz4 zstdmt uncompress pixz",
    "transfer": "kubectl oc helm curl wget scp sftp aria2c gh http https xh aws gsutil",
    "formatters": "black blue ruff isort autopep8 yapf autoflake pyupgrade reorder-python-imports docformatter"
    " mdformat nbstripout djlint sqlfluff codespell prettier prettierd eslint oxlint standard xo stylelint biome rome"
    " dprint markdownlint markdownlint-cli2 gofmt gofumpt goimports gci golines golangci-lint rustfmt clang-format"
    " shfmt stylua swiftformat swift-format swiftlint google-java-format ktlint ktfmt scalafmt rubocop standardrb"
    " php-cs-fixer phpcbf pint terraform tofu packer terragrunt taplo buf nixfmt nixpkgs-fmt alejandra ormolu"
    " fourmolu elm-format cmake-format dart zig crystal csharpier perltidy tidy xmllint yq yamlfmt toml-sort"
    " sort-package-json uncrustify astyle latexindent sd ast-grep sg fastmod jscodeshift semgrep jupytext pre-commit"
    " prek cookiecutter",
    "projects": "tox nox mocha mvn mvnw gradle gradlew rspec phpunit cypress jest vitest ava karma playwright ctest"
    " bazel bazelisk buck2 pants meson scons waf xcodebuild stack cabal sbt lein ant rake task mage turbo nx lerna"
    " gulp grunt webpack rollup parcel next nuxt astro gatsby hugo jekyll mkdocs sphinx-build tsup ts-node-esm"
    " nodemon pm2 behave robot locust unittest nose2 invoke fab ansible-playbook molecule storybook remix ng"
    " vue-cli-service expo react-native swift elixir erl iex julia scala kotlin kotlinc groovy java racket sbcl"
    " clojure bb octave maturin pytest py.test make gmake mypy pyright basedpyright pylint flake8 pyflakes ty pyre"
    " bandit vite prisma graphql-codegen sqlc alembic swagger-codegen openapi-generator-cli just ninja cmake tsc"
    " coverage go dotnet mix rails flutter django-admin flask uvicorn gunicorn celery streamlit phpstan psalm gotestsum"
    " ginkgo wasm-pack trunk nyc c8 svelte-check vue-tsc msbuild rebar3 dune lake",
    "packages": "npm cnpm yarn pnpm pip pip3 bundle bundler apt apt-get brew dnf yum apk pacman snap port crontab"
    " dpkg systemctl service launchctl journalctl pipx rustup nvm volta corepack cargo gem composer pod conan",
    "converters": "gcc g++ cc c++ clang clang++ swiftc gfortran ghc tcc convert magick mogrify composite montage"
    " pdflatex xelatex lualatex latexmk latex pandoc dot neato mmdc plantuml sass lessc terser swc babel uglifyjs"
    " csso svgo ld as nasm pngquant cwebp rsvg-convert inkscape wkhtmltopdf weasyprint qpdf pdf2svg cbindgen"
    " openapi-generator pip-compile cyclonedx bison yacc flex gperf rustc javac ffmpeg protoc esbuild typst ctags"
    " etags",
    "databases": "sqlite3 sqlite duckdb pg_dump pg_dumpall mysqldump mongodump mysql mariadb redis-cli mongosh psql",
    "interpreters": "python python3 python2 pypy pypy3 node nodejs tsx ts-node deno bun ruby php lua luajit osascript"
    " tclsh Rscript ipython",
    "wrappers": "env genv sudo doas sudoedit nohup nice ionice chrt taskset timeout gtimeout time gtime stdbuf gstdbuf"
    " setsid unbuffer caffeinate chronic rlwrap xvfb-run catchsegv linux64 arch numactl systemd-run dotenv strace"
    " ltrace"
    " dtruss valgrind flock script watch hyperfine busybox nix-shell direnv mise asdf devbox ssh mosh chroot docker"
    " podman"
    " nerdctl docker-compose podman-compose find gfind fd fdfind xargs gxargs parallel entr bash sh zsh dash ksh ash"
    " fish"
    " su runuser npx bunx pnpx uvx uv poetry pdm pipenv hatch rye pixi",
    "listers": "echo printf pwd ls gls cat head tail ghead gtail basename dirname realpath readlink grealpath greadlink"
    " seq true false test [ which type hostname whoami id uname date gdate swarm-mcp",
    "searchers": "grep egrep fgrep ggrep zgrep rg ag ack",
    "git": "git",
}
FAMILY_OF = {name: family for family, names in FAMILIES.items() for name in names.split()}


def program(name: str):
    """The function for program `name` (its base name), or None where nothing is known of it."""
    family = FAMILY_OF.get(name) or FAMILY_OF.get(name.rstrip("0123456789.-"))  # python3.12, gcc-13
    if family is None:
        from swarm_hook_core.shell.programs.readers import NAMES

        return reads if name in NAMES else None
    full = f"swarm_hook_core.shell.programs.{family}"
    module = __import__(full, fromlist=["RUN"])
    return module.RUN.get(name) or module.RUN.get(name.rstrip("0123456789.-"))


def reads(_call) -> None:
    """Writes nothing."""
