# Where no hook can check a call: whether a person wants it denied then (SWARM_FAIL=closed), as far as a shell can tell.
# swarm_hook_core/fail_closed.py does the same, and knows more, where Python runs. Read only then: no check pays for it.

# Sets `text` to $1 without its blanks.
without_blanks() {
    set -f
    text=
    for word in $1; do text=$text$word; done
    set +f
}

# What config.json says, in `fail`: of the folder we are in, or the nearest over it up to its git root, else of the user.
# It is looked at as text: object by object, as `swarm-mcp auto` and people write it.
look_into_settings() {
    case ${SWARM_CONFIG_DIR:-} in
        /*) settings=$SWARM_CONFIG_DIR ;;
        ?*) settings=${HOME:-}/${SWARM_CONFIG_DIR#"~/"} ;;
        *)  case ${XDG_CONFIG_HOME:-} in
                /*) settings=$XDG_CONFIG_HOME/swarm-mcp ;;
                *)  settings=${HOME:-}/.config/swarm-mcp
                    [ -d "${HOME:-}/Library" ] && [ ! -d /proc/self ] &&
                        settings="$HOME/Library/Application Support/swarm-mcp" ;;
            esac ;;
    esac
    settings=$settings/config.json whole=
    [ -f "$settings" ] || return
    while read -r line || [ -n "$line" ]; do
        without_blanks "$line"
        whole=$whole$text
    done <"$settings"
    user=$whole checkouts=
    case $whole in
        *'"checkouts":{}'*) ;;
        *'"checkouts":{'*)
            checkouts=${whole#*'"checkouts":{'}
            user=${whole%%'"checkouts":{'*}${checkouts#*'}}'}
            checkouts=${checkouts%%'}}'*} ;;
    esac
    case $user in *'"fail":"closed"'*) fail=closed ;; esac
    folder=$(pwd -P)
    while [ -n "$checkouts" ] && [ -n "$folder" ]; do
        without_blanks "$folder"
        case $checkouts in
            *"\"$text\":{"*)
                checkouts=${checkouts#*"\"$text\":{"}
                case ${checkouts%%'}'*} in
                    *'"fail":"closed"'*) fail=closed ;;
                    *'"fail":"open"'*) fail=open ;;
                esac
                return ;;
        esac
        [ ! -e "$folder/.git" ] || return
        folder=${folder%/*}
    done
}

# Whether calls are to be denied that nobody can check, of the client whose runtime.py is in the folder $1.
# `whose` says who wants that, `way` what ends it.
fails_closed() {
    own=NONE fail=
    while read -r line; do
        case $line in env_prefix=\"*) own=${line#*\"} own=${own%%\"*} ;; esac
    done 2>/dev/null <"$1/runtime.py"
    for name in "SWARM_${own}_FAIL" SWARM_FAIL; do
        eval "given=\${$name:-}"
        case $given in
            [Cc]losed | CLOSED) fail=closed whose="$name is closed" way="start the client without $name" ;;
            [Oo]pen | OPEN) fail=open ;;
            *) continue ;;
        esac
        break
    done
    if [ -z "$fail" ]; then
        way='change that to open' whose='fail is closed in config.json of the configuration folder of swarm-mcp'
        look_into_settings 2>/dev/null
    fi
    [ "$fail" = closed ] || return 1
    # Where nobody has ever used swarm there is nothing to check against.
    case ${SWARM_DB_PATH:-} in
        '') store=${HOME:-}/.swarm-mcp/swarm.db ;;
        /*) store=$SWARM_DB_PATH ;;
        *)  store=${HOME:-}/${SWARM_DB_PATH#"~/"} ;;
    esac
    [ -e "$store" ] || [ -L "$store" ] || [ -n "${SWARM_MCP_BIN:-}" ]
}

# Whether calls of the tool $1 may write files: those of `readers` do not. Of other servers' tools those whose name has a
# word for it may, of which swarm_hook_core/mcp_writers/table.py knows more; without a name it may.
may_write() {
    [ -z "$1" ] && return
    case " $readers " in *" $1 "*) return 1 ;; esac
    case $1 in
        mcp__*swarm*__*) return 1 ;;
        mcp__*[Ww]rit* | mcp__*[Ee]dit* | mcp__*[Cc]reat* | mcp__*[Tt]ouch* | mcp__*[Uu]pdat* | mcp__*[Aa]ppend* | \
        mcp__*[Mm]odif* | mcp__*[Ss]av* | mcp__*[Pp]ut* | mcp__*[Pp]atch* | mcp__*[Dd]elet* | mcp__*[Rr]emov* | \
        mcp__*[Ii]nsert* | mcp__*[Ii]nlin* | mcp__*[Rr]eplac* | mcp__*[Tt]runcat* | mcp__*[Ff]ormat* | mcp__*[Aa]ppl* | \
        mcp__*[Zz]ip* | mcp__*[Aa]rchiv* | mcp__*[Mm]ov* | mcp__*[Rr]enam* | mcp__*[Cc]opy* | mcp__*[Mm]k* | \
        mcp__*[Mm]ake* | mcp__*[Cc]ell* | mcp__*[Nn]otebook* | mcp__*[Pp]rocess* | mcp__*[Ss]end* | mcp__*[Bb]ash* | \
        mcp__*[Ss]hell* | mcp__*[Cc]ommand* | mcp__*[Tt]erminal* | mcp__*[Ee]xec* | mcp__*[Rr]un* | mcp__*[Pp]ython* | \
        mcp__*[Gg]it_* | mcp__*[Aa]dd* | mcp__*[Cc]onvert* | mcp__*[Cc]lear* | mcp__*[Ss]hot* | mcp__*[Ss]nap* | \
        mcp__*browser_[!c]* | mcp__*browser_con* | mcp__*trace* | mcp__*screencast* | mcp__*rm | mcp__*unlink* | mcp__*mv | \
        mcp__*trash* | mcp__*[Hh]ash* | mcp__*[Uu]ndo* | mcp__*[Rr]estore* | mcp__*imports | mcp__*pwsh* | mcp__*repl | \
        mcp__*[Tt]ool* | mcp__*set_*) return 0 ;;
        mcp__*) return 1 ;;
    esac
}

# What the model is told, in words without quotes: $1 is why nobody could check, $2 what mends it.
denial() {
    words="swarm: this call was denied because it could not be checked against locks of other sessions ($1), and $whose."
    printf %s "$words Nothing was written. Tell the user: $2 mends it; to let writes pass unchecked, $way."
}
