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
from posix import _exit, listdir

SHORT = ("lock", "unlock", "locks", "ls", "status", "renew", "why", "--version", "-v", "-V", "version")


def packages() -> str:
    """Return the folder of packages, where a short command needs no more than its path; empty where `site` does more.

    More is: another kind of command, packages of the system or of a checkout, and other programs' hooks into `site`.
    """
    root = sys.executable.rpartition("/bin/")[0]
    found = f"{root}/lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
    try:
        if sys.argv[1] not in SHORT or "__init__.py" not in listdir(found + "/swarm_mcp"):
            return ""
        with open(root + "/pyvenv.cfg", encoding="utf-8") as file:
            if "include-system-site-packages = false" not in file.read():
                return ""
        paths = [name for name in listdir(found) if name.endswith(".pth")]
    except (IndexError, OSError, ValueError):
        return ""
    return "" if set(paths) - {"distutils-precedence.pth", "_virtualenv.pth"} else found


found = packages()
if found:
    if not getattr(sys.flags, "safe_path", False):
        del sys.path[0]  # the folder of this script
    sys.path.append(found)
    from swarm_mcp.start import begin

    begin()
else:
    import site

    site.main()
from swarm_mcp.cli.main import main  # noqa: E402

code = main()
if found:
    _exit(code)  # `main` has flushed its output; to take the interpreter down would cost a tenth of the command
sys.exit(code)
