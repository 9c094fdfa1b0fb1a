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
`--report-dir` name outputs, `--fix` alone makes a guess (see ``engine``).

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
  moves       may discard or move others' work, as another tool of version control; it cannot be asked
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
from __future__ import annotations

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

# Further rows are in these modules, each loaded when no row before has the name.
FAMILIES = ("table_runners", "table_arrivals", "table_formatters")

ROWS = """
# ---- programs whose arguments are languages of their own
cp gcp: language copies.cp
mv gmv: language copies.mv
ln gln: language copies.ln
install ginstall: language copies.install
rsync: language copies.rsync
sed gsed: language sed.sed
awk gawk mawk nawk goawk: language sed.awk
git: language git.git
# ---- other tools of version control: where one does the same as git does, git is asked
jj: -R,--repository,--at-op,--at-operation,--color,--config,--config-file= reads
  restore: do discards
    -f --from -t --to --into -c --changes-in: moves
  abandon: do abandons
  op operation: reads
    restore revert undo abandon: moves
  workspace: reads
    forget update-stale: moves
  undo redo new edit next prev commit ci rebase squash absorb split parallelize: moves
  *: nothing
but: -C,--current-dir=IN reads
  discard: do discards
  worktree: reads
    destroy remove: remove-all {1}
  oplog: reads
    restore: moves
  undo redo restore teardown apply unapply move rub absorb amend squash uncommit commit pull switch resolve: moves
  *: nothing
gt: --cwd=IN reads
  checkout co: moves run git checkout {}
  reset: ends run git reset {rest}
  restore: ends run git restore {rest}
  stash: ends run git stash {rest}
  clean: ends run git clean {rest}
  sync restack modify m create c move fold squash split absorb undo delete pop get reorder rename up u down d: moves
  top t bottom b continue abort submit: moves
  *: nothing
sl: -R,--repository= --cwd=IN reads
  revert: -r,--rev= do discards
    -r --rev: moves
  clean purge: do cleans
  goto go update up checkout co: -r,--rev= moves
    -C --clean: moves do discards_all
  commit ci undo redo uncommit unamend amend hide unhide rebase shelve unshelve fold absorb histedit graft: moves
  split metaedit next prev top bottom pull: moves
  *: nothing
git-branchless: reads
  undo hide unhide move restack sync switch next prev reword amend record split: moves
  *: nothing
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
cut gcut tr gtr: reads language sed.part
kill killall pkill skill kill-port pgrep pidof lsof fuser: reads language listers.processes
true false test [: reads language listers.silent
grep egrep fgrep ggrep zgrep rg ag ack: reads language searches.grep
find gfind: ends language searches.find
fd fdfind: ends language searches.fd
xargs gxargs: ends language searches.xargs
parallel: ends language searches.parallel
entr: ends language searches.entr
bash sh zsh dash ksh ash fish: ends language interpreters.shell
python python3 python2 pypy pypy3 ipython: language interpreters.python
node nodejs tsx ts-node ruby php lua luajit: language interpreters.scanned
deno: language interpreters.deno
bun: language interpreters.bun
perl: language interpreters.perl
osascript tclsh Rscript: language interpreters.opaque
patch gpatch: language patch.patch
apply_patch applypatch: language patch.apply_patch
# `swarm-mcp restore` writes files, but only on request.
swarm-mcp swarm-locks: language interpreters.swarm
codex: language patch.codex
tar bsdtar gtar: language archives.tar
unzip: language archives.unzip

# ---- editors and renamers with commands of their own, which are not followed
rename prename rename.ul file-rename perl-rename: unless -n --nono --no-act --just-print --dry-run
    skip 1 maybe {} guess renames files
  -e --expr --expression: -e,--expr,--expression= maybe {} guess renames files
ed red: -p,--prompt= do edited
ex vi vim nvim rvim gvim mvim: -cSutUTiwWqrl,--cmd,--servername,--remote,--remote-send,--remote-expr,--startuptime=
    --listen,--log= -o?p?O?V? do edited
view: maybe {} guess an editor's commands

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
tee gtee: passes replace {} do keep_input
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

# ---- editors that wait for keys
emacs emacsclient: onedash -l,-load,-f,-funcall,-e,-eval,-execute,-L,-directory,-t,-chdir,-visit,-file,-insert=
    -find-file,-u,-user,-socket-name,-s,-alternate-editor,-a,-x,-script= drop +* maybe {} {-visit} {-file} {-find-file}
  -batch -script -x: maybe {} {-visit} {-file} {-insert} {-find-file} guess runs Lisp
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
agrep cmp cksum colordiff diff tac cloc comm csvcut csvgrep csvjoin csvlook csvsort csvstat delta diff3: reads
diffstat difft envsubst expand fmt fold gron hexyl icdiff jless jo jp lolcat look paste pcregrep: reads
ripgrep rev scc shellcheck sift sum tsort ugrep unexpand wc wdiff zcat zcmp zdiff zegrep zfgrep zless: reads
zmore zstdcat zstdgrep zstdless bzcat bzdiff bzgrep bzless bzmore xzcat xzcmp xzdiff xzgrep xzless xzmore: reads
lz4cat gzcat glow mdcat gcat gwc zipinfo identify yamllint actionlint vale: reads
proselint write-good alex commitlint checkmake tflint checkov: reads
b2sum b3sum crc32 md5 md5sum sha1sum sha224sum sha256sum sha384sum sha512sum shasum xxhsum basenc: reads
df dircolors du duf dust erd getfattr mdfind mdls mountpoint ncdu pathchk stat vdir dir whereis locate: reads
mlocate plocate bc cowsay dc expr factor figlet fortune gcal getopt locale ncal numfmt sleep tput units uuidgen: reads
yes gettext pwgen toilet acpi blkid btop dmesg dmidecode free getconf getent groups htop iostat ipcs: reads
last lastlog lscpu lshw lsmod lspci lsusb mpstat nproc pidstat pidwait pmap printenv pstree pwdx: reads
renice sensors sw_vers swapon sysctl system_profiler tasklist tty uptime users vm_stat vmstat w wall logger mesg: reads
notify-send tload vmmap loginctl hostnamectl timedatectl arp dig host ifconfig iw mtr nc ncat netcat: reads
networksetup nmcli nslookup ping ping6 route ssh-add ssh-keyscan telnet tracepath traceroute whois apt-cache: reads
apt-file dpkg-query exiftags fastfetch ffprobe htmlq hwinfo inxi jc lstopo lynx mediainfo mimetype neofetch: reads
pdffonts pdfinfo pup rpmquery screenfetch soxi w3m xmlwf addr2line apropos c++filt dwarfdump ldd man objdump: reads
pahole pkg-config pkgconf tldr cheat whatis info lsb_release which hostname whoami id date gdate: reads
type: reads
# What their -o is, is no file.
az column dwdiff eksctl exa eza findmnt fswatch getfacl hexdump infocmp ip join lsattr lsblk lsd namei: reads -o
cal netstat nm od otool pr ps readelf size ss strings tokei top uname who wl-paste xclip xsel: reads -o
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
