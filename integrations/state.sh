# Finds the `state` folder, and ends a hook after a call that needs no check. hook.sh and hooks of an installed plugin run
# it in their own shell, with `client` and `event` set.

# The folder is the one of swarm_hook_core/state.py. It is empty if only Python can tell.
state=${SWARM_STATE_DIR:-${XDG_STATE_HOME:-${HOME:-.}/.local/state}/swarm-mcp}
[ "${SWARM_STATE_DIR:-}${XDG_STATE_HOME:-}" ] || [ -d /proc/self ] || [ ! -d "${HOME:-}/Library" ] ||
    state="$HOME/Library/Application Support/swarm-mcp"
case $state in /*) ;; *) state= ;; esac

if [ "$event" = post_tool_use ] && [ "$state" ]; then
    # The end of a call, for `Trail.leave`; plugins in their client's process mark it themselves. A mark that is left is
    # of a call that wrote: of some clients later calls only looked. Some start hooks from a shell more.
    ended=$PPID
    case $client in auggie | copilot | cursor | gemini | grok | letta | qwen)
        read -r _ between _ over _ <"/proc/$PPID/stat"
        case ${between:-} in *sh\)) ended=$over ;; esac
    esac 2>/dev/null
    case $client in
        opencode | kilo | pi | omp | cline | hermes) ended= ;;
        claude-code | codex) ;;
        *) [ ! -e "$state/ended/$ended" ] || ended= ;;
    esac
    # A pipe would be waited for.
    [ ! "$ended" ] || [ ! -d "$state/ended" ] || [ -p "$state/ended/$ended" ] || true 2>/dev/null >"$state/ended/$ended"
    # A check is needed only if a call is watched, words wait for a session, or the call's end is awaited.
    [ -d "$state/watched" ] || [ -d "$state/unheard" ] || [ -d "$state/awaited" ] ||
        { PATH=${PATH:-}:/usr/bin:/bin; exec cat >/dev/null; }
fi
