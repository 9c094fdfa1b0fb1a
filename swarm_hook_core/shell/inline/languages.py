"""The syntax of JavaScript, Ruby, Perl, PHP and Lua for the scanner, and their calls that write.

The tables map an action to its calls; N is the place of the argument with the path:

    write N     argument N is changed, or made     writes N    it and all after it, lists too
    replace N   argument N is made anew
    remove N    argument N is removed, with all    removes N   it and all after it, lists too
                that is under it
    tree N      argument N and all under it is     trees N     it and all after it, lists too
                changed
    make N      argument N becomes a folder        makes N     it and all after it, lists too
    read N      argument N is read: a later replacement of it is made from it
    move        argument 0 becomes argument 1      copy        argument 1, or argument 0's name in it, is made anew
    move into   the same, or goes into it          copy tree   the same with all that is in argument 0
    link        as copy, but an existing file stays
    open        argument 0 is written if the mode in argument 1 says so; `open perl`: in its way
    shell       argument 0 is shell text (more arguments: words)
    words       argument 0 is a program, argument 1 a list of its arguments
    chdir       later commands run in the folder of argument 0
    code        other code is run
    path        a path is written that the call does not name
"""

from __future__ import annotations

from typing import Any

from swarm_hook_core.shell.inline.tokens import REGEX, Language, delimited, quoted

APOSTROPHE, QUOTE = "'", '"'
CODE_IN_BRACES = r"\{(?P<code>(?:[^{}]|\{[^{}]*\})*)\}"


def _calls(table: dict[str, Any], prefix: str = "", suffix: str = "") -> dict[str, Any]:
    return {f"{prefix}{name}{suffix}": action for action, names in table.items() for name in names.split()}


_NODE_FILES = {
    "write 0": "appendFile chmod lchmod chown lchown utimes lutimes ensureFile",
    "write 1": "symlink link",
    "replace 0": "writeFile createWriteStream truncate writeJson writeJSON outputFile outputJson outputJSON",
    "replace 1": "copyFile",
    "remove 0": "unlink rm rmdir emptyDir remove",
    "make 0": "mkdir mkdtemp ensureDir mkdirp mkdirs",
    "read 0": "readFile createReadStream readJson readJSON",
    "move": "rename move",
    "copy tree": "cp copy",
    "open": "open",
}
_NODE_COMMANDS = {"shell": "exec execSync", "words": "execFile execFileSync spawn spawnSync", "code": "fork"}
_FS = {**_calls(_NODE_FILES), **_calls(_NODE_FILES, suffix="Sync")}
# module -> calls of its functions
NODE_MODULES = {
    **dict.fromkeys(("fs", "fs/promises", "fs-extra", "graceful-fs"), _FS),
    "child_process": _calls(_NODE_COMMANDS),
}
_DENO = {
    "write 0": "chmod chown utime",
    "write 1": "symlink link",
    "replace 0": "writeTextFile writeFile truncate create",
    "replace 1": "copyFile",
    "remove 0": "remove",
    "read 0": "readTextFile readFile",
    "make 0": "mkdir",
    "move": "rename",
    "open": "open",
}
_WITHOUT_MODULE = {  # unmistakable names, on any object
    "write 0": "appendFile",
    "replace 0": "writeFile createWriteStream",
    "replace 1": "copyFile",
    "shell": "execSync",
    "words": "spawnSync execFileSync",
}
JAVASCRIPT = Language(
    "javascript",
    {
        **_calls(_WITHOUT_MODULE, "."),
        **_calls(_NODE_FILES, ".", "Sync"),
        **_calls(_DENO, "Deno."),
        **_calls(_DENO, "Deno.", "Sync"),
        "Bun.write": "replace 0",
        "Bun.file": "read 0",
        "process.chdir": "chdir",
        "eval": "code",
        "Function": "code",
    },
    names=r"\.?#?[A-Za-z_$][\w$]*(?:(?:\?\.|\.)[A-Za-z_$#][\w$]*)*",
    joins="+",
    comments=r"//[^\n]*|/\*[\s\S]*?(?:\*/|\Z)",
    patterns={"plain": f"{quoted(APOSTROPHE)}|{quoted(QUOTE)}", "cooked": quoted("`", r"\$")},
    own={"pattern": REGEX},
    hole=rf"\${CODE_IN_BRACES}",
    newline_ends=True,
)

_RUBY_FILE = {
    "write 0": "mkfifo",
    "write 1": "symlink link",
    "replace 0": "write binwrite truncate",
    "removes 0": "delete unlink",
    "read 0": "read binread readlines foreach",
    "writes 1": "chmod lchmod",
    "writes 2": "chown lchown utime",
    "move": "rename",
    "open": "open new",
}
_RUBY_FILE_UTILS = {
    "write 1": "chmod",
    "write 2": "chown",
    "writes 0": "touch",
    "replace 1": "copy_file",
    "remove 0": "remove_file remove_dir remove_entry remove_entry_secure rmtree",
    "tree 1": "chmod_R",
    "tree 2": "chown_R",
    "removes 0": "rm rm_f remove safe_unlink rm_r rm_rf rmdir",
    "makes 0": "mkdir mkdir_p makedirs mkpath",
    "move into": "mv move",
    "copy": "cp copy install ln_sf",
    "link": "ln ln_s link symlink",
    "copy tree": "cp_r copy_entry",
    "chdir": "cd chdir",
}
RUBY = Language(
    "ruby",
    {
        **_calls(_RUBY_FILE, "File."),
        **_calls({"replace 0": "write binwrite", "read 0": "read binread readlines foreach"}, "IO."),
        **_calls(_RUBY_FILE_UTILS, "FileUtils."),
        **_calls({"make 0": "mkdir", "remove 0": "rmdir delete unlink", "chdir": "chdir"}, "Dir."),
        **_calls({"open": "open Kernel.open .reopen", "shell": "system exec spawn IO.popen Process.spawn"}),
        **_calls({"shell": "capture2 capture2e capture3 popen2 popen2e popen3 pipeline"}, "Open3."),
        **_calls({"code": "eval load require_relative instance_eval class_eval"}),
    },
    names=r"(?:\.|&\.|@@?|\$|::)?[A-Za-z_]\w*[?!]?(?:(?:\.|&\.|::)[A-Za-z_]\w*[?!]?)*",
    joins="+",
    comments=r"#[^\n]*|(?m:^)=begin[\s\S]*?(?:\n=end|\Z)",
    patterns={"raw": quoted(APOSTROPHE), "cooked": quoted(QUOTE, "#"), "shell": quoted("`")},
    own={
        "words": delimited("%[wi]", "|!"),
        "raw": delimited("%q", "|!"),
        "cooked": delimited("%Q?", "|!"),
        "shell": delimited("%x", "|!"),
        "pattern": f"{delimited('%r', '|!')}|{REGEX}",
    },
    hole=f"#{CODE_IN_BRACES}",
    document=r"<<[~-]?(?P<q>['\"`]?)([A-Z_a-z]\w*)(?P=q)",
    bare_calls=True,
    newline_ends=True,
)
# Writing methods of a ``Pathname``, whose path is not followed.
PATHNAME_METHODS = frozenset(
    "write binwrite delete unlink rmtree rename truncate make_link make_symlink mkpath mkdir rmdir chmod touch".split()
)

_PERL_FILES = {
    "write 0": "append_file edit_file",
    "write 1": "symlink link sysopen",
    "replace 0": "truncate write_file overwrite_file",
    "replace 1": "store nstore lock_store",
    "removes 0": "unlink rmdir remove_tree rmtree File::Path::remove_tree File::Path::rmtree",
    "read 0": "read_file",
    "writes 1": "chmod",
    "writes 2": "chown utime",
    "make 0": "mkdir",
    "makes 0": "make_path mkpath File::Path::make_path File::Path::mkpath",
    "move": "rename",
    "move into": "move mv File::Copy::move File::Copy::mv",
    "copy": "copy cp File::Copy::copy File::Copy::cp",
    "open perl": "open",
    "path": "->spew ->spew_utf8 ->spew_raw ->append ->append_utf8 ->edit ->edit_lines dbmopen tie",
    "shell": "system exec",
    "chdir": "chdir",
    "code": "require do",
}
_OWN, _DELIMITERS = r"(?<![\w$@%&>{:])", "/|!#~^'\"@"
PERL = Language(
    "perl",
    _calls(_PERL_FILES),
    names=r"(?:[$@%&]#?\$*)?[A-Za-z_]\w*(?:::[A-Za-z_]\w*)*|\$\d|->[A-Za-z_]\w*",
    joins=".",
    comments=r"(?<![$@])#[^\n]*|(?m:^)=(?:pod|head)[\s\S]*?(?:\n=cut|\Z)",
    patterns={
        "raw": f"{quoted(APOSTROPHE)}|{delimited(_OWN + 'q', _DELIMITERS)}",
        "cooked": f"{quoted(QUOTE)}|{delimited(_OWN + 'qq', _DELIMITERS)}",
        "shell": f"{quoted('`')}|{delimited(_OWN + 'qx', _DELIMITERS)}",
        "words": delimited(_OWN + "qw", _DELIMITERS),
        "pattern": f"{delimited(_OWN + '(?:m|qr)', _DELIMITERS)}|{delimited(_OWN + '(?:s|tr|y)', _DELIMITERS, True)}",
    },
    own={"pattern": REGEX},
    hole=r"\$\{(?P<braced>\w+)\}|[$@](?P<name>\w+)(?![\w\[{]|->|::)|[$@]\w+",
    document=r"<<~?(?P<q>['\"]?)([A-Z_a-z]\w*)(?P=q)",
    bare_calls=True,
)

_PHP_FILES = {
    "write 0": "touch chmod chown chgrp lchown lchgrp",
    "write 1": "symlink link",
    "replace 0": "file_put_contents",
    "replace 1": "copy move_uploaded_file imagepng imagejpeg imagegif imagewebp",
    "remove 0": "unlink rmdir",
    "read 0": "file_get_contents file",
    "make 0": "mkdir",
    "move": "rename",
    "open": "fopen gzopen bzopen SplFileObject dba_open",
    "shell": "system exec shell_exec passthru popen proc_open pcntl_exec",
    "chdir": "chdir",
    "code": "eval include include_once require require_once",
}
PHP = Language(
    "php",
    _calls(_PHP_FILES),
    names=r"\$?\\?[A-Za-z_][\w\\]*(?:::\$?[A-Za-z_]\w*)*",
    joins=".",
    comments=r"(?://|#)[^\n]*|/\*[\s\S]*?(?:\*/|\Z)",
    patterns={"raw": quoted(APOSTROPHE), "cooked": quoted(QUOTE), "shell": quoted("`")},
    hole=r"\{(?P<code>\$[^{}]*)\}|\$\{(?P<braced>\w+)\}|\$(?P<name>\w+)(?![\w\[]|->)|\$\w+",
    document=r"<<<[ \t]*(?P<q>['\"]?)([A-Z_a-z]\w*)(?P=q)",
)

_LUA_FILES = {
    "write 0": "lfs.touch",
    "write 1": "lfs.link",
    "replace 0": "io.output",
    "remove 0": "os.remove lfs.rmdir",
    "read 0": "io.lines",
    "make 0": "lfs.mkdir",
    "move": "os.rename",
    "open": "io.open",
    "shell": "os.execute io.popen",
    "chdir": "lfs.chdir",
    "code": "dofile loadfile load loadstring",
}
LUA = Language(
    "lua",
    _calls(_LUA_FILES),
    names=r"[:.]?[A-Za-z_]\w*(?:[.:][A-Za-z_]\w*)*",
    joins="..",
    comments=r"--\[\[[\s\S]*?(?:\]\]|\Z)|--[^\n]*",
    patterns={"raw": r"\[\[[\s\S]*?(?:\]\]|\Z)", "plain": f"{quoted(APOSTROPHE)}|{quoted(QUOTE)}"},
    newline_ends=True,
)

LANGUAGES = {"javascript": JAVASCRIPT, "ruby": RUBY, "perl": PERL, "php": PHP, "lua": LUA}
