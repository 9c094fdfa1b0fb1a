"""How each formatter is told what to do: data for `formatters`."""

_PYTHON = (".py", ".pyi", ".ipynb")
_SCRIPT = (".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts", ".vue", ".svelte", ".astro")
_STYLE = (".css", ".scss", ".less", ".sass", ".pcss")
_WEB = (
    *_SCRIPT,
    *_STYLE,
    ".json",
    ".jsonc",
    ".json5",
    ".md",
    ".mdx",
    ".html",
    ".yaml",
    ".yml",
    ".graphql",
    ".gql",
    ".hbs",
)
_C = (
    ".c",
    ".cc",
    ".cpp",
    ".cxx",
    ".h",
    ".hh",
    ".hpp",
    ".hxx",
    ".m",
    ".mm",
    ".java",
    ".js",
    ".ts",
    ".proto",
    ".cs",
    ".cu",
)
_RUBY = (".rb", ".rake", ".gemspec", ".ru", "Gemfile", "Rakefile", ".jbuilder", ".erb")
_KOTLIN = (".kt", ".kts")
ANY = ()  # whatever they match: of a file in a folder nothing is certain


class Tool:
    """How one formatter is told what to do.

    endings   of the files that it formats in a folder
    writes    options of which one must be there for it to write; empty: it writes unless told otherwise
    looks     options with which it writes nothing
    short, long   options that take a value, as for `options.split`
    default   the folder or files it takes when none is named; empty: it does nothing then
    verbs     subcommands of which one must come first; those that end in ``!`` write without a `writes` option
    out       options that name an output file, which then is all that is written
    named     operands before the files: rules, a configuration
    drops     subcommands that may come first and change nothing here
    """

    def __init__(
        self,
        endings,
        writes="",
        looks="",
        short="",
        long="",
        default="",
        verbs="",
        out="",
        named=0,
        optional="",
        drops="",
    ):
        self.endings = endings
        self.writes = writes.split()
        self.looks = looks.split()
        self.short = short
        self.long = long.split()
        self.default = default
        self.verbs = verbs.split()
        self.out = out.split()
        self.named = named
        self.optional = optional
        self.drops = drops.split()


_RUFF_LONG = (
    "--config --select --ignore --extend-select --extend-ignore --exclude --extend-exclude --line-length"
    " --target-version"
    " --output-format --output-file --cache-dir --fixable --unfixable --per-file-ignores --stdin-filename --range"
    " --extension"
    " --color --preview"
)
_BLACK_LONG = (
    "--code --line-length --target-version --config --include --exclude --extend-exclude --force-exclude"
    " --required-version"
    " --stdin-filename --workers --line-ranges --skip-string-normalization-for --enable-unstable-feature"
)
_ESLINT_LONG = (
    "--config --ext --rule --format --output-file --ignore-path --ignore-pattern --parser --plugin --cache-location"
    " --env"
    " --global --rulesdir --max-warnings --fix-type --resolve-plugins-relative-to --parser-options --concurrency"
    " --cache-file"
)
_PRETTIER_LONG = (
    "--config --ignore-path --parser --plugin --print-width --tab-width --trailing-comma --log-level --loglevel"
    " --prose-wrap"
    " --end-of-line --quote-props --arrow-parens --cache-location --cache-strategy --config-precedence --stdin-filepath"
    " --embedded-language-formatting --html-whitespace-sensitivity --range-start --range-end"
)
_ISORT_LONG = (
    "--profile --line-length --settings-path --settings-file --sp --skip --skip-glob --extend-skip --src --src-path"
    " --multi-line --force-sort-within-sections-for --known-first-party --python-version --py --jobs --add-import"
    " --filename"
)

TOOLS = {
    "black": Tool(_PYTHON, "", "--check --diff --code -c", "cltWC", _BLACK_LONG),
    "blue": Tool(_PYTHON, "", "--check --diff --code -c", "cltWC", _BLACK_LONG),
    "ruff": Tool(_PYTHON, "--fix --fix-only --add-noqa", "--diff --check", "e", _RUFF_LONG, ".", "check format!"),
    "isort": Tool(
        _PYTHON, "", "-c --check-only --check --diff --show-files --show-config -d --stdout", "lmpawtfosbj", _ISORT_LONG
    ),
    "autopep8": Tool(
        _PYTHON, "-i --in-place", "-d --diff --list-fixes", "pj", "--max-line-length --select --ignore --exclude"
    ),
    "yapf": Tool(_PYTHON, "-i --in-place", "-d --diff -q --quiet", "sel", "--style --exclude --lines"),
    "autoflake": Tool(
        _PYTHON, "-i --in-place", "-c --check --check-diff -s --stdout", "j", "--imports --exclude --config"
    ),
    "pyupgrade": Tool((".py",)),
    "reorder-python-imports": Tool(
        (".py",), "", "--diff-only", "", "--application-directories --add-import --remove-import"
    ),
    "docformatter": Tool(
        (".py",), "-i --in-place", "-c --check", "e", "--wrap-summaries --wrap-descriptions --config --exclude"
    ),
    "mdformat": Tool((".md",), "", "--check", "", "--wrap --end-of-line --exclude"),
    "nbstripout": Tool((".ipynb",), "", "-t --textconv --dry-run --install --is-installed --status --verify"),
    "djlint": Tool(
        (".html", ".jinja", ".j2", ".djhtml"), "--reformat", "--check", "e", "--extension --profile --indent"
    ),
    "sqlfluff": Tool(
        (".sql", ".dml", ".ddl"), "", "", "tre", "--dialect --rules --config --templater", "", "fix! format!"
    ),
    "codespell": Tool(ANY, "-w --write-changes", "", "LISxCABDi", "--ignore-words-list --skip --ignore-words", "."),
    "prettier": Tool(_WEB, "--write -w", "", "", _PRETTIER_LONG),
    "prettierd": Tool(_WEB, "--write"),
    "eslint": Tool(_SCRIPT, "--fix", "--fix-dry-run --print-config --init", "cfo", _ESLINT_LONG, "."),
    "oxlint": Tool(
        _SCRIPT, "--fix --fix-suggestions --fix-dangerously", "", "cADWf", "--config --tsconfig --format", "."
    ),
    "standard": Tool(_SCRIPT, "--fix", "", "", "--parser --env --global --plugin", "."),
    "xo": Tool(_SCRIPT, "--fix", "", "", "--env --global --ignore --extension", "."),
    "stylelint": Tool(
        (*_STYLE, ".vue", ".html"), "--fix", "", "cfio", "--config --formatter --ignore-path --output-file"
    ),
    "biome": Tool(
        _WEB,
        "--write --fix --apply --apply-unsafe --unsafe",
        "",
        "",
        "--config-path --files-max-size --stdin-file-path --indent-width --line-width --since --changed --only --skip",
        ".",
        "check format lint",
    ),
    "rome": Tool(_WEB, "--write --apply --apply-suggested", "", "", "--config-path", ".", "check format lint"),
    "dprint": Tool(_WEB, "", "", "c", "--config --excludes --plugins", ".", "fmt!"),
    "markdownlint": Tool(
        (".md", ".markdown"), "-f --fix", "", "ciprso", "--config --ignore --ignore-path --rules --output"
    ),
    "markdownlint-cli2": Tool((".md", ".markdown"), "--fix", "", "", "--config"),
    "gofmt": Tool((".go",), "-w", "", "r", "-cpuprofile"),
    "gofumpt": Tool((".go",), "-w", "", "", "-lang -modpath"),
    "goimports": Tool((".go",), "-w", "", "", "-local -srcdir -cpuprofile"),
    "gci": Tool((".go",), "", "", "s", "--section", "", "write!"),
    "golines": Tool((".go",), "-w --write-output", "--dry-run", "mt", "--max-len --base-formatter"),
    "golangci-lint": Tool((".go",), "--fix", "", "cEDp", "--config --enable --disable --timeout", ".", "run fmt!"),
    "rustfmt": Tool(
        (".rs",),
        "",
        "--check --print-config --emit=stdout",
        "l",
        "--edition --config-path --config --color --style-edition",
    ),
    "clang-format": Tool(_C, "-i --i", "-n --dry-run", "", "-style --style -assume-filename --lines -lines"),
    "shfmt": Tool(
        (".sh", ".bash", ".bats", ".zsh"), "-w --write", "-d --diff", "i", "-ln --language-dialect --indent --filename"
    ),
    "stylua": Tool((".lua", ".luau"), "", "-c --check", "fgs", "--config-path --glob --search-parent-directories-of"),
    "swiftformat": Tool(
        (".swift",), "", "--lint --dryrun", "", "--config --rules --disable --enable --swiftversion --indent"
    ),
    "swift-format": Tool(
        (".swift",), "-i --in-place", "", "", "--configuration", "", "", drops="format lint dump-configuration"
    ),
    "swiftlint": Tool((".swift",), "--fix --autocorrect", "", "", "--config", "."),
    "google-java-format": Tool((".java",), "-i -r --replace", "-n --dry-run", "", "--lines --offset --length"),
    "ktlint": Tool(_KOTLIN, "-F --format", "", "", "--reporter --baseline", "."),
    "ktfmt": Tool(_KOTLIN, "", "-n --dry-run"),
    "scalafmt": Tool((".scala", ".sbt", ".sc"), "", "--test --check --list --stdout", "c", "--config --exclude", "."),
    "rubocop": Tool(
        _RUBY,
        "-a -A -x --autocorrect --autocorrect-all --auto-correct --auto-correct-all --fix-layout",
        "",
        "cforP",
        "--config --only --except --format --out --require",
        ".",
    ),
    "standardrb": Tool(_RUBY, "--fix --fix-unsafely", "", "", "--format", "."),
    "php-cs-fixer": Tool((".php",), "", "--dry-run", "", "--config --rules --path-mode --cache-file", ".", "fix!"),
    "phpcbf": Tool((".php", ".inc"), "", "", "", ""),
    "pint": Tool((".php",), "", "--test", "", "--preset --config", "."),
    "terraform": Tool((".tf", ".tfvars", ".tftest.hcl"), "", "-check -write=false", "", "", ".", "fmt!"),
    "tofu": Tool((".tf", ".tfvars", ".tftest.hcl", ".tofu"), "", "-check -write=false", "", "", ".", "fmt!"),
    "packer": Tool((".hcl",), "", "-check -write=false", "", "", ".", "fmt!"),
    "terragrunt": Tool((".hcl",), "", "--check", "", "", ".", "hclfmt! hcl!"),
    "taplo": Tool((".toml",), "", "--check", "c", "--config --option", ".", "fmt! format!"),
    "buf": Tool((".proto",), "-w --write", "", "o", "--config --path --exclude-path", ".", "format"),
    "nixfmt": Tool((".nix",), "", "-c --check", "w", "--width"),
    "nixpkgs-fmt": Tool((".nix",), "", "--check"),
    "alejandra": Tool((".nix",), "", "-c --check", "e", "--exclude"),
    "ormolu": Tool((".hs",), "-i --mode=inplace", "", "om", "--mode --ghc-opt"),
    "fourmolu": Tool((".hs",), "-i --mode=inplace", "", "om", "--mode --ghc-opt"),
    "elm-format": Tool((".elm",), "--yes", "--validate --stdin", "", "--output --elm-version"),
    "cmake-format": Tool(
        (".cmake", "CMakeLists.txt"), "-i --in-place", "--check", "cl", "--config-files", "", "", "-o --outfile-path"
    ),
    "dart": Tool((".dart",), "", "--output=none --output=show -o", "ol", "--line-length --output", "", "format! fix!"),
    "zig": Tool((".zig", ".zon"), "", "--check --stdin", "", "--exclude", "", "fmt!"),
    "crystal": Tool((".cr",), "", "--check", "", "", ".", "tool!"),
    "csharpier": Tool((".cs", ".csproj", ".xml"), "", "--check", "", "", ".", "", drops="format"),
    "perltidy": Tool((".pl", ".pm", ".t"), "-b", "", "o", "", "", "", "-o"),
    "tidy": Tool(
        (".html", ".htm", ".xhtml", ".xml"), "-m -modify", "", "", "-config -f -o -output", "", "", "-o -output"
    ),
    "xmllint": Tool(
        ANY, "--output", "", "", "--schema --xpath --output --encode --dtdvalid --relaxng", "", "", "--output"
    ),
    "yq": Tool(
        (".yaml", ".yml", ".json"),
        "-i --inplace --in-place",
        "-n --null-input",
        "ops",
        "",
        named=1,
        drops="eval e eval-all ea",
    ),
    "yamlfmt": Tool((".yaml", ".yml"), "", "-lint -dry -in", "", "-conf -formatter", "."),
    "toml-sort": Tool((".toml",), "-i --in-place", "--check", "o", "--output", "", "", "-o --output"),
    "sort-package-json": Tool(("package.json",), "", "--check -c", "", "", "package.json"),
    "uncrustify": Tool(_C, "--replace --no-backup", "--check", "cflop", "--replace-", "", ""),
    "astyle": Tool(_C, "", "--dry-run", "", ""),
    "latexindent": Tool((".tex",), "-w -wd --overwrite --overwriteIfDifferent", "", "ocl", "", "", "", "-o"),
    "sd": Tool(ANY, "", "-p --preview", "nf", "--flags --max-replacements", "", "", "", 2),
    "ast-grep": Tool(
        ANY,
        "-U --update-all -i --interactive",
        "",
        "plrc",
        "--pattern --lang --rewrite --config --rule",
        ".",
        "",
        drops="run scan",
    ),
    "sg": Tool(
        ANY, "-U --update-all", "", "plrc", "--pattern --lang --rewrite --config --rule", ".", "", drops="run scan"
    ),
    "fastmod": Tool(ANY, "", "", "degm", "--dir --extensions --glob", ".", "", "", 2),
    "jscodeshift": Tool(_SCRIPT, "", "-d --dry", "tvc", "--transform --parser --extensions --ignore-pattern"),
    "semgrep": Tool(
        ANY, "--autofix -a", "--dryrun", "fecol", "--config --pattern --lang --output --include --exclude", ".", ""
    ),
}
