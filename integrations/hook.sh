# Starts a hook: /bin/sh hook.sh CLIENT EVENT [PYTHON]; or swarm-mcp, for coordinator.sh: hook.sh coordinator WORD...
# `swarm-mcp install` fills in PYTHON. Without it an interpreter is searched once and remembered in the state folder,
# because clients distrust a plugin that changes. Early releases wired .../CLIENT/hooks/EVENT.py [PYTHON].
case $1 in */hooks/*.py) event=${1##*/} client=${1%/hooks/*}; set -- "${client##*/}" "${event%.py}" ${2:+"$2"} ;; esac
here=${0%/*} script=$here/hook.py client=$1 event=${2:-} given=${3:-} within= killed= first=

# The state folder, as swarm_hook_core/state.py has it. It is empty if only Python can tell.
state=${SWARM_STATE_DIR:-${XDG_STATE_HOME:-${HOME:-.}/.local/state}/swarm-mcp}
[ "${SWARM_STATE_DIR:-}${XDG_STATE_HOME:-}" ] || [ -d /proc/self ] || [ ! -d "${HOME:-}/Library" ] ||
    state="$HOME/Library/Application Support/swarm-mcp"
case $state in /*) ;; *) state= ;; esac

if [ "$client" = coordinator ]; then
    script=$here/coordinator.py event= given=; shift
else
    # An installed plugin starts the coordinator without Python before it, for as long as swarm_hook_core/lifecycle.py
    # allows. If another client runs hooks of Claude Code, swarm_hook_core/guests.py has to decide first.
    case $event in session_start) within=5 ;; turn) within=2 ;; session_end) within=0.9 ;; esac
    [ "$client" != claude-code ] || [ -z "${CURSOR_VERSION:-}${COPILOT_PROJECT_DIR:-}${GROK_HOOK_EVENT:-}" ] || within=
    launcher=$here/../bin/swarm-mcp
    if [ "$within" ] && [ -x "$given" ] && [ -z "${SWARM_MCP_BIN:-}" ] && [ -r "$launcher" ]; then
        { (set -- hook "$event" --runtime "$client" --within "$within"; . "$launcher"); killed=$?; } 2>/dev/null
        [ "$killed" = 0 ] && exit
        [ "$killed" -gt 128 ] || killed=  # it has not begun: the payload is still unread
    fi
    # The end of a call, for swarm_hook_core/traces (`Trail.leave`). Four clients start hooks from one more shell.
    case $event.$client in *.copilot | *.cursor | *.grok | *.qwen) ;; post_tool_use.*) [ -d "${state:-/}/ended" ] && : >"$state/ended/$PPID" ;; esac 2>/dev/null
    # After a call Python is needed only if a call is watched, words wait for a session, or the call's end is awaited.
    [ "$event" = post_tool_use ] && [ "$state" ] && [ ! -d "$state/watched" ] && [ ! -d "$state/unheard" ] &&
        [ ! -d "$state/awaited" ] && { PATH=${PATH:-}:/usr/bin:/bin; exec cat >/dev/null; }
    case $given$event.$client in pre_tool_use.claude-code | pre_tool_use.codex) [ "$state" ] && read -r first <"$state/first-look" ;; esac 2>/dev/null  # the coordinator's
    set -- "$client" "$event" $killed
fi

start() {  # the program may be of another machine, in a shared home: its exec fails, and the shell ends, or bash goes on
    [ -x "$python" ] && [ -r "$script" ] || return
    [ ! "$first" ] || [ ! "${FUNCNAME+x}" ] || cmp -s -n 2 "$first" /proc/self/exe 18 18 2>/dev/null || first=  # BusyBox would read it as a script
    [ ! -s "$first" ] || [ ! -x "$first" ] || { trap 'exec "$python" -E -s -S "$script" "$client" "$event"' EXIT; [ ! "${BASH_VERSION:-}" ] ||
        shopt -s execfail; exec "$first" 3 "$client" "$python" -E -s -S "$script" "$@" 2>/dev/null; }
    [ "$event" = session_start ] || exec "$python" -E -s -S "$script" "$@"
    "$python" -E -s -S "$script" "$@" 2>/dev/null && exit
}

python=$given searched=$given
[ "$given" ] || { [ "$state" ] && read -r python <"$state/python" && [ -z "$python" ] && searched=$event; } 2>/dev/null
start "$@"
if [ -z "$searched" ] || [ "$searched" = session_start ]; then
    { read -r own <"$(command -v swarm-mcp || command -v swarm-locks)"; } 2>/dev/null
    case ${own:-} in '#!'*/python*) own=${own#??} ;; *) own= ;; esac
    for name in python3 python3.14 python3.13 python3.12 python3.11 python3.10 python3.9 python "$own" \
        /usr/bin/python3 /usr/local/bin/python3 /opt/homebrew/bin/python3; do
        name=$(command -v "$name" 2>/dev/null) && python=$("$name" -E -s -S "$here/find.py" 2>/dev/null </dev/null)
        [ -f "$python" ] && [ -x "$python" ] && break
        python=
    done
    new=$state/python.$$; [ -z "$state" ] || (umask 077; mkdir -p "$state" && echo "$python" >"$new" && mv -f "$new" "${new%.*}") 2>/dev/null
    start "$@"
fi
[ "$event" ] || { echo "swarm: no Python 3.9 or newer was found to start swarm-mcp with" >&2; exit 1; }
[ ! -r "$here/unchecked.sh" ] || { . "$here/unchecked.sh"; unchecked; }
