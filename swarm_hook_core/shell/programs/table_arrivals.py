"""Rows of programs that bring files: archives, downloads, package managers (language: see `table`)."""

ROWS = """
# ---- archives (tar and unzip are languages of their own)
zip: -bnstPxi,--temp-path,--suffixes,--password= -O,--out,--output-file=INSTEAD
    unless -sf --show-files -h write {1?.zip}
  -T --test: needs 2 write {1?.zip}
  -m --move: write {1?.zip} remove-all {2-}
cpio: -ECFHIMOR,--pattern-file,--io-size,--file,--format,--owner= -D,--directory=IN
  -t --list: nothing
  -o --create: replace {-O} {-F} {--file}
  -i --extract: unless --to-stdout maybe .
  -p --pass-through: maybe {last}
pax: -bfopsxBEGTU=
  -w: replace {-f}
    -r: maybe {last}
  -r: maybe .
7z 7za 7zz 7zr: -o?=IN unless -so
  x: do unpack {1} {2-}
  e: maybe .
  a u d rn: write {1?.7z}
    + -sdel: remove-all {2-}
  *: nothing
rar unrar: -p?
  x e: maybe . {2-}
  a u f m d: write {1?.rar}
  *: nothing
ar gar: nothing
  -x: maybe .
  -r -q -d -m -s: write {1}
  -t -p: nothing
  x*: maybe .
  t* p*: nothing
  *: write {1}
jar: -fe,--file,--main-class,--manifest,--release,--module-version= --dir=IN
  -x --extract: do unpack {-f} {--file}
  -c -u --create --update: write {-f} {--file}
  x*: do unpack {1}
  cmf* cvmf* umf* cef* cvef*: write {2}
  cf* cvf* c0f* cv0f* uf* uvf*: write {1}
  *: nothing
gzip pigz gunzip unpigz: -bSp,--suffix,--processes,--blocksize= do compress .gz .tgz .z .Z .taz
bzip2 bunzip2 pbzip2: do compress .bz2 .bz .tbz2 .tbz
xz unxz pixz: -ST,--suffix,--threads,--block-size,--memlimit,--format,--check= do compress .xz .lzma .txz .tlz
lzma unlzma: -ST,--suffix= do compress .lzma .xz
compress uncompress: -b= do compress .Z
lzip lunzip: -o,--output=INSTEAD do compress .lz
zstd unzstd zstdmt: -DTM,--threads,--memory= -o,--output=FILE --output-dir-flat,--output-dir-mirror=
    do compress .zst .tzst .gz .xz .lz4
lz4 unlz4: -o=FILE do compress .lz4
brotli: -o,--output=FILE -qwSD,--quality,--lgwin,--suffix= do compress .br

# ---- fetching
curl: -AbCdeEFhHmKPQrtTuUwxXyYz,--user-agent,--cookie,--data,--data-raw,--data-binary,--data-ascii,--url=
    --data-urlencode,--json,--referer,--cert,--form,--form-string,--header,--config,--max-time,--range,--request=
    --upload-file,--user,--proxy-user,--write-out,--proxy,--connect-timeout,--retry,--retry-delay,--retry-max-time=
    --cacert,--capath,--key,--resolve,--limit-rate,--etag-compare,--interface,--max-filesize,--max-redirs,--netrc-file=
    --oauth2-bearer,--aws-sigv4,--unix-socket,--continue-at,--socks5,--socks5-hostname,--ciphers,--tls-max,--proto=
    --proto-default,--variable,--parallel-max,--rate,--speed-limit,--speed-time,--time-cond,--noproxy,--dns-servers=
    --cert-type,--key-type,--pass,--engine= -Dc,--dump-header,--cookie-jar,--trace,--trace-ascii,--stderr=FILE
    --etag-save,--libcurl=FILE --hsts,--alt-svc=CHANGED -o,--output=INSTEAD --output-dir=IN unless -h -V -M --manual
  + -O --remote-name --remote-name-all: replace {url}
  + -T --upload-file: do upload
  + -J --remote-header-name: guess the server names the file
  + -K --config: guess its options are in a file
wget: -eBtTwQDAIURXlYi,--execute,--input-file,--base,--tries,--timeout,--wait,--quota,--domains,--accept,--reject=
    --include-directories,--exclude-directories,--user-agent,--level,--header,--user,--password,--post-data,--post-file=
    --method,--body-data,--load-cookies,--cut-dirs,--limit-rate,--referer,--ca-certificate,--waitretry,--dns-timeout=
    --connect-timeout,--read-timeout,--config,--accept-regex,--reject-regex,--max-redirect,--default-page,--start-pos=
    --warc-file,--exclude-domains= -o,--output-file,--save-cookies=FILE -a,--append-output=CHANGED
    -O,--output-document=INSTEAD -P,--directory-prefix=IN do fetch
  --spider: nothing
  -r -m -p -x -i --recursive --mirror --page-requisites --input-file: maybe .
aria2c: -xsjklmtU,--split= -i,--input-file= -l,--log=CHANGED -o,--out=INSTEAD -d,--dir=IN write {url}
  -i --input-file: maybe .
http https xh xhs: -apAs,--auth,--print,--auth-type,--session,--timeout= -o,--output=INSTEAD
  -d --download: write {url}
scp: -cDFiJlPSX= -o= put
  -r: maybe {last}
sftp: -BbcDFiJlPRSs= -o=
  < -b: guess fetches what a script says
aws: --profile,--region,--query,--output,--endpoint-url=
  s3: --exclude,--include,--acl,--storage-class= unless --dryrun
    cp: put
      --recursive: maybe {2}
    mv: remove-all {1} put
    sync: maybe {2}
    *: nothing
  s3api:
    get-object: replace {last}
    *: nothing
  lambda:
    invoke: replace {last}
    *: nothing
  *: nothing
gsutil: -oh=
  cp: put
    -r -R: maybe {last}
  mv: remove-all {1} put
  rsync: -x= unless -n maybe {2}
  *: nothing
gh: -Rtbn,--repo,--title,--body,--name=
  api auth alias browse cache config gpg-key help: nothing
  codespace cs:
    cp: maybe {last}
    *: nothing
  extension extensions ext:
    create: maybe {1} gh-{1}
    *: nothing
  attestation:
    download: guess downloads
    *: nothing
  agent-task issue label licenses org preview project ruleset search secret ssh-key status variable version: nothing
  workflow completion: nothing
  repo:
    clone: maybe {2} or {1/}
    fork: nothing
      --clone: maybe {1/}
    create: nothing
      -c --clone: maybe {1/}
    sync: guess brings the branch up to date
    *: nothing
  pr:
    checkout: guess checks out another branch
    merge: nothing
      -d --delete-branch: guess changes the branch that is checked out
    *: nothing
  co: guess checks out another branch
  release run: -pA,--pattern,--archive= -D,--dir=IN -O,--output=INSTEAD
    download: maybe .
    *: nothing
  gist:
    clone: maybe {2} or .
    *: nothing

# ---- package managers: the manifest, the lock file, the folder that is filled
npm cnpm: -wF,--workspace,--filter,--registry,--location,--depth,--tag,--otp= -C,--prefix,--cwd,--dir=IN
    unless --dry-run
  i in install add link ln: tree node_modules write package-lock.json existing npm-shrinkwrap.json
    -g --global --location=global: nothing
    --no-save: tree node_modules
    --no-package-lock: tree node_modules write package.json
    *: tree node_modules write package.json package-lock.json existing npm-shrinkwrap.json
  un uninstall remove rm r up update upgrade dedupe: tree node_modules write package.json package-lock.json
    -g --global --location=global: nothing
  ci clean-install ic rebuild prune fetch: tree node_modules
  init innit: write package.json
    *: guess writes a project from a template
  version: needs 1 write package.json package-lock.json
  pkg set: nothing
    set delete fix: write package.json
    *: nothing
  audit: nothing
    fix: write package.json package-lock.json tree node_modules
    signatures: nothing
  run run-script: needs 1 project
  test t tst start stop restart build pack publish: project
  shrinkwrap: write npm-shrinkwrap.json guess npm shrinkwrap replaces the lock file
  exec x: do run_tool
  create: guess writes a project from a template
  why list ls ll la info view show outdated config c get licenses search s help root bin prefix whoami login: nothing
  logout adduser store cache doctor explain query ping owner docs repo bugs token team access fund org: nothing
  completion dist-tag deprecate diff explore find-dupes help-search hook profile star stars unpublish sbom: nothing
yarn: -wF,--workspace,--filter,--registry= -C,--prefix,--cwd,--dir=IN unless --dry-run tree node_modules write yarn.lock
  install i: tree node_modules write yarn.lock
    --frozen-lockfile --immutable --no-lockfile: tree node_modules
  add remove rm up upgrade link unlink dedupe: tree node_modules write package.json yarn.lock
  init version: write package.json
  set pkg: nothing
    set delete fix: write package.json
    *: maybe .yarnrc.yml .yarn package.json
  global: nothing
  run: needs 1 project
  test start build pack publish: project
  exec x dlx: do run_tool
  create: guess writes a project from a template
  workspace: project
  workspaces:
    list info: nothing
    *: project
  why list info outdated audit config licenses search help bin whoami login logout cache doctor explain: nothing
  query owner team access tag versions node server npm: nothing
  *: do run_tool {verb}
pnpm: -wF,--workspace,--filter,--registry= -C,--prefix,--cwd,--dir=IN unless --dry-run
  install i: tree node_modules write pnpm-lock.yaml
    -g --global: nothing
    --frozen-lockfile: tree node_modules
    *: tree node_modules write package.json pnpm-lock.yaml
  add remove rm un uninstall up update upgrade dedupe: tree node_modules write package.json pnpm-lock.yaml
    -g --global: nothing
  link ln: tree node_modules write package.json pnpm-lock.yaml
  ci clean-install ic rebuild prune fetch: tree node_modules
  init: write package.json
  version: needs 1 write package.json
  pkg set: nothing
    set delete fix: write package.json
    *: nothing
  run: needs 1 project
  test t tst start stop restart build pack publish: project
  exec x dlx: do run_tool
  create: guess writes a project from a template
  audit: nothing
    fix: write package.json pnpm-lock.yaml tree node_modules
    --fix: maybe package.json pnpm-workspace.yaml pnpm-lock.yaml node_modules
    *: nothing
  why list ls ll la info view outdated config licenses search help root bin prefix whoami login logout: nothing
  store cache doctor env server owner access: nothing
  *: do run_tool {verb}
pip pip3: --python,--log,--proxy=
  install: -trceio,--requirement,--index-url,--prefix,--root,--src,--editable,--constraint,--extra-index-url=
      --upgrade-strategy= -t,--target=DIR --report=FILE unless --dry-run
    -e --editable . ./* /*: project
    *: nothing
  download wheel: -rc,--requirement,--constraint,--index-url= -dw,--dest,--wheel-dir=IN tree ./*.whl ./*.gz ./*.zip
  list show freeze check search help config cache debug index inspect uninstall hash completion: -o nothing
bundle bundler: --gemfile,--jobs,--retry= --path=DIR write Gemfile.lock
  install i update lock: write Gemfile.lock
  add remove: write Gemfile Gemfile.lock
  init: write Gemfile
  exec e: do run_tool
  show list info outdated check config help platform viz open doctor clean pristine version licenses: nothing
gem: nothing
  build: tree ./*.gem
  fetch: guess fetches a gem
  install uninstall list search update env environment which info contents outdated cleanup help dependency: nothing
  specification query server sources push owner signin signout yank pristine check stale: nothing
composer: -d,--working-dir=IN unless --dry-run
  install i update u upgrade: tree vendor write composer.lock
  require r remove: tree vendor write composer.lock composer.json
  dump-autoload dumpautoload: tree vendor
  run run-script test exec: project
  init: write composer.json
  config: needs 2 write composer.json
    -g --global -l --list: nothing
    --unset: write composer.json
  show info list outdated why depends why-not prohibits validate diagnose search status licenses about: nothing
  help global audit check-platform-reqs clear-cache self-update fund suggests home browse: nothing
cargo: -pFjZ,--package,--features,--target,--bin,--example,--profile,--branch,--tag,--rev,--git,--path,--rename=
    --color,--config,--manifest-path,--target-dir,--message-format= -C=IN unless --list drop +*
  build b test t run r check c bench doc d nextest rustc miri publish package: project
  fmt: unless --check tree {--manifest-path//}/*.rs or ./*.rs
  fix: maybe ./*.rs project
  clippy: project
    --fix: maybe ./*.rs project
  add remove rm upgrade: unless -n --dry-run write {--manifest-path//}/Cargo.toml or Cargo.toml Cargo.lock
  update generate-lockfile: unless -n --dry-run write Cargo.lock
  new init: default . write {1}/Cargo.toml {1}/src/main.rs {1}/src/lib.rs {1}/.gitignore
  clean: remove-all {--target-dir} or target
  vendor: tree {1} or vendor
  install: nothing
    --path: project
    *: nothing
  insta release generate: guess changes files of the project
  sqlx: project
    prepare: project guess changes files of the project
    *: project
  dist watch make xtask expand llvm-cov: project
  search tree metadata login logout owner yank help version locate-project pkgid verify-project info: nothing
  read-manifest uninstall config audit outdated deny bloat report: nothing
pod: nothing
  install update: write Podfile.lock tree Pods
  *: nothing
conan: nothing
  install create build: project
  *: nothing
apt apt-get: -oct= nothing
  install reinstall remove purge update upgrade full-upgrade dist-upgrade autoremove autopurge autoclean clean: nothing
  search show list policy depends rdepends edit-sources mark check satisfy showsrc changelog build-dep: nothing
brew: nothing
  install uninstall remove rm list ls search info update upgrade outdated doctor cleanup services tap untap: nothing
  deps uses leaves config home cat log link unlink pin unpin reinstall desc help shellenv: nothing
dnf yum: nothing
  install remove erase update upgrade search info list check-update provides whatprovides repolist clean: nothing
  makecache history autoremove group groupinstall groupinfo repoquery downgrade reinstall module: nothing
  config-manager swap help: nothing
apk: nothing
  add del update upgrade info search list policy fix cache stats version: nothing
snap: nothing
  list find info install remove refresh revert services start stop restart changes known connections: nothing
  connect disconnect set get alias version help: nothing
pipx: nothing
  install list uninstall upgrade upgrade-all inject uninject ensurepath environment reinstall completions: nothing
rustup: nothing
  show update default toolchain target component override which doc man self set completions check install: nothing
  uninstall help: nothing
nvm: nothing
  use install uninstall ls list ls-remote current which alias unalias deactivate cache version help: nothing
volta: nothing
  run: ends --node,--npm,--yarn,--pnpm= run {}
  install uninstall list which setup fetch help: nothing
corepack: nothing
  enable disable install prepare hydrate cache: nothing
pacman port crontab systemctl service launchctl journalctl: -o nothing
dpkg dpkg-deb: -o nothing
  -x -X -R --extract --vextract --raw-extract: maybe {2}
  -e --control: maybe {2} or DEBIAN
  -b --build: replace {2} or {1}.deb
rpm: -qliafpVKeUFi nothing
  --rebuild --recompile -b -ba -bb: guess builds a package

direnv: nothing
  exec: do run_rest 2
  allow deny grant permit revoke status version hook export stdlib reload prune help: nothing
devbox: nothing
  run: project
  shell shellenv list info search version help completion: nothing
mise asdf: nothing
  exec x: do run_rest
  run r: project
  ls list install i current which env activate doctor version upgrade uninstall prune reshim where tool: nothing
  registry outdated trust self-update plugins plugin plugin-add ls-remote latest tasks help completion: nothing
  settings global info update shell shellenv search: nothing
"""
