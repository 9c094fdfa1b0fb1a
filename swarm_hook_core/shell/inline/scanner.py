"""Finds writes in JavaScript, Ruby, Perl, PHP and Lua: calls of one table (`CALLS`) with literal paths.

A path is known if it is a literal text, a name that gets such a text once, or a concatenation of these. A call that may
write any other path is a guess: loops, functions and maps are not followed. There is no grammar. One pattern for each
language cuts the code into tokens, and a call is a name of the table before its arguments.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Sequence

from swarm_hook_core.shell.call import Call
from swarm_hook_core.shell.inline.effects import TOO_LONG, CodeEffects, TooLong
from swarm_hook_core.shell.model import UNKNOWN, edit_or_replace, is_known

# JavaScript, Ruby, Perl, PHP and Lua for the scanner: their calls that write, and the patterns of their tokens.

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


LONGEST = 64 * 1024  # characters of code
MOST = 6000  # tokens
MOST_IN_VALUE = 200  # tokens of one argument
MOST_DOCUMENTS = 10  # here-documents that are looked for

# JavaScript without one of these has no such calls: names like `remove` and `copy` belong to other objects there.
_NODE = re.compile(
    r"\bfs\b|\bfs-|child_process|Deno|Bun|Sync\b|File\b|createWriteStream|(?:require|import)\s*\(\s*[^'\"\s]"
)
# Writing methods of Ruby's ``Pathname``. The path of such an object is not followed.
_PATHNAME = re.compile(
    r"\bPathname\b[\s\S]*\.(?:write|binwrite|delete|unlink|rmtree|rename|truncate|make_|mk|rmdir|chmod|touch)"
)
_APPENDS = ("flag", "flags", "append", "mode", "FILE_APPEND")
_WRITING_MODES = ("WR", "CREAT", "APPEND", "write", "append", "truncate", "create")
_NO_CALL_AFTER = ("function", "def", "sub", "use", "import", "&")
_NO_VALUE = ("=", "=>", ",", ")", "]", "}", ".", ";", ":", "\n", "")
_ENDS_BARE = ("if", "unless", "or", "and", "do", "while", "for", "foreach", "rescue", "then")
_JOIN = ("path.join", "path.resolve", "path.posix.join", "join", "resolve", "File.join")
_SAME_PATH = ("File.expand_path", "Pathname.new", "Pathname", "String", "realpath")
_FOLDER = ("process.cwd", "Dir.pwd", "getcwd", "cwd", "Deno.cwd", "__dirname", "__DIR__")
# Where the arguments of the code are, and the place that the first of them has there
_ARGUMENTS = {"process.argv": 1, "Bun.argv": 1, "ARGV": 0, "$ARGV": 0, "$argv": 1, "arg": 1, "Deno.args": 0}
_ESCAPES = {"n": "\n", "t": "\t", "\n": ""}


_DOCUMENT = re.compile(r"<<[<~-]?[ \t]*(?P<q>['\"`]?)([A-Z_a-z]\w*)(?P=q)")


_languages: dict[str, Language] = {}


def scan(call: Call, name: str, code: str, argv: Sequence[str] = ()) -> None:
    """Report the writes of `code` in the language called `name` through `call`; `argv`: its arguments."""
    title = {"php": "PHP", "javascript": "JavaScript"}.get(name, name.capitalize())
    effects = CodeEffects(call, title)
    if code == UNKNOWN:
        call.guess(f"computed {title} code")
        return
    if name not in _languages:
        _languages[name] = Language(name)
    try:
        if len(code) > LONGEST:
            raise TooLong
        _Scan(effects, _languages[name], list(argv), call.walk.budget.part()).read(code)
    except TooLong:
        effects.guess_code(TOO_LONG)


class _Scan:
    """One pass over code.

    tokens   pairs of a kind and a text
    known    name -> its text, of names that get one once; `UNKNOWN` for others that are bound
    calls    name -> action, with the names that the code imports functions under
    """

    def __init__(self, effects: CodeEffects, language: Language, argv: list[str], until: float) -> None:
        self.effects = effects
        self.language = language
        self.argv = argv
        self.until = until
        self.tokens: list[tuple[str, str]] = []
        self.known: dict[str, str] = {}
        self.calls = dict(language.calls)

    def read(self, code: str) -> None:
        """Go through `code`."""
        name = self.language.name
        if name in ("ruby", "perl", "php"):
            code = _without_documents(code)
        self._cut(code)
        for at, (kind, _text) in enumerate(self.tokens):
            if kind == "name":
                self._bind(at)
        is_node = name == "javascript" and _NODE.search(code) is not None
        if name == "javascript":
            self._load()
            if "child_process" not in code:  # patterns have an `exec` as well
                self.calls.pop(".exec", None)
            if not is_node:
                self.calls = {one: action for one, action in self.calls.items() if action in ("code", "chdir")}
        elif name == "ruby" and _PATHNAME.search(code):
            self.effects.guess_path()
        for is_read in (True, False):  # a file that is read first is changed, not replaced
            for at, (kind, text) in enumerate(self.tokens):
                self._tick()
                if kind == "name":
                    self._meet(at, is_read)
                elif kind == "shell" and not is_read:
                    self.effects.script(self._text(kind, text))
                elif text == "]" and is_node and self._at(at + 1) == "(":
                    self.effects.guess_path()  # fs["write" + x](..)

    def _tick(self) -> None:
        if len(self.tokens) > MOST or time.thread_time() > self.until:
            raise TooLong

    def _cut(self, code: str) -> None:
        """Cut `code` into tokens; behind them come those of the expressions in its texts."""
        waiting = [code]
        for part in waiting:
            for match in self.language.pattern.finditer(part):
                kind, text = match.lastgroup or "", match.group()
                if kind == "skip":
                    continue
                if not len(self.tokens) & 63:
                    self._tick()
                self.tokens.append((kind, text))
                if kind in ("text", "shell") and len(waiting) < MOST:
                    waiting += [hole.group().strip("#${}") for hole in self.language.hole.finditer(text)]
            self.tokens.append(("sign", ";"))

    def _at(self, at: int) -> str:
        """The token at `at`, or an empty text. For a text it is empty, too."""
        if 0 <= at < len(self.tokens) and self.tokens[at][0] in ("name", "sign"):
            return self.tokens[at][1]
        return ""

    # ------------------------------------------------------------------ names

    def _bind(self, at: int) -> None:
        """Take up what the name at `at` gets, if it is bound here."""
        name, sign = self.tokens[at][1], self._at(at + 1)
        if sign == "=" and self._at(at + 2) != "~":
            value = self._value(self._until(at + 2, (";", ",", ")", "}", "\n")))
            if name in self.known:
                value = UNKNOWN
            self.known[name] = _text_or_unknown(value)
            return
        is_added_to = sign in ("+", "-", "*", ".", "..", "||", "?") and self._at(at + 2) == "="
        is_of_loop = sign in ("=>", "of", "in") or self._at(at - 1) in ("as", "|", "my", "catch")
        if is_added_to or is_of_loop or self._is_parameter(at):
            self.known[name] = UNKNOWN

    def _is_parameter(self, at: int) -> bool:
        """Return True if the name is in the parentheses of a function's parameters: they follow a name or `=>` does."""
        start, stop = at, at
        while start > max(at - 40, 0) and self._at(start) not in ("(", ")", ";", "{"):
            start -= 1
        while stop < min(at + 40, len(self.tokens)) and self._at(stop) not in ("(", ")", ";", "}"):
            stop += 1
        if self._at(start) != "(" or self._at(stop) != ")":
            return False
        is_function = {self._at(start - 1), self._at(start - 2)} & {"function", "def", "sub", "fn"}
        return bool(is_function) or self._at(stop + 1) == "=>"

    def _load(self) -> None:
        """Take up names that ``import`` and ``const {rm: x} = require`` give, and files of the project."""
        for at, (kind, text) in enumerate(self.tokens):
            original = self._action(self._at(at - 2))
            if kind == "name" and original and self._at(at - 1) in (":", "as"):
                self.calls[text] = original
            before = self._at(at - 1).replace("(", self._at(at - 2))
            if kind != "raw" or before not in ("require", "import", "from") or text[1:2] not in (".", "/"):
                continue
            if not text[1:-1].endswith(".json"):
                self.effects.runs_project()
                is_script = self._at(at - 3) in ("", ";", "\n", "{", "}", "await") or self._at(at - 1) == "import"
                if is_script or self.effects.call.walk.files.contents:
                    self.effects.guess_code()

    # ----------------------------------------------------------------- values

    def _until(self, at: int, ends: Sequence[str]) -> list[tuple[str, str]]:
        """Return the tokens from `at` to one of `ends` that is outside of brackets."""
        depth = 0
        for place in range(at, min(len(self.tokens), at + MOST_IN_VALUE)):
            sign = self._at(place)
            if not depth and (sign in ends or sign in _ENDS_BARE) and not (sign == "\n" and self._goes_on(place)):
                return self.tokens[at:place]
            depth += (sign in ("(", "[", "{")) - (sign in (")", "]", "}"))
        return self.tokens[at : at + MOST_IN_VALUE]

    def _goes_on(self, at: int) -> bool:
        """Return True if the line end at `at` ends no statement."""
        join = self.language.join
        return not self.language.has_lines or self._at(at - 1) in (join, "=", "(", ",") or self._at(at + 1) == join

    def _arguments(self, at: int) -> list[list[tuple[str, str]]]:
        """Return the arguments of the call whose name is before `at`."""
        ends = [",", ")", ";", "}", "]"]
        if self._at(at) == "(":
            at += 1
        else:
            ends.append("\n")
        given: list[list[tuple[str, str]]] = []
        while at < len(self.tokens) and len(given) < MOST_IN_VALUE:
            one = self._until(at, ends)
            at += len(one) + 1
            one = [token for token in one if token != ("sign", "\n")]
            if one:
                given.append(one)
            if self._at(at - 1) != ",":
                break
        return given

    def _value(self, tokens: list[tuple[str, str]]) -> str | list[str]:
        """Return the text, or the list of texts, that an expression of literals and known names makes."""
        while tokens and tokens[0][1] in ("new", "await", "return", "\n", "\\"):
            tokens = tokens[1:]
        if not tokens:
            return UNKNOWN
        kind, first = tokens[0]
        inside = [token for token in tokens[1:-1] if token[1] != ","]
        if kind == "words" and len(tokens) == 1:
            return self._text(kind, first).split()
        if first == "[" and tokens[-1][1] == "]":
            if len(inside) * 2 < len(tokens) - 2:  # an element is more than one token
                return [UNKNOWN]
            return [self._text_of([one]) for one in inside]
        parts, is_next = [], True
        for token in tokens:
            if is_next == (token[1] == self.language.join):
                return self._called(tokens)
            if is_next:
                parts.append(self._part(*token))
            is_next = not is_next
        if is_next or None in parts:
            return UNKNOWN
        return "".join(filter(None, parts))

    def _text_of(self, tokens: list[tuple[str, str]]) -> str:
        return _text_or_unknown(self._value(tokens))

    def _part(self, kind: str, text: str) -> str | None:
        """The text of one token; None for a sign."""
        if kind in ("raw", "text"):
            return self._text(kind, text)
        if kind == "sign":
            return None
        if text in _FOLDER:
            return self.effects.folder or UNKNOWN
        return self.known.get(text, UNKNOWN)

    def _called(self, tokens: list[tuple[str, str]]) -> str:
        """The text of ``path.join(a, b)``, ``process.cwd()``, ``process.argv[1]``."""
        if tokens[0][1] == "require" and len(tokens) > 6:  # require('path').join(..)
            tokens = tokens[4:]
        name, texts = tokens[0][1].lstrip("."), [text for _kind, text in tokens]
        if texts[1:] == ["(", ")"]:
            return self._part("name", name) or UNKNOWN
        if len(texts) == 4 and texts[1] == "[" and name in _ARGUMENTS and texts[2].isdecimal():
            place = int(texts[2]) - _ARGUMENTS[name]
            return "".join(self.argv[max(place, 0) : place + 1]) or UNKNOWN
        if texts[1:2] != ["("] or texts[-1] != ")" or name not in (*_JOIN, *_SAME_PATH):
            return UNKNOWN
        inside = [[token] for token in tokens[2:-1] if token[1] != ","]
        if len(inside) * 2 - 1 != len(tokens) - 3:  # an argument is more than one token
            return UNKNOWN
        paths = [self._text_of(one) for one in inside]
        if name in _SAME_PATH:
            return paths[0]
        if name.endswith("resolve"):
            return os.path.join(*paths)
        return "/".join(paths).replace("//", "/")

    def _text(self, kind: str, text: str) -> str:
        """Return a literal without its quotes, with known names in place of its expressions."""
        if text.startswith("[["):
            return text[2:].removesuffix("]]").removeprefix("\n")
        start = next(place for place, letter in enumerate(text) if not letter.isalnum() and letter not in "% \n\t")
        inside = text[start + 1 : -1]
        if kind in ("text", "shell"):
            inside = self.language.hole.sub(self._filled, inside)
        return re.sub(r"\\([\s\S])", lambda match: _ESCAPES.get(match.group(1), match.group(1)), inside)

    def _filled(self, match: re.Match[str]) -> str:
        name = match.group().strip("#{}")
        if self.language.has_lines:
            name = name.strip("$")
        elif "{" in match.group():
            name = "$" + name.strip("$")
        return self.known.get(name.strip(), UNKNOWN)

    # ------------------------------------------------------------------ calls

    def _action(self, name: str) -> str | None:
        """Return the action for a call of `name`, or None."""
        name = name.replace("?.", ".").replace("&.", ".").lstrip("\\")
        last = re.split(r"->|::|[.:]", name)[-1]
        if self.language.name == "javascript" and last.endswith("Sync"):
            name, last = name[:-4], last[:-4]
        found = self.calls.get(name)
        if found is None and self.language.name in ("javascript", "ruby"):
            owners = re.split(r"::|\.", name)
            if len(owners) > 1:
                found = self.calls.get(".".join(owners[-2:]))
            if found is None and (len(owners) > 1 or self.language.name == "javascript"):
                found = self.calls.get("." + last)
        elif found is None and self.language.name == "perl":
            found = self.calls.get("->" * ("->" in name) + last)
        return found

    def _meet(self, at: int, is_read: bool) -> None:
        """Do the action of the name at `at` if it is a call; `is_read`: those that read, or all others."""
        name, following, before = self.tokens[at][1], self._at(at + 1), self._at(at - 1)
        action = self._action(name)
        if action is None or action.startswith("read") != is_read or (before in _NO_CALL_AFTER):
            return
        if following != "(":
            is_word = at + 1 < len(self.tokens) and self.tokens[at + 1][0] != "sign"
            is_value = following in (";", ",", "\n", ")", "") and ("." in name or following == ")")
            if is_value and not self.language.is_bare and action not in ("code", "chdir"):
                self.effects.guess_path()  # it is handed on: w = fs.writeFile
            if not (is_word or following not in _NO_VALUE) or not (self.language.is_bare or action == "code"):
                return
        given = self._arguments(at + 1)
        is_module = name in ("require", "do") and following != "(" and given and given[0][0][0] == "name"
        if is_module and given[0][0][1][0] != "$":
            return  # require File::Copy
        self._act(action, given)

    def _act(self, action: str, given: list[list[tuple[str, str]]]) -> None:
        """Do `action` (see ``scanner``) with the arguments `given`."""
        effects, (kind, _blank, detail) = self.effects, action.partition(" ")
        values = [self._value(one) for one in given if one[0][1] != "{" or len(given) == 1]
        texts = [_text_or_unknown(value) for value in values]
        first, second = (*texts, UNKNOWN, UNKNOWN)[:2]
        names = {text for one in given[1:] for _kind, text in one}
        does = {
            "write": effects.write, "replace": effects.replace, "remove": effects.remove, "tree": effects.change_all,
            "make": effects.make_folder, "read": effects.reads,
        }.get(kind.rstrip("s"))  # fmt: skip
        if does is not None:
            if kind == "replace" and not names.isdisjoint(_APPENDS):
                does = effects.write
            place = int(detail)
            chosen = values[place:]
            if not kind.endswith("s"):
                chosen = chosen[:1]
            for path in _texts(chosen) or [UNKNOWN]:
                does(path)
        elif kind == "move":
            effects.move(first, effects.landing(first, second))
        elif kind in ("copy", "link"):
            if effects.is_folder(first):
                effects.copy_tree(first, second)
            else:
                effects.write(effects.landing(first, second), edit_or_replace(kind == "link"))
        elif kind == "open":
            self._open(texts, names)
        elif kind in ("shell", "words"):
            self._run(kind, values, names)
        elif kind == "chdir":
            effects.change_folder(first)
        elif kind == "path":
            effects.guess_path()
        elif given:
            effects.guess_code()

    def _open(self, texts: list[str], names: set[str]) -> None:
        """``open(path, mode)``; of Perl ``open(F, mode, path)`` and ``open(F, "> path")``."""
        path, mode = (*(texts or [UNKNOWN]), "r")[:2]
        if self.language.name == "perl":
            mode, path = (*texts[1:], "", "")[:2]
            mode = mode.strip()
            bare = mode.lstrip("+<>").strip()
            if is_known(mode) and bare:
                mode = mode[: len(mode) - len(bare)].strip()
                if "|" not in bare:
                    path = bare
            if mode in ("|-", "-|") or "|" in bare:
                self.effects.script(path or bare.strip("|"))
                return
            if path.startswith("&"):
                return
        if path.startswith("|"):
            self.effects.guess("a computed command")
        if not is_known(mode) or any(part in name for name in names for part in _WRITING_MODES if name not in texts):
            if not any("RDONLY" in name or name in ("encoding", "read") for name in names):
                self.effects.guess_path()
        elif mode[:3] != "utf" and set("wax+c>") & set(mode.partition(":")[0]):
            anew = mode[:1] in ("w", ">") and mode[:2] != ">>" or mode[:2] == "+>"
            self.effects.write(path, edit_or_replace(not anew))
        elif path:
            self.effects.reads(path)

    def _run(self, kind: str, values: list[str | list[str]], names: set[str]) -> None:
        """Run a command: shell text, or words."""
        if not names.isdisjoint(("cwd", "chdir")):
            self.effects.guess("a command in another folder")
            return
        is_split = kind == "words" or self.language.name in ("ruby", "perl")
        words = _texts(values)
        if is_split and len(words) > 1:
            self.effects.run(words)
        elif values:
            self.effects.script(_text_or_unknown(values[0]))


def _text_or_unknown(value: str | list[str]) -> str:
    if isinstance(value, str):
        return value
    return UNKNOWN


def _texts(values: list[str | list[str]]) -> list[str]:
    """Return the texts among `values`, and those in its lists."""
    found: list[str] = []
    for value in values:
        if isinstance(value, str):
            found.append(value)
        else:
            found += value
    return found


def _without_documents(code: str) -> str:
    """Return `code` with an unknown text in place of each here-document."""
    at = 0
    for _ in range(MOST_DOCUMENTS):
        opening = _DOCUMENT.search(code, at)
        if opening is None:
            return code
        at, line = opening.end(), code.find("\n", opening.end())
        ending = re.compile(rf"^[ \t]*{opening.group(2)}\b", re.MULTILINE).search(code, line + 1)
        if line >= 0 and ending:
            code = f'{code[: opening.start()]}"{UNKNOWN}"{code[at : line + 1]}{code[ending.end() :]}'
            at = opening.start()
    raise TooLong
