# Runs the first `swarm-mcp` or `swarm-locks` on PATH that is ours, with the words given: as the plugin's MCP server, for
# git hooks, or in a session's shell that has no such command. Where there is none it runs the release that uv has fetched
# for this plugin (swarm_hook_core/own_release.py); it never fetches anything itself.
# There is another program of that name, so what would be run is looked at first, as swarm_hook_core/coordinator.py does.
is_ours() {
    grep -q 'swarm_mcp\.cli\.main' "$1" 2>/dev/null && return
    { read -r line <"$1"; } 2>/dev/null || line=
    case $line in '#!'*python*) return 1 ;; esac
    case $(SWARM_SAY_BACK=$$ "$1" --version </dev/null 2>/dev/null) in
        "swarm-mcp "*" $$") return 0 ;;
    esac
    return 1
}

other=
set -f
IFS=:
for folder in $PATH; do
    for name in swarm-mcp swarm-locks; do
        candidate=$folder/$name
        [ -n "$folder" ] && [ -f "$candidate" ] && [ -x "$candidate" ] || continue
        if is_ours "$candidate"; then
            unset IFS
            set +f
            exec "$candidate" "$@"
        fi
        other=${other:-$candidate}
    done
done
unset IFS
set +f

here=${0%/*} state= version=
[ -r "$here/state.sh" ] && . "$here/state.sh"
while read -r name equals value; do
    [ "$name" = __version__ ] && version=${value#?} && version=${version%?} && break
done 2>/dev/null <"$here/../swarm_hook_core/__init__.py"
fetched=$state/fetched/swarm-mcp-$version
case ${SWARM_UVX:-} in
    [Oo]ff | OFF) ;;
    *) [ -n "$state" ] && [ -f "$fetched" ] && [ -x "$fetched" ] && exec "$fetched" "$@" ;;
esac

if [ -n "$other" ]; then
    echo "swarm: $other is another program of that name, and ours is not on PATH" >&2
else
    echo "swarm: swarm-mcp is not on PATH" >&2
fi
echo "swarm: the start of a session says whether it is being fetched (with uv); or install it yourself" >&2
echo "swarm: (pipx install swarm-locks), then start a new session" >&2
exit 1
