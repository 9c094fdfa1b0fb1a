"""Ruby."""

from swarm_hook_core.shell.programs.scripts.tokens import NAME, Language

_OF_PATHNAMES = ("write", "binwrite", "delete", "unlink", "rmtree", "rename", "truncate", "make_link", "make_symlink")

_RUBY_UTILS = {
    "rm": "writes",
    "rm_f": "writes",
    "remove": "writes",
    "rm_r": "trees",
    "rm_rf": "trees",
    "remove_dir": "tree 0",
    "remove_entry": "tree 0",
    "remove_entry_secure": "tree 0",
    "remove_file": "write 0",
    "mv": "move into",
    "move": "move into",
    "cp": "copy",
    "copy": "copy",
    "copy_file": "write 1",
    "cp_r": "copy tree",
    "install": "copy",
    "touch": "writes",
    "mkdir": "make all",
    "mkdir_p": "make all",
    "makedirs": "make all",
    "ln": "copy",
    "ln_s": "copy",
    "ln_sf": "copy",
    "symlink": "copy",
    "chmod": "write 1",
    "chmod_R": "tree 1",
    "chown": "write 2",
    "cd": "chdir",
}
_RUBY_FILE = {
    "write": "write 0",
    "binwrite": "write 0",
    "open": "open 1",
    "new": "open 1",
    "delete": "writes",
    "unlink": "writes",
    "rename": "move",
    "truncate": "write 0",
    "symlink": "write 1",
    "link": "write 1",
    "chmod": "writes but 0",
    "utime": "writes but 01",
    "mkfifo": "write 0",
}
LANGUAGE = Language(
    "ruby",
    comments=(("#", "\n"), ("\n=begin", "\n=end")),
    raw="'",
    cooked='"`',
    interpolated='"`',
    holes=("#{",),
    names=r"(?:\.|&\.|@@?|\$|::)?[A-Za-z_]\w*[?!]?(?:(?:\.|&\.|::)[A-Za-z_]\w*[?!]?)*",
    joins=("+",),
    calls={
        **{f"File.{name}": act for name, act in _RUBY_FILE.items()},
        **{f"IO.{name}": act for name, act in _RUBY_FILE.items() if name in ("write", "binwrite")},
        **{f"FileUtils.{name}": act for name, act in _RUBY_UTILS.items()},
        "open": "open 1",
        ".reopen": "open 1",
        "Kernel.open": "open 1",
        "Dir.mkdir": "make 0",
        "Dir.rmdir": "write 0",
        "Dir.delete": "write 0",
        "Dir.unlink": "write 0",
        "Dir.chdir": "chdir",
        "system": "shell",
        "exec": "shell",
        "spawn": "shell",
        "IO.popen": "shell",
        "Open3.capture2": "shell",
        "Open3.capture2e": "shell",
        "Open3.capture3": "shell",
        "eval": "code",
        "load": "code",
        "require_relative": "code",
        "instance_eval": "code",
    },
    shell_quote="`",
    has_regex=True,
    bare_calls=True,
    newline_ends=True,
    heredoc=r"<<[~-]?(?P<q>['\"`]?)(?P<word>[A-Z_a-z]\w*)(?P=q)",
)


def writes_by_pathname(found: list) -> bool:
    """Whether a method of a ``Pathname`` may write: nobody follows what the path is."""
    names = [token.value for token in found if token.kind == NAME]
    return any(name.startswith("Pathname") for name in names) and any(
        last in _OF_PATHNAMES and owner not in ("File", "IO", "FileUtils")
        for owner, _, last in (name.rpartition(".") for name in names)
    )
