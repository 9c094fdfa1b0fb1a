# The check before a write if a session's MCP server is to answer it, but is not up yet, or dead.
# Arguments: scratch folder, session id (empty: it comes first in the payload), and the command of the check.
here=${0%/*} scratch=$1 id=$2 payload=
shift 2
if [ -z "$id" ]; then
    payload=$(dd bs=128 count=1 2>/dev/null)
    id=${payload#*\"session_id\":}
    id=${id#*\"}
    id=${id%%\"*}
fi
# The state folder as in hook.sh. A wrong one costs a check by command.
state=${SWARM_STATE_DIR:-${XDG_STATE_HOME:-${HOME:-.}/.local/state}/swarm-mcp}
[ "${SWARM_STATE_DIR:-}${XDG_STATE_HOME:-}" ] || [ -d /proc/self ] || [ ! -d "${HOME:-}/Library" ] ||
    state="$HOME/Library/Application Support/swarm-mcp"
served() {
    case $state:$id in [!/]* | *: | *:*[!A-Za-z0-9-]*) return 1 ;; esac
    read -r pid start 2>/dev/null <"$state/$scratch/$id/server" || return 1
    case $pid in '' | 0 | *[!0-9]*) return 1 ;; esac
    kill -0 "$pid" 2>/dev/null || return 1
    [ -d /proc/self ] || return 0
    read -r line 2>/dev/null <"/proc/$pid/stat" || return 1
    set -- ${line##*) }
    [ "$1" != Z ] && [ "${20}" = "$start" ]
}
# A server that hangs answers nothing, and its client then lets the write pass. A person who wants a denial instead
# (SWARM_FAIL=closed) gets the command beside it each time. It names the client last but one.
asked_beside() {
    [ -r "$here/unchecked.sh" ] || return
    . "$here/unchecked.sh"
    client= event=
    for word; do client=$event event=$word; done
    find_closed "$here/$client"
    [ "$closed" ]
}
served && ! asked_beside "$@" && exec cat >/dev/null  # a client may complain of a payload that is not read
{ printf %s "$payload"; exec cat; } | "$@"
