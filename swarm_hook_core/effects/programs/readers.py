"""Programs that write nothing whatever their arguments, and need no function of their own."""

NAMES = frozenset(
    (
        "ack awk_ cal cd_ cksum cloc cmp column comm cut df diff dig dircolors du env_ expand expr factor file fmt fold free"
        " getconf getent groups hexdump host htop iconv_ jobs join kill killall last less let lsof lsblk man md5sum more"
        " netstat nl nm nproc nslookup objdump od paste pgrep ping pkill pr printenv ps pstree rev scc sdiff sha1sum"
        " sha224sum sha256sum sha384sum sha512sum shasum size sleep ss stat strings sum tac tokei top tput tr tree tsort"
        " tty unexpand uptime users vmstat w wait wc whereis who xxd_ yes zcat zgrep bat batcat exa eza delta difft"
        " sysctl_ lscpu arch locale look nohup_ diff3 zless bzcat xzcat readelf ldd"
    ).split()
)
