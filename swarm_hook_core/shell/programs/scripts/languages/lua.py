"""Lua."""

from swarm_hook_core.shell.programs.scripts.tokens import Language

LANGUAGE = Language(
    "lua",
    comments=(("--[[", "]]"), ("--", "\n")),
    raw="",
    cooked="'\"",
    interpolated="",
    holes=(),
    names=r"[:.]?[A-Za-z_]\w*(?:[.:][A-Za-z_]\w*)*",
    joins=("..",),
    calls={
        "io.open": "open 1",
        "io.output": "write 0",
        "os.remove": "write 0",
        "os.rename": "move",
        "os.execute": "shell",
        "io.popen": "shell",
        "lfs.mkdir": "make 0",
        "lfs.rmdir": "write 0",
        "lfs.touch": "write 0",
        "lfs.chdir": "chdir",
        "dofile": "code",
        "loadfile": "code",
        "load": "code",
        "loadstring": "code",
    },
    newline_ends=True,
)
