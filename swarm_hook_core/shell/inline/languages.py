"""JavaScript, Ruby, Perl, PHP and Lua for the scanner: their calls that write, and the patterns of their tokens."""

from __future__ import annotations

import re

# Under each language and the owner of its names (`-`: none, `.` or `->`: any object) stand the actions of names. A
# number is the place of the argument with the path; after `s` the paths are all from that place on, and lists of them:
#
#     write, replace, remove, tree, make   change it; make it anew; remove it with all in it; change it with all in it;
#                                          make it a folder
#     read                                 read it: a later replacement is made from it
#     move, copy, link, open               argument 0 becomes argument 1, or is copied over it; argument 1 is the mode
#     shell, words                         argument 0 is shell text (more arguments: words), or a program before a list
#     chdir, code, path                    go to that folder; run other code; write a path that the call does not name
CALLS = """
javascript .
    write 0: appendFile chmod lchmod chown lchown utimes utime lutimes ensureFile
    write 1: symlink link
    replace 0: writeFile createWriteStream truncate writeJson writeJSON outputFile outputJson outputJSON writeTextFile
    replace 1: copyFile
    remove 0: unlink rm rmdir emptyDir remove
    make 0: mkdir mkdtemp ensureDir mkdirp mkdirs
    read 0: readFile createReadStream readJson readJSON readTextFile
    move: rename move
    copy: cp copy
    open: open
    shell: exec
    words: execFile spawn
    code: fork
javascript Deno. Bun.
    replace 0: create write
javascript process.
    chdir: chdir
javascript -
    code: eval Function
ruby File. IO.
    write 0: mkfifo
    write 1: symlink link
    replace 0: write binwrite truncate
    removes 0: delete unlink
    read 0: read binread readlines foreach
    writes 1: chmod lchmod
    writes 2: chown lchown utime
    move: rename
    open: open new
ruby IO.
    shell: popen
ruby FileUtils.
    write 1: chmod
    write 2: chown
    writes 0: touch
    replace 1: copy_file
    removes 0: rm rm_f rm_r rm_rf rmdir rmtree remove remove_file remove_dir remove_entry remove_entry_secure
    tree 1: chmod_R
    tree 2: chown_R
    makes 0: mkdir mkdir_p makedirs mkpath
    move: mv move
    copy: cp copy install ln_sf cp_r copy_entry
    link: ln ln_s link symlink
    chdir: cd chdir
ruby Dir.
    make 0: mkdir
    remove 0: rmdir delete unlink
    chdir: chdir
ruby - Kernel.
    open: open
    shell: system exec spawn
    code: eval load require_relative instance_eval class_eval
ruby .
    open: reopen
ruby Process.
    shell: spawn
ruby Open3.
    shell: capture2 capture2e capture3 popen2 popen2e popen3 pipeline
perl -
    write 0: append_file edit_file
    write 1: symlink link sysopen
    replace 0: truncate write_file overwrite_file
    replace 1: store nstore lock_store
    removes 0: unlink rmdir remove_tree rmtree
    writes 1: chmod
    writes 2: chown utime
    read 0: read_file
    make 0: mkdir
    makes 0: make_path mkpath
    move: rename move mv
    copy: copy cp
    open: open
    path: dbmopen tie
    shell: system exec
    chdir: chdir
    code: require do
perl ->
    path: spew spew_utf8 spew_raw append append_utf8 edit edit_lines
perl IO::File->
    path: new
php -
    write 0: touch chmod chown chgrp lchown lchgrp
    write 1: symlink link
    replace 0: file_put_contents
    replace 1: copy move_uploaded_file imagepng imagejpeg imagegif imagewebp
    remove 0: unlink rmdir
    read 0: file_get_contents file
    make 0: mkdir
    move: rename
    open: fopen gzopen bzopen SplFileObject dba_open
    shell: system exec shell_exec passthru popen proc_open pcntl_exec
    chdir: chdir
    code: eval include include_once require require_once
lua lfs.
    write 0: touch
    write 1: link
    remove 0: rmdir
    make 0: mkdir
    chdir: chdir
lua io.
    replace 0: output
    read 0: lines
    open: open
    shell: popen
lua os.
    remove 0: remove
    move: rename
    shell: execute
lua -
    code: dofile loadfile load loadstring
"""


def calls_of(language: str) -> dict[str, str]:
    """Return the rows of `CALLS` for a language: name -> action."""
    calls: dict[str, str] = {}
    owners: list[str] = []
    is_own = False
    for line in CALLS.strip().split("\n"):
        if line[0] != " ":
            name, *owners = line.split()
            is_own = name == language
        elif is_own:
            action, _colon, names = line.strip().partition(": ")
            calls.update(
                {owner.replace("-", "", owner == "-") + one: action for owner in owners for one in names.split()}
            )
    return calls


def _quoted(quote: str, inside: str = "") -> str:
    """Return a pattern of a text between two of `quote`; `inside` begins an expression in braces."""
    plain = rf"{quote}(?:[^{quote}\\]|\\[\s\S])*{quote}"
    if not inside:
        return plain
    braces = r"\{(?:[^{}]|\{[^{}]*\})*\}"
    return rf"{quote}(?:[^{quote}\\{inside[-1]}]|\\[\s\S]|{inside}{braces}|{inside}(?!\{{))*{quote}|{plain}"


def _delimited(kinds: str, times: int = 1) -> str:
    """Return a pattern of quotes by a word: one of `kinds`, then a bracket or a sign; `times` 2: as in ``s/a/b/``."""
    found = []
    for opening, closing in ("()", "[]", "{}", "<>"):
        nested = rf"\{opening}[^\{opening}\{closing}]*\{closing}"
        found.append(rf"(?:\s*\{opening}(?:[^\{opening}\{closing}\\]|\\[\s\S]|{nested})*\{closing}){{{times}}}")
    group = f"sign_{''.join(filter(str.isalnum, kinds))}"
    inside = rf"(?:(?!(?P={group}))[^\\]|\\[\s\S])*(?P={group})"
    found.append(rf"(?P<{group}>[/|!#~^'\"@,]){inside * times}")
    return rf"(?<![\w$@%&>{{:])(?:{kinds})(?:{'|'.join(found)})"


_AT_VALUE = r"(?:(?<=[(,=:;\[!&|?{}~\n])|(?<=return)|(?<=split)|(?<=grep)|(?<=\bif)|(?<=and)|(?<=unless))\s*"
_REGEX = _AT_VALUE + r"/(?![/*])(?:[^/\\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+/"
_BRACES = r"\{(?:[^{}]|\{[^{}]*\})*\}?"
_DOLLAR = r"\{\$[^{}]*\}|\$\{\w+\}|[$@]\w+(?:\[|\{|->|::)?"
_WORDS = r"%[wi](?:\([^()]*\)|\[[^\[\]]*\]|\{[^{}]*\})"
# Language -> its comments; the signs between names; the operator of concatenation; holes in texts; patterns of tokens.
_SYNTAX = {
    "javascript": (r"//[^\n]*|/\*[\s\S]*?(?:\*/|\Z)", r"\?\.|\.", "+", r"\$" + _BRACES, {
        "regex": _REGEX, "raw": f"{_quoted(chr(39))}|{_quoted(chr(34))}", "text": _quoted("`", r"\$"),
    }),
    "ruby": (r"#[^\n]*|(?m:^)=begin[\s\S]*?(?:\n=end|\Z)", r"\.|&\.|::", "+", "#" + _BRACES, {
        "regex": f"{_delimited('%r')}|{_REGEX}", "words": _WORDS, "raw": f"{_quoted(chr(39))}|{_delimited('%q')}",
        "text": f"{_quoted(chr(34), '#')}|%Q?(?:\\([^()]*\\)|\\[[^\\[\\]]*\\]|\\{{[^{{}}]*\\}})",
        "shell": f"{_quoted('`')}|{_delimited('%x')}",
    }),
    "perl": (r"(?<![$@])#[^\n]*|(?m:^)=(?:pod|head)[\s\S]*?(?:\n=cut|\Z)", r"::|->", ".", _DOLLAR, {
        "regex": f"{_delimited('m|qr')}|{_delimited('s|tr|y', 2)}|{_REGEX}", "words": _delimited("qw"),
        "raw": f"{_quoted(chr(39))}|{_delimited('q')}", "text": f"{_quoted(chr(34))}|{_delimited('qq')}",
        "shell": f"{_quoted('`')}|{_delimited('qx')}",
    }),
    "php": (r"(?://|#)[^\n]*|/\*[\s\S]*?(?:\*/|\Z)", r"::|->|\\", ".", _DOLLAR, {
        "raw": _quoted("'"), "text": _quoted('"'), "shell": _quoted("`"),
    }),
    "lua": (r"--\[\[[\s\S]*?(?:\]\]|\Z)|--[^\n]*", r"[.:]", "..", "(?!)", {
        "raw": rf"\[\[[\s\S]*?(?:\]\]|\Z)|{_quoted(chr(39))}|{_quoted(chr(34))}",
    }),
}  # fmt: skip


class Language:
    """The syntax of a language.

    calls    name -> action; `pattern` of its tokens; `hole`: pattern of expressions in texts
    join     its operator of concatenation
    is_bare  True if calls need no parentheses; `has_lines`: True if a statement ends with its line
    """

    def __init__(self, name: str) -> None:
        comments, joins, self.join, hole, kinds = _SYNTAX[name]
        self.name = name
        self.calls = calls_of(name)
        self.is_bare = name in ("ruby", "perl")
        self.has_lines = name not in ("perl", "php")
        word = r"[$@%&]{0,2}#?[A-Za-z_$][\w$]*"
        kinds = {
            "skip": comments,
            **kinds,
            "name": rf"(?:{joins})?{word}(?:(?:{joins}){word})*[?!]?",
            "sign": r"=>|==|!=|=~|\|\||&&|\.\.|\d[\w.]*|\n|\S",
        }
        self.pattern = re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in kinds.items()))
        self.hole = re.compile(hole)
