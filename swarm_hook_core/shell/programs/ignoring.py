"""The files that ripgrep and fd skip: ignore files, hidden names, globs, types of files.

`IgnoreRules.admits` answers for one file at a time, as ripgrep 13 and fd 8 do. An unsupported rule (a type of files
without a row, an unreadable glob) gives None: the file may be searched.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

from swarm_hook_core.paths import contains
from swarm_hook_core.wildcards import PatternUnreadable, match
from swarm_hook_core.wildmatch import covers, parsed

MOST_BYTES = 256 * 1024  # of one ignore file; a longer one is not followed
MOST_RULES = 2000

# ripgrep's names of types, those that people use.
TYPES = {
    "py": "*.py *.pyi", "python": "*.py *.pyi", "js": "*.js *.jsx *.cjs *.mjs *.vue", "ts": "*.ts *.tsx *.cts *.mts",
    "typescript": "*.ts *.tsx *.cts *.mts", "rust": "*.rs", "rs": "*.rs", "go": "*.go", "java": "*.java *.jsp *.jspx",
    "c": "*.c *.h *.H *.cats", "cpp": "*.C *.cc *.cpp *.cxx *.h *.H *.hh *.hpp *.hxx *.inl", "h": "*.h *.hh *.hpp",
    "cs": "*.cs", "css": "*.css *.scss", "sass": "*.sass *.scss", "less": "*.less", "html": "*.htm *.html *.ejs",
    "json": "*.json composer.lock", "md": "*.markdown *.md *.mdown *.mkd *.mkdn *.mdwn *.mkdn *.mdx",
    "markdown": "*.markdown *.md *.mdown *.mkd *.mkdn *.mdwn *.mkdn *.mdx", "yaml": "*.yaml *.yml", "toml": "*.toml"
    " Cargo.lock", "sql": "*.sql *.psql", "swift": "*.swift", "kotlin": "*.kt *.kts", "scala": "*.scala *.sbt",
    "lua": "*.lua", "php": "*.php *.php3 *.php4 *.php5 *.php7 *.php8 *.phtml", "txt": "*.txt", "vue": "*.vue",
    "svelte": "*.svelte", "xml": "*.xml *.xsd *.xsl *.xslt *.dtd *.rng *.sch *.xhtml *.xjb *.xml.dist",
    "proto": "*.proto",
    "tf": "*.tf *.tf.json *.tfvars *.auto.tfvars *.terraformrc terraform.rc *.tfrc", "elixir": "*.ex *.eex *.exs",
    "graphql": "*.graphql *.graphqls", "dart": "*.dart", "haskell": "*.hs *.lhs *.cpphs *.c2hs *.hsc", "csv": "*.csv",
    "docker": "*Dockerfile*", "make": "[Gg][Nn][Uu]makefile [Mm]akefile [Gg][Nn][Uu]makefile.am [Mm]akefile.am"
    " [Gg][Nn][Uu]makefile.in [Mm]akefile.in *.mk *.mak",
}  # fmt: skip
MOST_ALTERNATIVES = 64


class Rule:
    """One line of an ignore file: the parsed pattern, `wants` (a ``!`` before it), `folders` (a ``/`` behind it)."""

    __slots__ = ("segments", "wants", "folders")

    def __init__(self, segments: list[Any], wants: bool, folders: bool) -> None:
        self.segments = segments
        self.wants = wants
        self.folders = folders


class IgnoreRules:
    """The rules for a search under absolute `root`.

    files     names of ignore files, the weightiest first; ``.gitignore`` counts in a git repository only
    hidden    search hidden files as well
    globs     ``-g`` as given, from `folder`; ``!x`` leaves out
    types     ``-t`` names of types; `without` those of ``-T``
    home      the home folder, for git's file of everything ignored
    roots     all roots of the search: until release 14 a rule from above them is held against a path that has one of
              them in it twice
    follows   go through symbolic links; finds_links: find a link itself, as fd does
    """

    def __init__(
        self,
        root: str,
        folder: str | None,
        files: Sequence[str] = (".rgignore", ".ignore", ".gitignore"),
        hidden: bool = False,
        globs: Iterable[str] = (),
        types: Sequence[str] = (),
        without: Sequence[str] = (),
        home: str = "",
        config: str = "",
        follows: bool = False,
        fold: bool = False,
        finds_links: bool = False,
        roots: Sequence[str] = (),
    ) -> None:
        self.root, self.folder, self.files = root, folder, files
        self.hidden, self.follows, self.finds_links = hidden, follows, finds_links
        self.roots = roots or (root,)
        self.is_followed = True
        self.globs = self._rules(globs, fold)
        self.wants_globs = any(not rule.wants for rule in self.globs)
        self.types, self.without = types, without
        self.home, self.config = home, config
        self._of: dict[tuple[str, str], list[Rule]] = {}  # (folder, name of an ignore file) -> its Rules
        self._inside: dict[str, str] = {}  # folder -> top of its repository, or empty
        self._everywhere: list[Rule] | None = None

    def admits(self, path: str) -> bool | None:
        """Return True if the search reads the file at `path`, at or under the root; None if unknown."""
        if path == self.root:
            return True
        if not path.startswith(self.root.rstrip("/") + "/"):
            return False
        names = path[len(self.root.rstrip("/")) + 1 :].split("/")
        answer: bool | None = True
        place = self.root.rstrip("/")
        for number, name in enumerate(names):
            place = f"{place}/{name}"
            is_last = number == len(names) - 1
            if not self.follows and not (is_last and self.finds_links) and os.path.islink(place):
                return False
            verdict = self._admits_entry(place, name, not is_last or os.path.isdir(place))
            if verdict is False:
                return False
            if verdict is None:
                answer = None
        if self.is_followed:
            return answer
        return None

    def _admits_entry(self, path: str, name: str, is_folder: bool) -> bool | None:
        """Return True if one file or folder is entered, apart from its folders."""
        if self.globs:
            verdict = self._matched(self.globs, path, self.folder or "/", is_folder)
            if verdict is not None:
                return verdict  # a glob includes files, an ignore file's line excludes them
            if self.wants_globs and not is_folder:
                return False
        ignored = self._ignored(path, is_folder)
        if ignored is True:
            return False
        if is_folder or not (self.types or self.without):
            typed = None
        else:
            typed = self._of_type(name)
        if typed is False:
            return False
        if name[0] == "." and not self.hidden and ignored is None:
            return False
        if "unknown" in (typed, ignored):
            return None
        return True

    def _of_type(self, name: str) -> bool | str:
        """Return True, False or ``unknown`` for a name: is it of a type that is searched?"""
        left_out, chosen = (
            [self._fits(name, one) for one in self.without],
            [self._fits(name, one) for one in self.types],
        )
        if True in left_out or (self.types and set(chosen) == {False}):
            return False
        if set(left_out) <= {False} and (not self.types or True in chosen):
            return True
        return "unknown"

    def _fits(self, name: str, kind: str) -> bool | None:

        if kind in TYPES:
            return any(match(name, glob) for glob in TYPES[kind].split())
        return None

    def _ignored(self, path: str, is_folder: bool) -> bool | str | None:
        """Return True if ignore files leave `path` out, False if they want it, None if no rule matches.

        ``unknown`` if releases differ.
        """
        above = os.path.dirname(path)
        for file in self.files:
            folder = above
            top = "/"
            if file == ".gitignore":
                top = self._repository(above)
            while top and contains(top, folder):
                verdict = self._matched_from(folder, self._file(folder, file), path, is_folder)
                if verdict is not None:
                    return verdict
                if folder == "/":
                    break
                folder = os.path.dirname(folder)
            if file == ".gitignore" and top:
                rules = self._file(os.path.join(top, ".git", "info"), "exclude")
                verdict = self._matched_from(top, rules, path, is_folder)
                if verdict is None:
                    verdict = self._matched(self._global(), path, self.folder or top, is_folder)
                if verdict is not None:
                    return verdict
        return None

    def _repository(self, folder: str) -> str:
        """Return the top of the repository around `folder`, or empty."""
        if folder not in self._inside:
            top = folder
            while not os.path.exists(os.path.join(top, ".git")):
                above = os.path.dirname(top)
                if above == top:
                    top = ""
                    break
                top = above
            self._inside[folder] = top
        return self._inside[folder]

    def _global(self) -> list[Rule]:
        """Return the rules of ``core.excludesFile``; it lies in the home folder unless git's settings move it."""
        if self._everywhere is None:
            file = os.path.join(self.config or os.path.join(self.home, ".config"), "git", "ignore")
            for settings in (os.path.join(self.home, ".gitconfig"), os.path.join(os.path.dirname(file), "config")):
                for line in (_text(settings) or "").splitlines():
                    name, equals, value = line.partition("=")
                    if equals and name.strip().lower() == "excludesfile":
                        file = os.path.join(self.home, value.strip().strip('"').removeprefix("~/"))
            self._everywhere = []
            if self.home:
                self._everywhere = self._file(*os.path.split(file))
        return self._everywhere

    def _file(self, folder: str, name: str) -> list[Rule]:
        key = (folder, name)
        if key not in self._of:
            text = _text(os.path.join(folder, name))
            if text is None:
                self.is_followed = False
            self._of[key] = self._rules((text or "").splitlines())
        return self._of[key]

    def _rules(self, lines: Iterable[str], fold: bool = False) -> list[Rule]:
        found: list[Any] = []
        for line in lines:
            line = line.rstrip("\r\n")
            while line.endswith(" ") and not line.endswith("\\ "):
                line = line[:-1]
            wants = line.startswith("!")
            text = line[wants:]
            bare = text.rstrip("/")
            if not bare or line.startswith("#"):
                continue
            for one in _alternatives(bare):
                # The slash at its end says that it is a folder, and not where it counts.
                anchor = ""
                if "/" in one and one[0] != "/" and not one.startswith("**/"):
                    anchor = "/"
                try:
                    found.append(Rule(parsed(anchor + one, fold), wants, bare != text))
                except PatternUnreadable:
                    self.is_followed = False
            if len(found) > MOST_RULES:
                self.is_followed = False
                break
        return found

    def _matched_from(self, folder: str, rules: list[Rule], path: str, is_folder: bool) -> bool | str | None:
        """Return the answer of `folder`'s rules on `path`; ``unknown`` if the folder is above the root and releases
        differ.
        """
        verdict = self._matched(rules, path, folder, is_folder)
        if not rules or not self.folder or not self.root.startswith(folder.rstrip("/") + "/"):
            return verdict
        inside = os.path.relpath(path, self.folder)
        others = {self._matched(rules, os.path.join(root, inside), folder, is_folder) for root in self.roots}
        if self.root == self.folder or others == {verdict}:
            return verdict
        return "unknown"

    def _matched(self, rules: list[Rule], path: str, base: str, is_folder: bool) -> bool | None:
        """Return True if the last of `rules` that matches `path` leaves it out, False if it wants it, else None."""
        inside = base.rstrip("/") + "/"
        if not rules or not path.startswith(inside):
            return None
        rest = path[len(inside) :]
        for rule in reversed(rules):
            if (is_folder or not rule.folders) and covers(rule.segments, rest):
                return not rule.wants
        return None


def _alternatives(pattern: str) -> list[str]:
    """Return the patterns that one with ``{a,b}`` in it stands for."""
    before, brace, rest = pattern.partition("{")
    inside, closing, after = rest.partition("}")
    if not brace or not closing or before.endswith("\\") or "{" in inside:
        return [pattern]
    found = [before + one + tail for tail in _alternatives(after) for one in inside.split(",")]
    return found[:MOST_ALTERNATIVES]


def _text(file: str) -> str | None:
    """Return the text of an ignore file, empty if it does not exist, None if it cannot be read."""
    try:
        with open(file, encoding="utf-8", errors="surrogateescape") as lines:
            text = lines.read(MOST_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):  # there is no such file, so no rules
        return ""
    except OSError:  # unreadable: its rules are unknown
        return None
    if len(text) <= MOST_BYTES:
        return text
    return None
