"""Programs that write nothing whatever their arguments, and need no function of their own.

A program that writes only when told to (``sort -o``, ``uniq in out``, ``tree -o``) does not belong here.
"""

NAMES = frozenset(
    (
        # text and tables
        "ack agrep cal cmp cksum cloc colordiff column comm csvcut csvgrep csvjoin csvlook csvsort csvstat cut delta"
        " diff"
        " diff3 diffstat difft dwdiff egrep envsubst expand fgrep fmt fold gron hexdump hexyl icdiff join jless jo jp"
        " jq lolcat look nl od paste pcregrep pr ripgrep rev scc shellcheck sift"
        " strings sum tac tokei tr tsort ugrep unexpand wc wdiff zcat zcmp zdiff zegrep zfgrep zgrep"
        " zless zmore zstdcat zstdgrep zstdless bzcat bzdiff bzgrep bzless bzmore xzcat xzcmp xzdiff xzgrep xzless"
        " xzmore"
        " lz4cat gzcat bat batcat glow mdcat most more gcat ghead gtail gwc gcut gtr ggrep gdate"
        " zipinfo identify yamllint actionlint vale proselint write-good alex commitlint checkmake tflint checkov"
        # of the clients themselves: the files in a patch are found by ``swarm_hook_core.patch``
        " apply_patch applypatch"
        # checksums and encodings
        " b2sum b3sum cksum crc32 md5 md5sum sha1sum sha224sum sha256sum sha384sum sha512sum shasum xxhsum basenc"
        # files and folders
        " df dircolors dirname du duf dust erd exa eza findmnt fuser getfacl getfattr lsattr lsd lsof mdfind mdls"
        " mountpoint"
        " namei ncdu pathchk stat vdir dir whereis locate mlocate plocate"
        # numbers, dates, texts
        " bc cowsay dc expr factor figlet fortune gcal getopt locale ncal numfmt sleep tput units uuidgen yes"
        " gettext infocmp pwgen toilet"
        # the machine and its processes
        " acpi arch blkid btop dmesg dmidecode free getconf getent groups htop iostat ipcs kill killall last lastlog"
        " lscpu lsblk lshw lsmod lspci lsusb mpstat nproc pgrep pidof pidstat pidwait pkill pmap printenv ps pstree"
        " pwdx renice sensors sw_vers swapon sysctl system_profiler tasklist top tty uptime users vm_stat vmstat w who"
        " logger mesg notify-send tload uname vmmap wall free loginctl hostnamectl timedatectl"
        # networks
        " arp dig host ifconfig ip iw mtr nc ncat netcat netstat networksetup nmcli nslookup ping ping6 route ss"
        " ssh-add ssh-keyscan telnet tracepath traceroute whois"
        # packages, media, pages
        " apt-cache apt-file dpkg-query exiftags fastfetch ffprobe htmlq hwinfo inxi jc lstopo lynx mediainfo mimetype"
        " neofetch pdffonts pdfinfo pup rpmquery screenfetch soxi w3m xmlwf"
        # programs and libraries
        " addr2line apropos c++filt dwarfdump ldd man nm objdump otool pahole pkg-config pkgconf readelf size"
        " tldr cheat whatis info lsb_release"
        # what changes or shows the machine alone: its devices, users, networks, services
        " atq atrm auditctl aureport ausearch bmon bridge busctl chage chcpu chpasswd chsh conntrack cpupower"
        " ethtool faillog finger firewall-cmd fping fstrim getenforce getsebool gpasswd"
        " groupadd groupdel groupmod groups hdparm hostid hwclock iftop insmod iotop ip6tables iptables ipset iwconfig"
        " iwlist killall5 lastb localectl lsinitramfs lsipc lslocks lslogins lsmem lsns lvdisplay lvs machinectl"
        " modinfo modprobe mount nethogs networkctl newgrp nft numastat passwd pinky poweroff pvs reboot"
        " resolvectl rfkill rmmod runlevel sestatus setenforce setsebool shutdown slabtop smartctl swapoff"
        " systemd-analyze systemd-cgls systemd-cgtop udevadm ufw umount useradd userdel usermod vgs vnstat"
        # windows of a person, terminals, sounds
        " amixer aplay espeak feh i3-msg mpv notify-osd pactl setxkbmap swaymsg wmctrl xdotool xdpyinfo xev xinput"
        " xkill xmodmap xprop xrandr xset xwininfo"
        " clear fzf open pbcopy pbpaste peco reset setterm stty wl-copy wl-paste xclip xdg-open xsel"
        # containers, clusters, clouds: what they change is elsewhere
        " kubectx kubens stern k9s dive hadolint doctl heroku az gcloud bq hcloud minikube kind argocd flux istioctl"
        " eksctl vault etcdctl rabbitmqctl createdb dropdb pg_isready cqlsh"
        # measurements of code and servers
        " vulture radon xenon interrogate staticcheck lychee depcheck hey wrk grpcurl pv inotifywait fswatch"
        # shells' own
        " bg disown fg hash jobs logout suspend times ulimit umask wait bind complete compgen compopt help let enable"
    ).split()
)
