"""Rows of programs that run other commands: wrappers, runners, builds, containers, clusters (language: see `table`)."""

ROWS = """
# ---- programs that put themselves before another command
nohup setsid unbuffer chronic catchsegv linux64 arch numactl busybox ifne torsocks pkexec tini dumb-init: ends run {}
setpriv prlimit run0 firejail: ends run {}
gosu su-exec envchain faketime: ends skip 1 run {}
proxychains proxychains4 sandbox-exec: ends -fpnD= run {}
secretspec varlock:
  run: ends run {}
nice: ends -n,--adjustment= run {}
ionice: ends -cnp,--class,--classdata= run {}
chrt: ends -TPD= skip 1 run {}
taskset: ends skip 1 run {}
timeout gtimeout: ends -ks,--kill-after,--signal= skip 1 run {}
stdbuf gstdbuf: ends -ioe,--input,--output,--error= run {}
caffeinate: ends -tw= run {}
rlwrap: ends -abcCDefgHilmNopPqrsStwz= run {}
xvfb-run: ends -efnps,--auth-file,--error-file,--server-num,--server-args= run {}
systemd-run: ends -uptEM,--unit,--property,--slice= run {}
dotenv: ends -fe,--file= run {}
time gtime: ends -f,--format= -o,--output=FILE run {}
strace ltrace dtruss: ends -eEpsuaIPOSXbU,--trace= -o,--output=FILE run {}
valgrind: ends --log-file=FILE run {}
env genv: ends -uS,--unset,--split-string= -C,--chdir=IN run {}
  -S --split-string: ends run eval {-S} {--split-string} {}
sudo doas: ends -ughpCrtTURa,--user,--group,--host,--prompt,--close-from,--chroot,--role,--type,--other-user=
    -D,--chdir=IN run {}
  -e --edit: write {}
sudoedit: -ughpCrtTURa,--user,--group,--prompt= write {}
su runuser: -cgGsTw,--command,--session-command,--group,--shell= text {-c} {--command} {--session-command}
  -c --command --session-command: text {-c} {--command} {--session-command}
  <: guess a script that is not known
flock: ends -wEc,--timeout,--wait,--conflict-exit-code,--command= do locked_run
script: -EmoTtIB,--log-io,--log-in= -c,--command= -O,--log-out=FILE text {-c} {--command} run {2-}
    write {1} or {-O} or {--log-out} or typescript
watch: ends -nq,--interval,--equexit= run eval {}
hyperfine: -wmMrPLDSNun,--warmup,--min-runs,--max-runs,--runs,--parameter-scan,--parameter-list,--style,--command-name=
    -spc,--setup,--prepare,--conclude,--cleanup,--shell= --export-json,--export-csv,--export-markdown=FILE
    --export-asciidoc=FILE text {-s} {--setup} {-p} {--prepare} {-c} {--cleanup} {}
nix-shell: --run,--command= text {--run} {--command}
nix: -o,--out-link=FILE nothing
  develop shell env: do run_rest -c --command
  run: do run_flake
  build: replace {-o} or {--out-link} or result
  fmt: project
  flake: manifest flake.lock
    check show metadata info: nothing
watchexec: ends -weEifdsoWj,--watch,--exts,--env,--ignore,--filter,--debounce,--signal,--on-busy-update,--shell=
    --watch-non-recursive,--project-origin,--workdir,--delay-run,--poll,--stop-signal,--stop-timeout=
    run eval {}
reflex: ends -rRgGsd,--regex,--inverse-regex,--glob,--inverse-glob,--decoration= do run_rest
onchange: ends do run_rest

# ---- programs that put secrets, or another toolchain, into the environment of a command
rtk: ends -v drop proxy,err,test,run,summary run {}
doppler: ends -pct,--project,--config,--token,--scope,--api-host,--config-dir=
  run: ends --command,--fallback,--mount,--mount-format,--name-transformer,--passphrase= text {--command} run {}
  me projects configs environments activity login logout setup configure: nothing
op: ends --account,--session,--config,--encoding,--format=
  run: ends --env-file,--environment= run {}
  read inject: -o,--out-file=FILE -i,--in-file=
  item vault account user group whoami signin signout list get: nothing
infisical: ends --env,--path,--projectId,--token,--domain,--command,--tags,--project-config-dir=
  run: ends -c= text {-c} {--command} run {}
  login secrets vault user reset: nothing
conda mamba micromamba: ends -npf,--name,--prefix,--file=
  run: ends -nps,--name,--prefix,--cwd= run {}
  install create update remove list info search activate deactivate clean config env init shell: nothing
fnm: ends --using,--version-file-strategy=
  exec: ends --using= run {}
  install uninstall use list ls env current default alias: nothing
aws-vault chamber: ends --backend,--prompt=
  exec: ends -dt,--duration,--region,--mfa-token= skip 1 run {}
  add list ls remove rotate login clear read history import export: nothing
rbenv pyenv nodenv goenv jenv tfenv: ends
  exec: ends run {}
  *: nothing
dotenvx teller phase: ends -fe,--env-file,--env,--config=
  run: ends -fe,--env-file,--env= run eval {}
sops: -o,--output=FILE
  exec-env exec-file: text {2}
ssh mosh: elsewhere -bcDEeFIiJLlmOopQRSWw= nothing
chroot: guess another root folder

# ---- runners: they run commands in the project, and keep its manifests
npx bunx pnpx: ends -pwn,--package,--workspace,--prefix,--cache,--userconfig,--node-options= -c,--call=
    text {-c} {--call} do run_package
uvx: ends -pwicf,--from,--with,--with-requirements,--with-editable,--python,--index,--default-index,--index-url=
    --extra-index-url,--find-links,--config-file,--cache-dir,--color,--resolution,--prerelease,--constraint=
    --directory,--project,--env-file,--refresh-package,--allow-insecure-host= do run_package
uv: ends --directory,--project=IN -p,--python,--config-file,--cache-dir,--color,--allow-insecure-host,--index=
    --default-index,--index-url,--extra-index-url,--find-links,--resolution,--prerelease,--refresh-package,--package=
    --extra,--group,--only-group,--no-group,--constraint,--env-file=
  run: ends -wcfem,--from,--with,--with-requirements,--with-editable,--module= do run_in_project
  tool:
    run: ends -wicf,--from,--with,--with-requirements,--with-editable= do run_package
    *: nothing
  add remove init: unless --frozen --locked --check --dry-run manifest pyproject.toml uv.lock
  lock sync: unless --frozen --locked --check --dry-run manifest uv.lock
  version: --bump= unless --frozen --locked --check --dry-run needs 1 manifest pyproject.toml uv.lock
    --bump: manifest pyproject.toml uv.lock
  python:
    pin: manifest .python-version
    *: nothing
  venv: tree {1} or .venv
  build: -o,--out-dir= project tree {-o} or {--out-dir} or dist
  fmt format: unless --check --diff tree ./*.py ./*.pyi ./*.ipynb
  test publish shell script: project
  pip export tree cache auth help self show info list install: nothing
poetry: ends -CP,--directory,--project=IN
  run: ends do run_in_project
  add remove: unless --lock --dry-run manifest pyproject.toml poetry.lock
  lock update: unless --check --dry-run manifest poetry.lock
  init: manifest pyproject.toml
  version: unless --dry-run needs 1 manifest pyproject.toml
  test build publish shell: project
  install show check config env about cache search self list help source sync info export: nothing
pdm: ends -p,--project=IN
  run: ends do run_in_project
  add remove update: unless --frozen-lockfile --dry-run manifest pyproject.toml pdm.lock
  lock: unless --check --dry-run manifest pdm.lock
  init: manifest pyproject.toml
  test build publish shell: project
  install show config info list cache search self help sync export outdated python use venv fix plugin: nothing
pipenv: ends --python=
  run: ends do run_in_project
  install uninstall upgrade: unless --dry-run manifest Pipfile Pipfile.lock
  update lock: unless --dry-run --outdated manifest Pipfile.lock
  shell: project
  check clean graph help requirements sync verify scripts: nothing
hatch: ends -e,--env=
  run: ends do run_in_project
  version: needs 1 manifest pyproject.toml
  fmt: unless --check tree ./*.py ./*.pyi ./*.ipynb
  test build publish shell: project
  config env dep status project python clean self cache help: nothing
rye: ends
  run: ends do run_in_project
  add remove: manifest pyproject.toml
  sync lock: manifest requirements.lock requirements-dev.lock
  fmt: unless --check tree ./*.py ./*.pyi ./*.ipynb
  test build publish: project
  init: maybe pyproject.toml
  config fetch install list self show toolchain tools uninstall version help: nothing
pixi: ends -e,--environment,--manifest-path=
  run: ends do run_in_project
  add remove: manifest pixi.toml pixi.lock
  update: unless --dry-run manifest pixi.lock
  shell build: project
  init: maybe {1} or .
  install list tree info search config clean auth global project task self-update upload help: nothing

# ---- builds and test runs: the project's own code
make gmake: -CfIoW,--directory,--file,--makefile,--include-dir,--old-file,--new-file,--eval= -jlO?
    unless -n --just-print --dry-run --recon -q --question -v -h project
  + -f --file --makefile: do own_makefile
just: -fd= unless -l --list -n --dry-run --summary --show project
ninja: -Cfjklwdt= unless -n -h -t=targets -t=commands -t=query -t=deps project
cmake: -SDGCUATP,--build,--install,--preset,--target,--config,--prefix= -B=DIR project
  -E: nothing
    copy copy_if_different: run cp {}
    copy_directory: run cp -r {}
    rename: run mv {}
    remove rm: run rm {}
      -r -R -rf -fr: run rm -r {}
    remove_directory: run rm -r {}
    make_directory: run mkdir {}
    touch: run touch {}
    tar: run tar {}
    *: nothing
tsc: -pt,--project,--target,--module,--lib,--jsx,--moduleResolution= -o,--outFile=FILE --outDir=DIR
    unless --noEmit -v -h --showConfig --listFilesOnly --all project replace {.}.js
  --init: write tsconfig.json
  --outDir -b --build: project
pytest py.test phpunit rspec cypress jest: -o --junitxml,--junit-xml,--html,--report-log,--outputFile,--log-file=FILE
    --cov-report= project maybe {--cov-report:}
  --collect-only --co --markers --fixtures --listTests: nothing
vitest playwright: --outputFile,--output-file=FILE project
  list show-report: nothing
  *: project
mypy pyright basedpyright pylint flake8 pyflakes ty pyre bandit: --junit-xml=FILE
  --createstub: maybe typings
coverage: -o= -d,--directory= --include,--omit=
  run: --data-file= project write {--data-file} or .coverage
  html: maybe {-d} or {--directory} or htmlcov
  annotate: maybe {-d} or .
  xml: replace {-o} or coverage.xml
  json: replace {-o} or coverage.json
  lcov: replace {-o} or coverage.lcov
  erase combine: write .coverage
  report debug help: nothing
go: onedash -tags,-ldflags,-gcflags,-mod,-run,-count,-timeout,-bench,-p= -C=IN
    -coverprofile,-cpuprofile,-memprofile,-trace=FILE
  build: -o=INSTEAD project default . write {*.go/.} maybe {/.}
    + -o: project
  test run install clean vet: -o=FILE project
  fmt: unless -n default . over .go
  fix: default . over .go
  generate: guess runs what the sources say
  get: write go.mod go.sum
  mod: -o=INSTEAD nothing
    tidy edit init: write go.mod go.sum
    vendor: write go.mod go.sum tree vendor
    *: nothing
  work:
    sync: nothing
    *: write go.work
  version env list doc help tool telemetry bug: nothing
dotnet: -o=DIR nothing
  format: unless --verify-no-changes --dry-run tree ./*.cs ./*.vb ./*.fs
  add remove sln new restore nuget: guess changes project files
  --info --list-sdks --list-runtimes list help: nothing
  *: project
mix: project
  format: unless --check-formatted --dry-run default . over .ex .exs .heex
  deps.*: write mix.lock tree deps
  help: nothing
  *: project
vite webpack rollup parcel: -cmld,--config= -o,--outDir,--output-path,--dist-dir=DIR project
prisma graphql-codegen sqlc alembic: unless --check --dry-run validate guess generates files
lerna: project
  version publish: guess changes versions, changelogs and manifests
  list ls ll la changed info diff: nothing
  *: project
changeset changesets: guess changes versions, changelogs and manifests
  status: nothing
  publish tag: project
  version add pre init: guess changes versions, changelogs and manifests
elixir erl iex julia scala kotlin groovy racket sbcl clojure bb octave: project
  -e -E --eval -exec --execute: guess code that cannot be read
mvn mvnw gradle gradlew lein: -o project
tox nox mocha ava karma ctest bazel bazelisk buck2 pants meson scons waf xcodebuild: project
stack cabal sbt ant rake task mage turbo nx gulp grunt next nuxt astro gatsby hugo jekyll mkdocs: project
sphinx-build tsup ts-node-esm nodemon pm2 behave robot locust unittest nose2 invoke fab ansible-playbook: project
molecule storybook remix ng vue-cli-service expo react-native swift kotlinc java maturin rails flutter: project
django-admin flask uvicorn gunicorn celery streamlit phpstan psalm gotestsum ginkgo wasm-pack trunk nyc c8: project
svelte-check vue-tsc msbuild rebar3 dune lake: project

# ---- containers: what they change is elsewhere, but for folders that they are given, and what is copied out
docker podman nerdctl: -Hcl,--host,--context,--config,--log-level= drop container,image,buildx,builder
  run create: elsewhere -v,--volume,--mount= do mounts
  exec: elsewhere project
  compose: elsewhere run docker-compose {rest}
  cp: elsewhere needs 2 do copied_out {2}
  save export build bake: -otfm,--output,--tag,--file= --iidfile,--metadata-file=FILE do copied_out {-o} {--output}
  ps images pull push login logout tag rmi rm stop start restart kill pause unpause logs inspect stats top port: nothing
  network volume system info version search history events attach wait update rename diff commit load import ls: nothing
  context manifest node plugin secret service stack swarm trust prune config help use du imagetools unshare: nothing
  machine pod generate-completion healthcheck exists list auto-update: nothing
docker-compose podman-compose: -fp,--file,--profile,--project-name,--env-file,--project-directory,--ansi=
    --parallel,--progress=
  up run exec watch: elsewhere project
  config convert: -o,--output=FILE nothing
  ps logs down stop start restart ls pull push build kill rm images top events port pause unpause create: nothing
  version attach stats wait scale volumes help: nothing

# ---- clusters: what they change is elsewhere
kubectl oc: -cnfldu,--namespace,--container,--kubeconfig,--context,--cluster,--user= -o,--output=
  get describe logs apply delete exec port-forward top create edit patch scale rollout set label annotate: nothing
  expose run attach auth config cluster-info api-resources api-versions explain version wait drain cordon: nothing
  uncordon taint diff debug events kustomize certificate autoscale replace proxy completion options plugin: nothing
  login logout project projects new-project status new-app start-build adm whoami rsh: nothing
  cp: maybe {2}
helm: -nfu,--namespace,--kubeconfig,--version,--set= -o
  install upgrade uninstall delete list ls get status history rollback search show lint test version: nothing
  env plugin registry push inspect verify completion help: nothing
  template: --output-dir=DIR
  create: maybe {1}
  pull package: -d,--destination=IN maybe .
  repo:
    index: write {1}/index.yaml
    *: nothing
  dependency dep:
    list ls: nothing
    *: default . write {1}/Chart.lock tree {1}/charts

# ---- macOS
ditto: --arch,--bom= maybe {last}
  -c: replace {last}
plutil: onedash -o=INSTEAD nothing
  -convert -create -insert -replace -remove: write {last}
  -extract:
    raw: nothing
    *: write {last}
defaults: nothing
  read read-type domains find help: nothing
  export: replace {2}
  write delete rename import: write {1} {1}.plist
screencapture: -RDTtlkP= replace {last}

# ---- databases: servers keep what they change to themselves
sqlite3 sqlite duckdb: onedash -cmd,-separator,-init,-newline,-nullvalue,-vfs,-mmap,-maxsize,-lookaside,-pagecache=
    -readonly -o unless -version -help do sqlite
psql: -fdhpUvFPTRcLo,--file,--command,--dbname,--host,--port,--log-file,--output= do psql
pg_dump pg_dumpall mysqldump mongodump: -hpUdFntjBuP,--format,--host,--db= -fr,--file,--result-file,--archive=FILE
    -o,--out=DIR
mysql mariadb redis-cli mongosh: -o
"""
