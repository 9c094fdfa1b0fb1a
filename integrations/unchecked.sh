# Answers if no hook can run. hook.sh and the guards of hs read this file only then.

# Sets `closed` to the variable or file that asks for denials (SWARM_FAIL=closed, as swarm_hook_core/fail_closed.py has
# it), of a client whose runtime.py is in the folder $1, or to nothing. A `closed` anywhere in config.json counts. Nothing
# is denied before swarm was ever used here.
find_closed() {
    closed= prefix=ANY store=${SWARM_DB_PATH:-.swarm-mcp/swarm.db}
    while read -r line; do
        case $line in env_prefix=\"*) prefix=${line#*\"} prefix=${prefix%%\"*} ;; esac
    done 2>/dev/null <"$1/runtime.py"
    case $store in /*) ;; *) store=${HOME:-}/${store#"~/"} ;; esac
    [ -e "$store" ] || [ -L "$store" ] || [ "${SWARM_MCP_BIN:-}" ] || return
    for name in "SWARM_${prefix}_FAIL" SWARM_FAIL; do
        eval "wish=\${$name:-}"
        case $wish in [Cc]losed | CLOSED) closed=$name ;; [Oo]pen | OPEN) ;; *) continue ;; esac
        return
    done
    config=${SWARM_CONFIG_DIR:-${XDG_CONFIG_HOME:-.config}/swarm-mcp}
    case $config in /*) ;; *) config=${HOME:-}/${config#"~/"} ;; esac
    for config in "$config/config.json" "${HOME:-}/Library/Application Support/swarm-mcp/config.json"; do
        [ -f "$config" ] && while read -r line || [ "$line" ]; do
            case $line in *'"fail": "closed"'* | *'"fail":"closed"'*) closed='fail in config.json' ;; esac
        done <"$config"
    done
}

# Prints the words of a denial: $1 is the reason, $2 mends it, $3 is `closed`. They hold no quotation mark.
denial() {
    words="swarm: this call was denied because it could not be checked against locks of other sessions ($1), and $3 is"
    echo "$words closed. Nothing was written. Tell the user: $2; to let writes pass unchecked, start the client without $3."
}

# Answers an event that hook.sh could not have answered. answers.txt holds the clients' forms. At a start its
# first %s is for the user, the second for the model.
unchecked() {
    [ -r "$script" ] && { [ "$given" ] || [ ! -x "$python" ]; } || given=broken
    mend='swarm-mcp install mends it'
    case $given in
        broken) why='files of the plugin are missing or broken' ;;
        ?*) why="its Python (${given##*[!A-Za-z0-9_./+@-]*}) is gone or broken" ;;
        *)  why='no Python 3.9 or newer, with SQLite, was found on PATH'
            mend='install one, for example with: sudo apt install python3, brew install python, or uv python install' ;;
    esac
    PATH=${PATH:-}:/usr/bin:/bin
    form=$(sed -n "s/^$event //p" "$here/$client/answers.txt" "$here/answers.txt" 2>/dev/null | head -n 1)
    cat >/dev/null  # Codex calls a hook failed that leaves its payload unread
    case $event in
        session_start)
            words="swarm: file locks are NOT enforced in this session, because its hooks cannot run: $why. To mend it:"
            words="$words $mend. Then start a new session."
            model="$words Until then writes are not checked: other sessions may be working in these files."
            printf "$form\n" "$words" "$model Tell the user." ;;
        pre_tool_use)
            find_closed "$here/$client"
            [ -z "$closed" ] || printf "$form\n" "$(denial "$why" "$mend" "$closed")" ;;
    esac
}
