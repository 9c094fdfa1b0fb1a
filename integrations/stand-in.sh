# The check before a write, where the session's MCP server cannot answer it: not up yet, or dead.
# Arguments: scratch folder, session id (empty: in the payload, where it comes first), the command and its arguments.
here=${0%/*} scratch=$1 id=$2 payload= state=
shift 2
if [ -z "$id" ]; then
    payload=$(dd bs=128 count=1 2>/dev/null)
    id=${payload#*\"session_id\":}
    id=${id#*\"}
    id=${id%%\"*}
fi
[ -r "$here/state.sh" ] && . "$here/state.sh"
served() {
    case $id in '' | *[!A-Za-z0-9-]*) return 1 ;; esac
    [ -n "$state" ] && read -r pid start 2>/dev/null <"$state/$scratch/$id/server" || return 1
    case $pid in '' | 0 | *[!0-9]*) return 1 ;; esac
    kill -0 "$pid" 2>/dev/null || return 1
    [ -d /proc/self ] || return 0
    read -r line 2>/dev/null <"/proc/$pid/stat" || return 1
    set -- ${line##*) }
    [ "$1" != Z ] && [ "${20}" = "$start" ]
}
# A server that hangs answers nothing, and its client then lets the write pass: where a person wants a denial instead
# (SWARM_FAIL=closed), the command is asked beside it each time. It names the client last but one.
asked_beside() {
    [ -r "$here/closed.sh" ] || return 1
    . "$here/closed.sh"
    client= event=
    for word; do client=$event event=$word; done
    fails_closed "$here/$client"
}
served && ! asked_beside "$@" && exec cat >/dev/null  # a client may complain of a payload that nobody reads
{ printf %s "$payload"; exec cat; } | "$@"
