"""Rows of programs that make files from files: formatters, linters, compilers, converters (language: see `table`)."""

ROWS = """
# ---- formatters, and linters that mend
black blue: -ltWC,--code,--line-length,--target-version,--config,--include,--exclude,--extend-exclude=
    --force-exclude,--required-version,--stdin-filename,--workers,--line-ranges,--enable-unstable-feature=
    unless --check --diff --code -c over PYTHON
ruff: -e,--config,--select,--ignore,--extend-select,--extend-ignore,--exclude,--extend-exclude,--line-length=
    --target-version,--output-format,--cache-dir,--fixable,--unfixable,--per-file-ignores,--stdin-filename=
    --range,--extension,--color= -o,--output-file=FILE unless --diff --check
  check: only --fix --fix-only --add-noqa --unsafe-fixes default . over PYTHON
  format: default . over PYTHON
  analyze clean config help linter rule server version: nothing
isort: -lmpawtfosbj,--profile,--line-length,--settings-path,--settings-file,--sp,--skip,--skip-glob,--extend-skip=
    --src,--src-path,--multi-line,--known-first-party,--python-version,--py,--jobs,--add-import,--filename=
    unless -c --check-only --check --diff --show-files --show-config -d --stdout over PYTHON
autopep8: -pj,--max-line-length,--select,--ignore,--exclude= unless -d --diff --list-fixes
    only -i --in-place over PYTHON
yapf: -sel,--style,--exclude,--lines= unless -d --diff -q --quiet only -i --in-place over PYTHON
autoflake: -j,--imports,--exclude,--config= unless -c --check --check-diff -s --stdout only -i --in-place over PYTHON
pyupgrade: over .py
reorder-python-imports: --application-directories,--add-import,--remove-import= unless --diff-only over .py
docformatter: -e,--wrap-summaries,--wrap-descriptions,--config,--exclude= unless -c --check only -i --in-place over .py
mdformat: --wrap,--end-of-line,--exclude= unless --check over .md
nbstripout: unless -t --textconv --dry-run --install --is-installed --status --verify over .ipynb
djlint: -e,--extension,--profile,--indent= unless --check only --reformat over .html .jinja .j2 .djhtml
sqlfluff: -tre,--dialect,--rules,--config,--templater=
  fix format: over .sql .dml .ddl
  lint parse render rules dialects version: nothing
codespell: -LISxCABDi,--ignore-words-list,--skip,--ignore-words= only -w --write-changes default . over ANY
prettier prettierd: --config,--ignore-path,--parser,--plugin,--print-width,--tab-width,--trailing-comma,--log-level=
    --loglevel,--prose-wrap,--end-of-line,--quote-props,--arrow-parens,--cache-location,--cache-strategy=
    --config-precedence,--stdin-filepath,--embedded-language-formatting,--html-whitespace-sensitivity=
    --range-start,--range-end= only --write -w over WEB
eslint: -cf,--config,--ext,--rule,--format,--ignore-path,--ignore-pattern,--parser,--plugin,--cache-location,--env=
    --global,--rulesdir,--max-warnings,--fix-type,--resolve-plugins-relative-to,--parser-options,--concurrency=
    --cache-file= -o,--output-file=FILE unless --fix-dry-run --print-config --init only --fix default . over SCRIPT
oxlint: -cADWf,--config,--tsconfig,--format= only --fix --fix-suggestions --fix-dangerously default . over SCRIPT
standard xo: --parser,--env,--global,--plugin,--ignore,--extension= only --fix default . over SCRIPT
stylelint: -cfi,--config,--formatter,--ignore-path= -o,--output-file=FILE only --fix over STYLE .vue .html
biome: --config-path,--files-max-size,--stdin-file-path,--indent-width,--line-width,--since,--changed,--only,--skip=
  check format lint: only --write --fix --apply --apply-unsafe --unsafe default . over WEB
  ci search version start stop rage explain lsp-proxy clean help: nothing
  init: write biome.json
  migrate: only --write write biome.json
rome: --config-path=
  check format lint: only --write --apply --apply-suggested default . over WEB
  ci version start stop rage help: nothing
dprint: -c,--config,--excludes,--plugins=
  fmt: default . over WEB
  check output-file-paths output-resolved-config help license version clear-cache editor-info: nothing
markdownlint markdownlint-cli2: -ciprs,--config,--ignore,--ignore-path,--rules= -o,--output=FILE
    only -f --fix over .md .markdown
gofmt gofumpt goimports golines: onedash -r,-lang,-modpath,-local,-srcdir,-m,-t,-max-len,-base-formatter=
    -cpuprofile=FILE unless -dry-run only -w -write-output over .go
gci: -s,--section=
  write: over .go
  print diff list help: nothing
golangci-lint: -cEDp,--config,--enable,--disable,--timeout=
  run: only --fix default . over .go
  fmt: default . over .go
  linters config cache version help completion formatters custom: nothing
# It follows `mod x;` into files that are not named.
rustfmt: -l,--edition,--config-path,--config,--color,--style-edition,--emit,--print-config= unless --check --emit=stdout
    --print-config over .rs maybe {//}/*.rs
clang-format: onedash -style,-assume-filename,-lines,-offset,-length= unless -n -dry-run only -i over C
shfmt: onedash -i,-ln,-language-dialect,-indent,-filename= unless -d -diff only -w -write over .sh .bash .bats .zsh
stylua: -fgs,--config-path,--glob,--search-parent-directories-of= unless -c --check over .lua .luau
swiftformat: --config,--rules,--disable,--enable,--swiftversion,--indent= unless --lint --dryrun over .swift
swift-format: --configuration= drop format,lint,dump-configuration only -i --in-place over .swift
swiftlint: --config= only --fix --autocorrect drop lint default . over .swift
google-java-format: --lines,--offset,--length= unless -n --dry-run only -i -r --replace over .java
ktlint: --reporter,--baseline= only -F --format default . over .kt .kts
ktfmt: unless -n --dry-run over .kt .kts
scalafmt: -c,--config,--exclude= unless --test --check --list --stdout default . over .scala .sbt .sc
rubocop: -cfrP,--config,--only,--except,--format,--require= -o,--out=FILE
    only -a -A -x --autocorrect --autocorrect-all --auto-correct --auto-correct-all --fix-layout default . over RUBY
standardrb: --format= only --fix --fix-unsafely default . over RUBY
php-cs-fixer: --config,--rules,--path-mode,--cache-file= unless --dry-run
  fix: default . over .php
  check describe list-files list-sets list help: nothing
phpcbf: --standard,--extensions,--ignore= over .php .inc
pint: --preset,--config= unless --test default . over .php
terraform tofu: onedash -out=FILE -chdir=IN
  fmt: unless -check -write=false default . flat TERRAFORM
    -recursive -recursive=true: default . over TERRAFORM
  init get: write .terraform.lock.hcl tree .terraform
  providers:
    lock: write .terraform.lock.hcl
    mirror: maybe {1}
    *: nothing
  apply destroy import refresh taint untaint: maybe terraform.tfstate
  state:
    mv rm push: maybe terraform.tfstate
    *: nothing
  plan validate show output version workspace graph console force-unlock login logout test metadata env: nothing
  help modules push query stacks: nothing
packer: onedash
  fmt: unless -check -write=false default . flat .hcl
    -recursive: default . over .hcl
  build console init inspect plugins validate version: nothing
terragrunt: unless --check
  hclfmt: default . over .hcl
  hcl:
    fmt format: default . over .hcl
    *: nothing
  *: nothing
taplo: -c,--config,--option= unless --check
  fmt format: default . over .toml
  lint check get lsp config help completions: nothing
buf: --config,--path,--exclude-path=
  format: -o,--output=FILE only -w --write default . over .proto
  generate: guess generates files
  export: guess exports files
  build lint breaking ls-files curl convert help config dep mod plugin push registry stats completion: nothing
nixfmt: -w,--width= unless -c --check over .nix
nixpkgs-fmt: unless --check over .nix
alejandra: -e,--exclude= unless -c --check over .nix
ormolu fourmolu: -om,--mode,--ghc-opt= only -i --mode=inplace -m=inplace over .hs
elm-format: --elm-version= --output=INSTEAD unless --validate --stdin only --yes over .elm
cmake-format: -cl,--config-files= -o,--outfile-path=INSTEAD unless --check only -i --in-place over .cmake CMakeLists.txt
dart: -l,--line-length= -o,--output= nothing
  format: unless --output=none --output=show --output=json -o=none -o=show -o=json over .dart
  fix: only --apply default . over .dart
  compile: -o,--output=FILE project
  doc: -o,--output=DIR maybe doc
  create: -t,--template= maybe {1}
  run test build *.dart: project
  pub:
    deps outdated publish: nothing
    add remove upgrade: write pubspec.lock pubspec.yaml
    *: write pubspec.lock
  *: nothing
zig: nothing
  fmt: --exclude= unless --check --stdin over .zig .zon
  version env targets help zen: nothing
  *: project
crystal: nothing
  tool:
    format: unless --check default . over .cr
    *: nothing
  version env help: nothing
  *: project
csharpier: unless --check drop format default . over .cs .csproj .xml
perltidy: -o=INSTEAD only -b over .pl .pm .t
tidy: onedash -config,-f= -o,-output=INSTEAD only -m -modify over .html .htm .xhtml .xml
xmllint: --schema,--xpath,--encode,--dtdvalid,--relaxng= --output=FILE -o=FILE
yq: -op= unless -n --null-input drop eval,e,eval-all,ea only -i --inplace --in-place skip 1 over .yaml .yml .json
  -s --split-exp: guess names of files come from an expression
yamlfmt: onedash -conf,-formatter= unless -lint -dry -in default . over .yaml .yml
toml-sort: -o,--output=INSTEAD unless --check only -i --in-place over .toml
sort-package-json: unless --check -c default package.json over package.json
uncrustify: -cflp= -o=FILE unless --check only --replace --no-backup over C
astyle: unless --dry-run over C
latexindent: -cl= -o=INSTEAD only -w -wd --overwrite --overwriteIfDifferent over .tex
sd: -nf,--flags,--max-replacements= unless -p --preview skip 2 over ANY
fastmod: -degm,--dir,--extensions,--glob= skip 2 default . over ANY
ast-grep sg: -plrc,--pattern,--lang,--rewrite,--config,--rule= drop run,scan
    only -U -i --update-all --interactive default . over ANY
jscodeshift: -tvc,--transform,--parser,--extensions,--ignore-pattern= unless -d --dry over SCRIPT
semgrep: -fecl,--config,--pattern,--lang,--include,--exclude= -o,--output=FILE drop scan
    unless --dryrun only --autofix -a default . over ANY
jupytext: --from,--opt,--update-metadata,--set-formats,--pipe,--to= -o,--output=INSTEAD
  --sync --set-formats --update-metadata: write {} guess the other half of a notebook
  --to=notebook --to=ipynb: replace {.}.ipynb
  --to=markdown --to=md: replace {.}.md
  --to=python --to=py --to=py:percent --to=py:light: replace {.}.py
  --to: maybe {//} guess writes beside the notebook
pre-commit prek: guess hooks may rewrite what they are given
  run: do put_aside guess hooks may rewrite what they are given
    -a --all-files --files: guess hooks may rewrite what they are given
  try-repo: guess hooks may rewrite what they are given
  autoupdate auto-update: write .pre-commit-config.yaml
  clean gc install install-hooks uninstall validate-config validate-manifest sample-config help migrate-config: nothing
lint-staged: do put_aside guess tasks may rewrite what is staged
  --no-stash --diff --help --version: guess tasks may rewrite what is staged
cookiecutter: guess writes a project from a template

# ---- compilers and converters
gcc g++ cc c++ clang clang++ gfortran tcc: onedash strict -MF,-dumpbase=FILE -o,--output=INSTEAD
    -I,-L,-D,-U,-include,-isystem,-x,-Xlinker,-arch,-framework,-MT,-MQ,-target,--param,--include-directory=
    --library-directory,--define-macro,--undefine-macro,--sysroot,--language= -objc,-openmp,--std,--ansi,--all-warnings
    --debug,--extra-warnings,--optimize,--pedantic,--shared,--static,--target,--target-help,--verbose,--no-warnings
    --no-standard-includes,--print-search-dirs,--print-file-name,--gcc-toolchain,--library needs 1 replace a.out
  -E -fsyntax-only -M -MM -v -dumpversion -dumpmachine -### --preprocess: nothing
  -c --compile: replace {/.}.o
  -S --assemble: replace {/.}.s
  + -MD -MMD: replace {-o.}.d or {/.}.d
  + -save-temps: guess keeps files of every step
swiftc ghc: onedash -I,-L,-D,-module-name,-target,-sdk,-package= -o=INSTEAD unless -v needs 1 replace a.out
  -c: replace {/.}.o
rustc: -LlCAWDFC,--crate-type,--crate-name,--edition,--emit,--cfg,--extern,--target,--cap-lints,--print,--explain=
    -o=INSTEAD --out-dir=IN unless -V --print --explain -h -vV replace {/.}
javac: onedash -cp,-classpath,-class-path,-release,-source,-target,-sourcepath,-processor,-d,-s,-h= replace {.}.class
  -d -s -h: replace {-d}/*.class {-s}/*.java {-h}/*.h
magick: nothing
  identify: nothing
  mogrify: existing {}
  convert composite montage: needs 2 replace {last}
  *: unless -version -list info: null: needs 1 replace {last}
convert composite montage: unless -version -list info: null: needs 2 replace {last}
mogrify: existing {}
pdflatex xelatex lualatex latexmk latex: onedash -output-directory,-outdir=IN -jobname,-interaction=
    replace {-jobname}.pdf or {/.}.pdf {-jobname}.log or {/.}.log {-jobname}.aux or {/.}.aux project
ffmpeg: onedash valued -y,-n,-hide_banner,-nostdin,-vn,-an,-sn,-dn,-shortest,-nostats,-stats,-re unless -version -h
    -formats -codecs -encoders -decoders -filters replace {}
protoc: -I,--proto_path,--plugin= -o,--descriptor_set_out,--dependency_out=FILE --*_out= maybe {--*_out:} or {--*_out}
esbuild: --outfile,--metafile=FILE --outdir=DIR
typst: nothing
  compile c watch w: replace {2} or {1.}.pdf
  init: guess writes a project from a template
  *: nothing
ctags: -ILR,--options,--languages,--exclude= -fo=INSTEAD unless -x --list-languages replace tags
  -e: replace TAGS
etags: -ILR,--options,--languages,--exclude= -fo=INSTEAD replace TAGS
strip ranlib: -FIOKNRT,--input-target,--output-target,--remove-section,--strip-symbol,--keep-symbol=
    -o,--output-file=INSTEAD unless -V --info -h write {}
objcopy: -FIOBKNRjGWL,--input-target,--output-target,--remove-section,--strip-symbol,--keep-symbol,--add-section=
    unless -V --info write {last}
pandoc: -frtVMFLHBA,--from,--to,--read,--write,--template,--metadata,--variable,--css,--filter= -o,--output=FILE
dot neato fdp sfdp twopi circo: -TKGNElns= -o=FILE
  + -O: replace {}.{-T} or {}.dot
mmdc: -itCbwHcs,--input,--theme,--configFile,--cssFile= -o,--output=FILE
plantuml: -o= guess names of files come from the diagrams
  -p -pipe -syntax -checkonly -testdot -language: nothing
sass: -I,--load-path,--style= replace {:} or {2}
lessc: replace {2}
terser uglifyjs: -cm,--compress,--mangle= -o,--output=FILE
swc babel: -cf,--config-file,--filename,--presets,--plugins= -o,--out-file=FILE -d,--out-dir=DIR drop compile
csso svgo: -ifrp,--input,--folder= -o,--output=FILE
ld: -LlmT= -o=INSTEAD needs 1 replace a.out
as: -I= -o=INSTEAD replace a.out
nasm: -fIl= -o=INSTEAD maybe {/.} {/.}.o
  -E -e -M -v: nothing
pngquant: --quality,--speed,--ext,--strip= -o,--output=FILE
cwebp: -qm= -o=FILE
rsvg-convert inkscape: -whfdpxyzbu,--width,--height,--format,--export-type= -o,--output,--export-filename=FILE
wkhtmltopdf weasyprint pdf2svg: -es,--stylesheet= needs 2 replace {last}
qpdf: needs 2 replace {last}
  --replace-input: write {}
  + --split-pages: maybe {last//}
cbindgen: -clx,--config,--lang,--crate= -o,--output=FILE
openapi-generator swagger-codegen openapi-generator-cli: -igct= -o,--output=DIR guess generates files
  list validate config-help meta author version help: nothing
  *: guess generates files
pip-compile: --extra,--resolver= -o,--output-file=INSTEAD unless -n --dry-run
    write {*.in.}.txt or requirements.txt
cyclonedx: -o,--output=FILE
bison yacc: -b,--file-prefix= -o,--output=INSTEAD --defines=FILE needs 1 maybe {/.}.tab.c {/.}.tab.h y.tab.c y.tab.h
flex: --header-file=FILE -o,--outfile=INSTEAD replace lex.yy.c
  -t --stdout: nothing
gperf: --output-file=FILE
"""
