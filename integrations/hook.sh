# Starts a hook: /bin/sh hook.sh CLIENT EVENT [PYTHON]; or swarm-mcp, for coordinator.sh: hook.sh coordinator WORD...
# `swarm-mcp install` fills in PYTHON. Without it an interpreter is searched once and remembered in the state folder,
# because clients distrust a plugin that changes. Early releases wired .../CLIENT/hooks/EVENT.py [PYTHON].
case $1 in */hooks/*.py) event=${1##*/} client=${1%/hooks/*}; set -- "${client##*/}" "${event%.py}" ${2:+"$2"} ;; esac
here=${0%/*} script=$here/hook.py client=$1 event=${2:-} given=${3:-} alone=${4:-} within= killed= relay= state=
release=0.1.0  # of this plugin; a checker of another one does not answer

[ ! -r "$here/state.sh" ] || . "$here/state.sh"

if [ "$client" = coordinator ]; then
    script=$here/coordinator.py event= given=; shift
else
    # The relay asks the checker of this client, and comes back with "alone" where none answers. If another client runs
    # hooks of Claude Code or Copilot, swarm_hook_core/guests.py has to decide first.
    case $client in
        claude-code) [ -z "${CURSOR_VERSION:-}${COPILOT_PROJECT_DIR:-}${GROK_HOOK_EVENT:-}" ] || alone=alone guest=1 ;;
        copilot) [ -e "$here/../bin/swarm-mcp" ] || alone=alone ;;
    esac
    case $alone$event in pre_tool_use | post_tool_use | turn | subagent) [ -f "${state:-/}/relay" ] && read -r relay <"$state/relay" ;; esac 2>/dev/null
    # The program may be of another machine, in a shared home: its exec fails, and the shell ends, or bash goes on.
    [ ! "$relay" ] || [ ! "${FUNCNAME+x}" ] || cmp -s -n 2 "$relay" /proc/self/exe 18 18 2>/dev/null || relay=  # BusyBox would read it as a script
    if [ -s "$relay" ] && [ -x "$relay" ]; then
        trap 'exec /bin/sh "$0" "$client" "$event" "$given" alone' EXIT
        [ ! "${BASH_VERSION:-}" ] || shopt -s execfail
        exec "$relay" "$release" "$client" "$event" /bin/sh "$0" "$client" "$event" "$given" alone 2>/dev/null
    fi
    # Without a relay in C, a turn is handed to a checker by hook.py, if the client that started this hook has one.
    set -- "${state:-/}/checkers/$PPID"-*
    [ "$event$alone" = turn ] && [ -S "$1" ] && guest=1
    # An installed plugin starts the coordinator without Python before it, for as long as swarm_hook_core/session_events.py
    # allows.
    case $event in session_start) within=5 ;; turn) within=2 ;; session_end) within=0.9 ;; esac
    [ ! "${guest:-}" ] || within=
    launcher=$here/../bin/swarm-mcp
    if [ "$within" ] && [ -x "$given" ] && [ -z "${SWARM_MCP_BIN:-}" ] && [ -r "$launcher" ]; then
        { (set -- hook "$event" --runtime "$client" --within "$within"; . "$launcher"); killed=$?; } 2>/dev/null
        [ "$killed" = 0 ] && exit
        [ "$killed" -gt 128 ] || killed=  # it has not begun: the payload is still unread
    fi
    [ ! "$alone" ] || killed=${killed:-alone}
    set -- "$client" "$event" $killed
fi

start() {
    [ -x "$python" ] && [ -r "$script" ] || return
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
