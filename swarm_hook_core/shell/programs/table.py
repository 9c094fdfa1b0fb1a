"""Programs and their writes: one row each.

A row is the names of similar programs, a colon, the options with a value, and the effects:

    sort gsort:   -kStT,--key,--field-separator= -o,--output=FILE passes-names

    sort's -k, -S, -t, -T, --key and --field-separator take a value, so that it is no operand. -o and --output take
    one, too, and it names a file that is written. There is no other effect: the operands are read.

Indented lines are cases: the first that applies replaces the row. A case is chosen by options or by subcommands;
``*`` is any other subcommand (without it an unlisted one is a guess); ``<`` is piped input. A case whose line begins
with ``+`` adds to the rest. Cases nest. A comment has a line of its own.

    helm:         -n,--namespace=
      lint list:  nothing
      create:     maybe {1}
      pull:       -d,--destination=IN maybe .

Options stand first: spellings with commas between them (letters after one dash are one option each), and
  =           takes a value                       ?        takes a value only if attached (``-i.bak``)
  =FILE       a file that is made anew            =DIR     anything under it may be written
  =CHANGED    a file that is made or added to     =IN      the folder of INSTEAD and of all targets
  =INSTEAD    as =FILE, and replaces the row's other effects (except ``+`` cases)
An option without a mark is known, and has no effect. An undeclared option is judged by its name: `-o`, `--output`,
`--report-dir` name outputs, `--fix` alone makes a guess (see ``undeclared``).

Then, in any order:
  onedash     long options have one dash          valued   undeclared options take a value as well
  strict      an undeclared long option is a guess
  ends        the first operand (after those of `skip`) ends the options: the rest is another command
  elsewhere   undeclared options have no effect: they concern another machine
  unless -n   with one of these words it writes nothing at all
  only -w     without one of these it writes only the files that options name
  default .   the operand if there is no other    skip 1   operands at the start that are no files
  drop a,b    subcommands that may stand first    needs 2  with fewer operands it writes nothing
and the effects, with their targets:
  write       makes or changes them; for a loss that is not certain, or a file that is added to
  existing    the same, if they exist             mark     changes their mode or dates, not their text
  tree        the same, with all that is in them  maybe    unknown: they, or files in them
  replace     makes them anew, so that the old text is lost; a file that is also an operand only changes
  remove      removes them                        remove-all   the same, with all that is in them
  over        named files, and in folders those with these endings (``flat``: not in deeper folders)
  put         copies its first operands to the last    run      runs the command of its targets
  text        runs each of its targets as shell text
  manifest    the same as `write`, for files in the nearest folder above with a manifest
  project     runs the project's code             guess    may write unnamed files: the reason, to the line's end
  passes      prints its input                    passes-names   prints some names of its input
  shows       prints all that is in them, so that the model has seen them
  do          calls a function of ``functions``   nothing, reads   writes nothing
  language    calls a function of a module: its arguments are a language of their own, and not read here

A target is a name, a pattern in a folder (``./*.gem``), or contains ``{}``: each operand; ``{1}``, ``{last}``,
``{2-}``: the first, the last, those from the second; ``{*.go}``: those with that ending; ``{-d}``: the option's
values; ``{url}``: the last names of addresses; ``{rest}``: all words after the subcommand, options too. Parts of these
as in GNU parallel: ``{.}`` without its ending, ``{/}`` the last name, ``{//}`` the folder, ``{/.}``; ``{:}`` the text
after a colon, ``{-o=}`` after an equals sign; ``{1?.zip}`` with .zip if it has no ending.
``a or b``: b if a does not exist.
"""

# Words for the endings of files.
KINDS = {
    "PYTHON": ".py .pyi .ipynb",
    "SCRIPT": ".js .jsx .mjs .cjs .ts .tsx .mts .cts .vue .svelte .astro",
    "STYLE": ".css .scss .less .sass .pcss",
    "WEB": ".js .jsx .mjs .cjs .ts .tsx .mts .cts .vue .svelte .astro .css .scss .less .sass .pcss .json .jsonc"
    " .json5 .md .mdx .html .yaml .yml .graphql .gql .hbs",
    "C": ".c .cc .cpp .cxx .h .hh .hpp .hxx .m .mm .java .js .ts .proto .cs .cu",
    "RUBY": ".rb .rake .gemspec .ru Gemfile Rakefile .jbuilder .erb",
    "TERRAFORM": ".tf .tfvars .tftest.hcl .tofu",
}

TABLE = """
# ---- programs whose arguments are languages of their own
cp gcp: language copies.cp
mv gmv: language copies.mv
ln gln: language copies.ln
install ginstall: language copies.install
rsync: language copies.rsync
sed gsed: language sed.sed
awk gawk mawk nawk goawk: language awk.awk
git: language git.git
echo: reads language listers.echo
printf: reads language listers.printf
pwd: reads language listers.pwd
ls gls: reads language listers.ls
cat: reads language listers.cat
head tail ghead gtail: reads language listers.head
basename: reads language listers.basename
dirname: reads language listers.dirname
realpath readlink grealpath greadlink: reads language listers.realpath
seq: reads language listers.seq
true false test [: reads language listers.silent
grep egrep fgrep ggrep zgrep rg ag ack: reads language searchers.grep
find gfind: ends language searches.find
fd fdfind: ends language searches.fd
xargs gxargs: ends language xargs.xargs
parallel: ends language xargs.parallel
entr: ends language xargs.entr
bash sh zsh dash ksh ash fish: ends language shells.shell
python python3 python2 pypy pypy3 ipython: language interpreters.python
node nodejs tsx ts-node ruby php lua luajit: language interpreters.scanned
deno: language interpreters.deno
bun: language interpreters.bun
perl: language interpreters.perl
osascript tclsh Rscript: language interpreters.opaque
patch gpatch: language patch.patch
apply_patch applypatch: language patch.apply_patch
# `swarm-mcp restore` writes files, but only on request.
swarm-mcp swarm-locks: language swarm.swarm
codex: language patch.codex
tar bsdtar gtar: language archives.tar
unzip: language archives.unzip
rename prename rename.ul file-rename perl-rename: language renaming.rename
ed red: language editors.ed
ex vi vim nvim view rvim gvim mvim: language editors.vim

# ---- files: made, removed, marked
rm grm: remove {}
  -r -R --recursive: remove-all {}
rmdir: remove {}
unlink: remove {}
mkdir mkfifo: -m,--mode= write {}
mknod: -m,--mode= write {1}
link: write {2}
touch gtouch: -drtA,--date,--reference,--time= write {}
  -c -h --no-create --no-dereference: existing {}
truncate: -sr,--size,--reference= -o replace {}
shred: -ns,--iterations,--size,--random-source= remove {}
trash trash-put: remove-all {}
# A mode may begin with a dash: chmod -x f
chmod: --reference= -o skip 1 mark {}
  -R --recursive: skip 1 tree {}
    -r -w -x -X -s -t -u -g -o -a --reference: tree {}
  -r -w -x -X -s -t -u -g -o -a --reference: mark {}
chown chgrp: --reference,--from= skip 1 mark {}
  -R --recursive: skip 1 tree {}
    --reference: tree {}
  --reference: mark {}
chflags: skip 1 mark {}
  -R: skip 1 tree {}
setfacl: -mxMX,--modify,--remove,--set,--set-file,--modify-file,--remove-file= unless --test mark {}
  -R --recursive: tree {}
xattr: nothing
  -w: skip 2 mark {}
    -r: skip 2 tree {}
  -d: skip 1 mark {}
    -r: skip 1 tree {}
  -c: mark {}
    -r: tree {}
mktemp gmktemp: -p,--suffix= do temporary_file
dos2unix unix2dos mac2unix unix2mac: -c,--convmode= unless -i --info -O --to-stdout write {}
  -n --newfile: replace {2} maybe {3-}
gio: nothing
  cat help info launch list mime monitor mount open tree version: nothing
  copy: run cp {}
  move: run mv {}
  remove: remove-all {}
  trash: unless --empty --list --restore remove-all {}
  mkdir: write {}
  rename: remove {1} replace {1//}/{2}
  save: replace {1}
  set: -t,--type= mark {1}

# ---- text that is passed on, and can go to a file
tee gtee: passes replace {}
  -a --append: passes write {}
dd: of= conv= do dd
sort gsort: -kStT,--key,--field-separator,--buffer-size,--temporary-directory,--parallel,--batch-size=
    -o,--output=FILE --compress-program,--files0-from,--random-source= passes-names
uniq guniq: -fsw,--skip-fields,--skip-chars,--check-chars= passes-names replace {2}
sponge: passes write {1}
split gsplit: -abClnpt,--suffix-length,--additional-suffix,--bytes,--line-bytes,--lines,--number,--separator,--filter=
    do pieces
csplit gcsplit: -fnb,--prefix,--digits,--suffix-format= do pieces
tree: -LPIHTi,--filelimit,--charset,--timefmt,--sort= -o=FILE
less: -bhjkptTxyzP,--lesskey-file,--tag,--pattern= -oO,--log-file,--LOG-FILE=FILE shows {}
xxd: onedash -c,-cols,-g,-groupsize,-l,-len,-n,-name,-o,-s,-seek,-R= replace {2}
  -r -revert: write {2}
iconv: -ft,--from-code,--to-code= -o,--output=FILE
shuf gshuf: -in,--input-range,--head-count,--random-source= -o,--output=FILE
base64 base32: -bi,--wrap,--input,--break= -w? -o,--output=FILE
uuencode: -o,--output-file=FILE
uudecode: -o,--output-file=INSTEAD guess a name that stands in the file
ptx: -AFMSWbgiowx=
  -G --traditional: replace {2}
sdiff: -wW= -o,--output=FILE
m4 gm4: -DUIR,--define,--include= -oF,--debugfile,--freeze-state=FILE
file: -fFmeP=
  -C --compile: guess compiles a magic file
mlr: nothing
  -I: existing {2-}
xmlstarlet: nothing
  ed edit: -L --inplace only -L --inplace write {last}
  *: nothing

# ---- keys and certificates
openssl: onedash -out,-keyout,-writerand,-CAserial,-noout-file,-sigfile-out,-signature-out=FILE
gpg gpg2: -ruN,--local-user,--recipient,--homedir,--passphrase,--passphrase-file,--keyserver,--default-key=
    -o,--output=INSTEAD
  -a --armor: nothing
    -e -s -c -b --encrypt --sign --symmetric --detach-sign --clearsign --clear-sign: replace {1}.asc
  -b --detach-sign --detach-sig: replace {1}.sig
  --clearsign --clear-sign: replace {1}.asc
  -e -s -c --encrypt --sign --symmetric: replace {1}.gpg
age: -riR,--recipient,--identity,--recipients-file= -o,--output=FILE
ssh-keygen: -fbtCNPFRrsIVznDmaOwWYZJjKM= -o unless -l -y -F -e -B -L -Q replace {-f} {-f}.pub
  -R -H: write {-f}

# ---- reports, where they do not go to the screen
xsv: -dsn= -o,--output=FILE
sar: -sef= -o=FILE
cppcheck: -DUIij= --output-file=FILE
nvidia-smi: -ilq= -f,--filename=FILE
trivy: -fs= -o,--output=FILE
grype syft: -o= --file=FILE replace {-o=}
pygmentize: -lfOFSNxP= -o=FILE
highlight: -OiS= -o,--output=FILE
qrencode: -sltvm= -o,--output=FILE
nmap masscan: onedash -oN,-oX,-oG,-oS,-oJ,-oL=FILE -oA=
  + -oA: replace {-oA}.nmap {-oA}.xml {-oA}.gnmap
tcpdump tshark dumpcap ngrep: -irsIO= -w=FILE
pdftotext: onedash -f,-l,-r,-x,-y,-W,-H,-enc,-eol,-opw,-upw,-fixed,-cropbox= replace {2} or {1.}.txt

# ---- terminals that can be typed into
tmux: -cfLST= guess may type into a terminal
  ls list-* capture-pane capturep display-message display has-session has show-options attach attach-session a: nothing
  kill-session kill-pane kill-window kill-server info: nothing
  *: guess may type into a terminal
screen: onedash guess may type into a terminal
  -m -dm -Dm: guess may type into a terminal
  -ls -list -wipe -v -r -x -rd -d -D: nothing

# ---- programs that put themselves before another command
nohup setsid unbuffer chronic catchsegv linux64 arch numactl busybox: ends run {}
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

# ---- databases: servers keep what they change to themselves
sqlite3 sqlite duckdb: onedash -cmd,-separator,-init,-newline,-nullvalue,-vfs,-mmap,-maxsize,-lookaside,-pagecache=
    -readonly -o unless -version -help do sqlite
psql: -fdhpUvFPTRcLo,--file,--command,--dbname,--host,--port,--log-file,--output= do psql
pg_dump pg_dumpall mysqldump mongodump: -hpUdFntjBuP,--format,--host,--db= -fr,--file,--result-file,--archive=FILE
    -o,--out=DIR
mysql mariadb redis-cli mongosh: -o

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

# ---- editors that wait for keys (vim and ed are languages of their own)
emacs emacsclient: onedash -l,-load,-f,-funcall,-e,-eval,-execute,-L,-directory,-t,-chdir,-visit,-file,-insert=
    -find-file,-u,-user,-socket-name,-s,-alternate-editor,-a,-x,-script= drop +* maybe {} {-visit} {-file} {-find-file}
  -batch -script -x: do emacs_batch
nano pico micro hx joe kak mcedit code subl zed cursor: unless -h -V --list-extensions --install-extension maybe {}

# ---- readers: they write nothing, whatever their arguments
nl: -bdfhilnsvw,--body-numbering,--section-delimiter,--number-format,--number-separator,--number-width= reads shows {}
bat batcat: -lHr,--language,--highlight-line,--file-name,--style,--theme,--wrap,--pager,--color,--line-range= reads
    shows {}
  -r --line-range -d --diff: reads
jq: -Lf,--indent,--from-file= reads
  .: reads shows {}
  *: reads
more most: reads shows {}
agrep cmp cksum colordiff diff tac cloc comm csvcut csvgrep csvjoin csvlook csvsort csvstat cut delta diff3: reads
diffstat difft envsubst expand fmt fold gron hexyl icdiff jless jo jp lolcat look paste pcregrep: reads
ripgrep rev scc shellcheck sift sum tr tsort ugrep unexpand wc wdiff zcat zcmp zdiff zegrep zfgrep zless: reads
zmore zstdcat zstdgrep zstdless bzcat bzdiff bzgrep bzless bzmore xzcat xzcmp xzdiff xzgrep xzless xzmore: reads
lz4cat gzcat glow mdcat gcat gwc gcut gtr zipinfo identify yamllint actionlint vale: reads
proselint write-good alex commitlint checkmake tflint checkov: reads
b2sum b3sum crc32 md5 md5sum sha1sum sha224sum sha256sum sha384sum sha512sum shasum xxhsum basenc: reads
df dircolors du duf dust erd fuser getfattr mdfind mdls mountpoint ncdu pathchk stat vdir dir whereis locate: reads
mlocate plocate bc cowsay dc expr factor figlet fortune gcal getopt locale ncal numfmt sleep tput units uuidgen: reads
yes gettext pwgen toilet acpi blkid btop dmesg dmidecode free getconf getent groups htop iostat ipcs kill: reads
killall last lastlog lscpu lshw lsmod lspci lsusb mpstat nproc pidof pidstat pidwait pmap printenv pstree pwdx: reads
renice sensors sw_vers swapon sysctl system_profiler tasklist tty uptime users vm_stat vmstat w wall logger mesg: reads
notify-send tload vmmap loginctl hostnamectl timedatectl arp dig host ifconfig iw mtr nc ncat netcat: reads
networksetup nmcli nslookup ping ping6 route ssh-add ssh-keyscan telnet tracepath traceroute whois apt-cache: reads
apt-file dpkg-query exiftags fastfetch ffprobe htmlq hwinfo inxi jc lstopo lynx mediainfo mimetype neofetch: reads
pdffonts pdfinfo pup rpmquery screenfetch soxi w3m xmlwf addr2line apropos c++filt dwarfdump ldd man objdump: reads
pahole pkg-config pkgconf tldr cheat whatis info lsb_release which hostname whoami id date gdate: reads
type: reads
# What their -o is, is no file.
az column dwdiff eksctl exa eza findmnt fswatch getfacl hexdump infocmp ip join lsattr lsblk lsd lsof namei: reads -o
cal netstat nm od otool pgrep pkill pr ps readelf size ss strings tokei top uname who wl-paste xclip xsel: reads -o
# What changes or shows the machine alone: its devices, users, networks, services.
atq atrm auditctl aureport ausearch bmon bridge busctl chage chcpu chpasswd chsh conntrack cpupower ethtool: reads
faillog finger firewall-cmd fping fstrim getenforce getsebool gpasswd groupadd groupdel groupmod hdparm hostid: reads
hwclock iftop insmod iotop ip6tables iptables ipset iwconfig iwlist killall5 lastb localectl lsinitramfs lsipc: reads
lslocks lslogins lsmem lsns lvdisplay lvs machinectl modinfo modprobe mount nethogs networkctl newgrp nft: reads
numastat passwd pinky poweroff pvs reboot resolvectl rfkill rmmod runlevel sestatus setenforce setsebool: reads
shutdown slabtop smartctl swapoff systemd-analyze systemd-cgls systemd-cgtop udevadm ufw umount useradd userdel: reads
usermod vgs vnstat amixer aplay espeak feh i3-msg mpv notify-osd pactl setxkbmap swaymsg wmctrl xdotool: reads
xdpyinfo xev xinput xkill xmodmap xprop xrandr xset xwininfo clear fzf open pbcopy pbpaste peco reset setterm: reads
stty wl-copy xdg-open: reads
# Containers, clusters, clouds: what they change is elsewhere.
kubectx kubens stern k9s dive hadolint doctl heroku gcloud bq hcloud minikube kind argocd flux istioctl vault: reads
etcdctl rabbitmqctl createdb dropdb pg_isready cqlsh vulture radon xenon interrogate staticcheck lychee: reads
depcheck hey wrk grpcurl pv inotifywait: reads
# The shell's own.
bg disown fg hash jobs logout suspend times ulimit umask wait bind complete compgen compopt help let enable: reads

"""
