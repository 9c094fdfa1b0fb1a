# Sets `state` to the state folder, as swarm_hook_core/state.py has it; to nothing where only Python can work it out (a
# relative path, `~`).
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
