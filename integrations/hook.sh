# Starts a hook of the plugin: /bin/sh hook.sh CLIENT EVENT [PYTHON]
#
# A session's start, turns and end concern the coordinator alone: where this is an installed plugin, it is started at
# once, and nothing else. Where it cannot be started, and for every other event, PYTHON runs the plugin's own hook.
#
# PYTHON is what `swarm-mcp install` has filled in. Without it an interpreter that can run the hooks is looked for at a
# session's start, and remembered in the state folder: never here, since a client distrusts a plugin that changes. The
# hook passes in silence where there is none, and the session's start says so, to the user and to the model. As PYTHON,
# `broken` says that the plugin's own files cannot be run.
# Sessions that an earlier release has wired say CLIENT and EVENT as the path of a script, .../CLIENT/hooks/EVENT.py.
case $1 in
    */hooks/*.py) client=${1%/hooks/*} event=${1##*/} given=${2:-}
                  client=${client##*/} event=${event%.py} ;;
    *) client=$1 event=$2 given=${3:-} ;;
esac
here=${0%/*} state= trouble=

# How long the coordinator may take is as swarm_hook_core/lifecycle.py has it. It is killed then, and nothing is lost.
launcher=$here/../bin/swarm-mcp within=
case $event in session_start) within=5 ;; turn) within=2 ;; session_end) within=0.9 ;; esac
# Where another client runs what is wired for Claude Code (swarm_hook_core/guests.py), the hook has to see to it.
[ "$client" = claude-code ] && [ -n "${CURSOR_VERSION:-}${COPILOT_PROJECT_DIR:-}${GROK_HOOK_EVENT:-}" ] && within=
if [ -n "$within" ] && [ -n "$given" ] && [ -z "${SWARM_MCP_BIN:-}" ] && [ -r "$launcher" ]; then
    { (set -- hook "$event" --runtime "$client" --within "$within" && . "$launcher"); trouble=$?; } 2>/dev/null
    [ "$trouble" = 0 ] && exit
    # Killed: it has read the payload, and a second attempt would be a second wait. Else it has never begun.
    [ "$trouble" -gt 128 ] || trouble=
fi

[ -r "$here/state.sh" ] && . "$here/state.sh"

# Codex calls a hook failed that leaves its payload unread.
pass() {
    PATH=${PATH:-}:/usr/bin:/bin
    exec cat >/dev/null
}

# Nothing can check this call, for the reason $1, which $2 mends: it passes, unless a person has asked for the opposite.
unchecked() {
    [ "$event" = pre_tool_use ] && [ -r "$here/closed.sh" ] && . "$here/closed.sh" && fails_closed "$here/$client" ||
        pass
    PATH=${PATH:-}:/usr/bin:/bin
    tool=$(dd bs=65536 count=1 2>/dev/null)  # the payload's beginning, as far as one read goes
    case $tool in
        *"\"$tool_key\""*) tool=${tool#*"\"$tool_key\""} tool=${tool#*'"'} tool=${tool%%'"'*} ;;
        *) tool= ;;
    esac
    may_write "$tool" && printf "$denial_form\n" "$(denial "$1" "$2")"
    pass
}

# What clients take for an answer, as printf fills it in, the payload's key of the tool's name, and names of tools that
# write nothing, with blanks between them; a client with other words has them in its own answers.sh.
tool_key=tool_name readers=
output='"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "%s"'
denial_form="{\"hookSpecificOutput\": {$output}}"
output='"hookEventName": "SessionStart", "additionalContext": "%s"'
greeting_form="{\"systemMessage\": \"%s\", \"hookSpecificOutput\": {$output}}"
[ -r "$here/$client/answers.sh" ] && . "$here/$client/answers.sh"

# After a call: nearly always none is being watched (swarm_hook_core/watching/watch.py), nobody has anything to be told
# yet (swarm_hook_core/unheard.py) and nobody awaits its end (swarm_hook_core/traces/endings.py), so that there is nothing
# to start.
[ "$event" = post_tool_use ] && [ -n "$state" ] && [ ! -d "$state/watched" ] && [ ! -d "$state/unheard" ] &&
    [ ! -d "$state/awaited" ] && pass

# The real interpreter behind the command $1, if it can run the hooks: a version manager's stand-in costs 100 ms.
real_one() {
    "$1" -E -s -S -c 'import os, sys, _sqlite3
if sys.version_info >= (3, 9): print(os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable))
' </dev/null 2>/dev/null
}

# Sets python to the first that there is, and remembers it, or that there is none.
find_python() {
    { read -r line <"$(command -v swarm-mcp || command -v swarm-locks)"; } 2>/dev/null || line=
    case $line in '#!'*/python*) own=${line#??} ;; *) own= ;; esac
    for candidate in python3 python3.14 python3.13 python3.12 python3.11 python3.10 python3.9 python "$own" \
        /usr/bin/python3 /usr/local/bin/python3 /opt/homebrew/bin/python3; do
        # By its whole name, which it needs to find itself where PATH is unset and the shell has one of its own.
        candidate=$(command -v "$candidate" 2>/dev/null) || continue
        python=$(real_one "$candidate")
        [ -f "$python" ] && [ -x "$python" ] && break
        python=
    done
    [ -n "$state" ] || return
    new=$state/python.$$
    (umask 077 && mkdir -p "$state" && echo "$python" >"$new" && mv -f "$new" "$state/python") 2>/dev/null
}

start() { "$python" -E -s -S "$here/hook.py" "$client" "$event" $trouble 2>/dev/null; }

python=$given
known=
[ -n "$given" ] || { [ -n "$state" ] && { read -r python <"$state/python"; } 2>/dev/null && known=yes; }

if [ "$event" != session_start ]; then
    [ -x "$python" ] || [ -n "$given" ] || { [ -n "$known" ] && [ -z "$python" ]; } || find_python
    # Python's status for a script that is missing is what clients read as a denial.
    [ -r "$here/hook.py" ] && [ "$given" != broken ] ||
        unchecked 'files of the plugin are missing or broken' 'installing the plugin anew (swarm-mcp install)'
    [ -x "$python" ] ||
        unchecked 'its hook has no Python to run with' "${given:+swarm-mcp install, or }installing Python 3.9 or newer"
    exec "$python" -E -s -S "$here/hook.py" "$client" "$event" $trouble
fi

[ -x "$python" ] && start && exit
if [ -n "$given" ]; then
    case $given in *[!A-Za-z0-9_./+@-]*) given="that it was installed with" ;; esac
    why="the Python $given is gone or broken" mend='run: swarm-mcp install'
else
    find_python
    [ -n "$python" ] && start && exit
    why='no Python 3.9 or newer, with SQLite, was found on PATH'
    mend='install one, for example with: sudo apt install python3, brew install python, or uv python install --default'
fi
(pass)
words="swarm: file locks are NOT enforced in this session, because its hooks cannot run: $why."
words="$words To mend it $mend. Then start a new session."
model="$words Until then writes are not checked: other sessions may be working in these files. Tell the user."
printf "$greeting_form\n" "$words" "$model"
