#!/bin/sh
''':'
# The command `swarm-mcp`. The shell reads it first, then Python. In a virtual environment Python starts without `site`,
# which takes longer than many a command. Elsewhere the installer's own script knows its Python.
own=$0
while [ -L "$own" ]; do
    link=$(PATH="$PATH:/usr/bin:/bin" readlink "$own") || break
    case $own in
        */*) bin=${own%/*} ;;
        *) bin=. ;;
    esac
    case $link in
        /*) own=$link ;;
        *) own=$bin/$link ;;
    esac
done
case $own in
    */*) bin=${own%/*} ;;
    *) bin=. ;;
esac
if [ -f "$bin/../pyvenv.cfg" ] && [ -x "$bin/python" ]; then
    exec "$bin/python" -S "$own" "$@"
fi
[ -x "$bin/swarm-locks" ] && exec "$bin/swarm-locks" "$@"
exec swarm-locks "$@" # this file is a copy
'''
import sys

if not getattr(sys.flags, "safe_path", False):
    del sys.path[0]  # the folder of this script
root = sys.executable.rpartition("/bin/")[0]
packages = f"{root}/lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
sys.path.insert(-3, packages)  # before Python's own folders, which take longer to look through
try:
    from swarm_mcp.start import begin_alone

    is_alone = begin_alone(packages)
except ImportError:  # the packages are elsewhere, such as in a checkout
    sys.modules.pop("swarm_mcp", None)  # a folder without them is a package, too
    is_alone = False
if not is_alone:
    sys.path.remove(packages)
    import site

    site.main()
from swarm_mcp.cli.main import main  # noqa: E402

code = main()
if is_alone:
    from posix import _exit

    _exit(code)  # `main` has flushed its output; to take the interpreter down would cost a tenth of the command
sys.exit(code)
