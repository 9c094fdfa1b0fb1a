"""Completion for shells: candidates for the next word, and the scripts that ask for them."""

from __future__ import annotations

import re
from contextlib import suppress
from itertools import islice
from typing import NamedTuple

from swarm_hook_core.untrusted_text import one_line
from swarm_mcp import contributions
from swarm_mcp.answers.people import veiled
from swarm_mcp.cli.arguments import (
    FILES,
    FOLDERS,
    FRONT,
    INSTANCES,
    MORE_SETUP,
    NOUNS,
    TASKS,
    Arguments,
    Option,
    Source,
    Usage,
    Word,
    choice,
    declared,
    is_verb,
    verb,
    verb_named,
    words_of,
)
from swarm_mcp.cli.output import say_text
from swarm_mcp.cli.words import clause
from swarm_mcp.domain import Session, onlooker
from swarm_mcp.folders import current_scope
from swarm_mcp.sessions.acting import onlooker_identity
from swarm_mcp.store import Store

# Labels and keys come from other sessions: only plain words of a shell are offered.
PLAIN = re.compile(r"[A-Za-z0-9_./@%+,:=-]+")
# Candidates that the shell finds itself, by the names that the scripts know.
BY_THE_SHELL = {FILES: ":files", FOLDERS: ":folders"}
BUSY_SECONDS = 0.2
MOST = 200  # candidates; nobody reads more
MOST_READ = 1000  # rows of the store that are searched


class Candidate(NamedTuple):
    """One candidate with its description."""

    word: str
    about: str = ""


class _Before(NamedTuple):
    """The words before the cursor, the option that still needs its value, and `only_words` after a ``--``."""

    words: list[str]
    open_option: Option | None
    only_words: bool


def candidates(words: list[str]) -> list[Candidate]:
    """Return candidates for the last of `words`, which may be half typed. `words` follow the command's name."""
    *before, current = words or [""]
    if not before and current.startswith("-"):
        found = [Candidate("--help"), Candidate("--version")]
    elif not before or before == ["help"]:
        # The commands of the help page
        found = [Candidate(noun, about) for noun, about in NOUNS.items()]
        for name in contributions.verbs():
            group, about = declared(name)
            if group in FRONT:
                found.append(Candidate(name, about))
    else:
        noun, of_noun = before[0], words_of(before[0])
        found = [Candidate(word, declared(verb)[1]) for word, verb in of_noun.items() if len(before) == 1]
        verb, behind = contributions.table("ALIASES").get(noun, noun), before[1:]
        if before[1:2] and before[1] in of_noun:
            verb, behind = of_noun[before[1]], before[2:]
        if is_verb(verb):
            found += _after(verb_named(verb).usages, behind, current)
    return [one for one in found if one.word in BY_THE_SHELL.values() or _offered(one.word, current)][:MOST]


def _after(usages: tuple[Usage, ...], before: list[str], current: str) -> list[Candidate]:
    """Return candidates for the word after a verb and the words in `before`."""
    every = {name: option for usage in usages for option in usage.options for name in (option.name, option.also)}
    placed = _read(before, every)
    shown = [usage for usage in usages if not usage.hidden]
    matching = [usage for usage in shown if not placed.words or usage.begins_with(placed.words[0])] or shown
    scope = _scope(before)
    if placed.open_option:
        return _from(placed.open_option.source, (), scope)
    name, equals, _ = current.partition("=")
    if equals and name in every and every[name].value and not placed.only_words:
        values = _from(every[name].source, (), scope)
        if every[name].source in BY_THE_SHELL:
            return values  # the shells put the flag before files and folders themselves
        return [Candidate(f"{name}={one.word}", one.about) for one in values]
    given = {word.partition("=")[0] for word in before}
    options = {option.name: option for usage in matching for option in usage.options if not option.hidden}
    flags = [Candidate(one.name, one.about) for one in options.values() if one.repeatable or one.name not in given]
    flags.append(Candidate("--help"))
    if current.startswith("-") and not placed.only_words:
        return flags
    next_words = [word for usage in matching if (word := usage.word_after(len(placed.words)))]
    found = dict.fromkeys(one for word in next_words for one in _from(word.source, word.statuses, scope))
    if next_words or placed.only_words:
        return list(found)
    return flags


def _read(before: list[str], options: dict[str, Option]) -> _Before:
    words: list[str] = []
    rest = iter(before)
    for item in rest:
        if item == "--":
            return _Before([*words, *rest], None, True)
        option = options.get(item)
        if option and option.value:
            if next(rest, None) is None:
                return _Before(words, option, False)
        elif not item.startswith("--"):
            words.append(item)
    return _Before(words, None, False)


def _scope(before: list[str]) -> str:
    """The scope that the line names so far."""
    chosen = ""
    for at, word in enumerate(before):
        if word == "--scope" and at + 1 < len(before):
            chosen = before[at + 1]
        elif word.startswith("--scope="):
            chosen = word.partition("=")[2]
    return chosen


def _from(source: Source, statuses: tuple[str, ...], scope: str) -> list[Candidate]:
    """The candidates that `source` names; of tasks those with one of `statuses`, where there are any."""
    if isinstance(source, tuple):
        return [Candidate(word) for word in source]
    if source in BY_THE_SHELL:
        return [Candidate(BY_THE_SHELL[source])]
    place = current_scope(scope)
    with Store(read_only=True, busy_seconds=BUSY_SECONDS) as store:
        viewer = onlooker_identity(store)
        if source == INSTANCES:
            return _instances(veiled([row for _, row in islice(store.instances.walk(place), MOST_READ)], viewer))
        if source == TASKS:
            me = onlooker(viewer, place)
            rows = [
                task
                for status in statuses or ("",)
                for _, task in islice(store.tasks.walk(me, status, by_age=not statuses), MOST_READ)
            ]
            return [Candidate(row.id, f"[{row.status}] {row.title}") for row in rows]
        keys = store.kv.walk(place, "", clause("identity:{}", viewer) or None)
        return [Candidate(row.key) for _, row in islice(keys, MOST_READ)]


def _instances(rows: list[Session]) -> list[Candidate]:
    """Ids, short where that is enough, and the words of labels that only one session has."""
    found = []
    for row in rows:
        word = row.id[:8]
        if sum(other.id.startswith(word) for other in rows) > 1:
            word = row.id
        found.append(Candidate(word, row.label or ""))
    labels = [row.label or "" for row in rows]
    for label in labels:
        unique = [word for word in label.split() if ":" in word and sum(word in other for other in labels) == 1]
        found += [Candidate(word, label) for word in unique]
    return found


def _offered(word: str, current: str) -> bool:
    return word.startswith(current) and PLAIN.fullmatch(word) is not None


# Each script asks `swarm-mcp completion words -- WORD...` (the last word is the one at the cursor) and gets one
# candidate a line, with a tab and its description; `:files` and `:folders` leave the rest to the shell.
BASH = r"""
_swarm_mcp() {
    local words=() rest=$COMP_LINE word at current begun line candidate
    # Bash splits at = and : too; what no blank separates is one word.
    for ((at = 0; at <= COMP_CWORD; at++)); do
        word=${COMP_WORDS[at]}
        if ((at > 1)) && [[ -n $COMP_LINE && $rest != [[:space:]]* ]]; then
            words[${#words[@]}-1]+=$word
        else
            words+=("$word")
        fi
        rest=${rest#"${rest%%[![:space:]]*}"}
        rest=${rest#"$word"}
    done
    current=${words[${#words[@]}-1]}
    begun=$current
    [[ $current == --*=* ]] && begun=${current#*=}
    COMPREPLY=()
    while IFS= read -r line; do
        candidate=${line%%$'\t'*}
        case $candidate in
            :files) compopt -o filenames 2>/dev/null
                while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "$begun") ;;
            :folders) compopt -o filenames 2>/dev/null
                while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -d -- "$begun") ;;
            # Readline replaces only what stands behind the last = or :.
            *) COMPREPLY+=("${candidate#"${current%"${current##*[=:]}"}"}") ;;
        esac
    done < <("${words[0]}" completion words -- "${words[@]:1}" 2>/dev/null)
}
complete -F _swarm_mcp swarm-mcp
"""


ZSH = r"""
_swarm_mcp() {
    local line candidate
    local -a found shown
    for line in "${(@f)$("${words[1]}" completion words -- "${(@Q)words[2,CURRENT]}" 2>/dev/null)}"; do
        candidate=${line%%$'\t'*}
        case $candidate in
            '') ;;
            :files) compset -P '--*='; _files ;;
            :folders) compset -P '--*='; _files -/ ;;
            *) found+=("$candidate") shown+=("${line/$'\t'/  -- }") ;;
        esac
    done
    (( $#found )) && compadd -l -d shown -a found
}
compdef _swarm_mcp swarm-mcp
"""


FISH = r"""
function __swarm_mcp_candidates
    set -l words (commandline -opc) (commandline -ct)
    set -l flag (string match -r -- '^--[^=]*=' $words[-1])
    set -l begun (string replace -r -- '^--[^=]*=' '' $words[-1])
    for line in ($words[1] completion words -- $words[2..-1] 2>/dev/null)
        switch $line
            case ':files'
                string replace -r -- '^' "$flag" (__fish_complete_path $begun)
            case ':folders'
                string replace -r -- '^' "$flag" (__fish_complete_directories $begun '')
            case '*'
                echo $line
        end
    end
end
complete -c swarm-mcp -f -a '(__swarm_mcp_candidates)'
"""


SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH}


@verb(
    Usage(choice("bash", "zsh", "fish", about="shell")),
    Usage(choice("words", about="shell"), Word("WORD", optional=True, repeated=True, may_be_blank=True), hidden=True),
    group=MORE_SETUP,
)
def completion(args: Arguments) -> int:
    """completion: a script that teaches a shell to complete swarm-mcp

    It completes commands, their flags, sessions and tasks of this scope, else files. Load it from the shell's own file:
      bash, in ~/.bashrc:                  source <(swarm-mcp completion bash)
      zsh, in ~/.zshrc, after compinit:    source <(swarm-mcp completion zsh)
      fish:  swarm-mcp completion fish > ~/.config/fish/completions/swarm-mcp.fish

    example: swarm-mcp completion bash
    """
    if args.words[:1] == ["words"]:
        # Print candidates, one a line. Errors print nothing.
        words = args.words[1:]
        with suppress(Exception):  # an error message would break the line that is being typed
            for candidate in candidates(words):
                say_text(candidate.word + clause("\t{}", one_line(candidate.about)[:100]))
        return 0
    say_text(SCRIPTS[args.words[0]].strip())
    return 0
