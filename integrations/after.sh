# After a shell or MCP call: starts the hook given as arguments, unless no call is being watched (see
# swarm_hook_core/watching/watch.py). That is nearly always so, and then nothing but this shell has run.
case ${SWARM_STATE_DIR:-} in
    /*) state=$SWARM_STATE_DIR ;;
    ?*) state= ;;
    *)  case ${XDG_STATE_HOME:-} in
            /*) state=$XDG_STATE_HOME/swarm-mcp ;;
            [[:space:]]*) state= ;;
            *)  state=${HOME:+$HOME/.local/state/swarm-mcp}
                [ -d "${HOME:-}/Library" ] && [ ! -d /proc/self ] && state="$HOME/Library/Application Support/swarm-mcp" ;;
        esac ;;
esac
# A place that only Python works out (relative, `~`) is left to it.
# Codex calls a hook failed that leaves its payload unread, so that is read all the same.
[ -n "$state" ] && [ ! -d "$state/watched" ] && exec cat >/dev/null
exec "$@"
