# Every guard tool: asks before `--exec`, and leaves all else to the tool of the same name below it.
#
# After any fault here the call goes on to that tool, unless a person has asked for the opposite (SWARM_FAIL=closed).
name=${0##*/}
self=$0
[ ! -L "$self" ] || self=$(readlink "$self")
case $self in /*) ;; *) self=${0%/*}/$self ;; esac
root=${self%/*}/..

# The tool that would have been called without us: the last before us in order of priority.
below=
set -f
IFS=:
for source in ${HARNESS_SOURCES:-}; do
    candidate=$source/tools/$name
    [ -x "$candidate" ] && [ ! -d "$candidate" ] || continue
    [ "$candidate" -ef "$self" ] && break
    below=$candidate
done
unset IFS
set +f

if [ "${1:-}" != --exec ]; then
    [ -n "$below" ] && exec "$below" "$@"
    exit 1
fi
input=$(cat; printf x)
input=${input%x}

if [ -n "${SWARM_HS_READ_ONLY:-}" ]; then
    printf '%s\n' "swarm: this run may write no file, so $name is closed to it; say what would have to be written"
    exit 1
fi

ask() {
    [ -r "$root/lib/python.sh" ] && . "$root/lib/python.sh" || python=python3
    printf %s "$input" | "$python" -E -s -S "$root/hooks/guard.py" "$1" "$name" "$$" "$0" 2>/dev/null
}

status=0
if [ -n "${HARNESS_SESSION:-}" ]; then
    said=$(ask before)
    status=$?
fi
case $status in
    10)
        printf '%s\n' "$said"
        exit 1 ;;
    0 | 11) ;;
    *)  # it could not be asked
        for unchecked in "$root/unchecked.sh" "$root/../unchecked.sh"; do
            [ -r "$unchecked" ] || continue
            . "$unchecked"
            find_closed "$root"
            [ -z "$closed" ] || { denial 'its guard cannot run' 'swarm-mcp install mends it' "$closed"; exit 1; }
            break
        done ;;
esac
if [ -z "$below" ]; then
    printf '%s\n' "error: tool '$name' not found"
    exit 1
fi
# A sub-agent has the environment of the session that started it, but speaks for itself.
[ -z "${HARNESS_PARENT_SESSION:-}" ] || unset SWARM_MCP_INSTANCE_ID
if [ "$status" -ne 11 ]; then
    exec "$below" --exec <<END
$input
END
fi
# There is something to be said, or to be looked at afterwards.
code=0
"$below" --exec <<END || code=$?
$input
END
more=$(ask after)
for words in "$said" "$more"; do
    [ -z "$words" ] || printf '\n%s\n' "$words"
done
exit "$code"
