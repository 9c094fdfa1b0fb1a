"""Programs that are languages of their own: each has a module, whose ``RUN`` holds its functions of a `Call`."""

LANGUAGES = {
    "copies": "cp gcp mv gmv ln gln link install ginstall rsync ditto",
    "renaming": "rename prename rename.ul file-rename perl-rename",
    "sed": "sed gsed",
    "awk": "awk gawk mawk nawk goawk",
    "perl": "perl",
    "patch": "patch gpatch",
    "editors": "ed red ex vi vim nvim view rvim gvim mvim emacs emacsclient",
    "archives": "tar bsdtar gtar unzip",
    "interpreters": "python python3 python2 pypy pypy3 node nodejs tsx ts-node deno bun ruby php lua luajit osascript"
    " tclsh Rscript ipython",
    "shells": "bash sh zsh dash ksh ash fish",
    "searches": "find gfind fd fdfind",
    "xargs": "xargs gxargs parallel entr",
    "wrappers": "env genv sudo doas sudoedit su runuser nohup nice ionice chrt taskset timeout gtimeout time gtime"
    " stdbuf gstdbuf setsid unbuffer caffeinate chronic rlwrap xvfb-run catchsegv linux64 arch numactl systemd-run"
    " dotenv strace ltrace dtruss valgrind flock script watch hyperfine busybox nix-shell ssh mosh chroot",
    "runners": "npx bunx pnpx uvx uv poetry pdm pipenv hatch rye pixi",
    "containers": "docker podman nerdctl docker-compose podman-compose",
    "listers": "echo printf pwd ls gls cat head tail ghead gtail basename dirname realpath readlink grealpath greadlink"
    " seq true false test [",
    "searchers": "grep egrep fgrep ggrep zgrep rg ag ack",
    "git": "git",
}
MODULE_OF = {name: module for module, names in LANGUAGES.items() for name in names.split()}
