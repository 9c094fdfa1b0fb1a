"""Completion for shells."""

from __future__ import annotations

from swarm_mcp.cli.arguments import Arguments, Usage, Word, choice, verb
from swarm_mcp.cli.output import one_line, say_text

# Each script asks `swarm-mcp completion words -- WORD...` (the last word is the one at the cursor) and gets
# lines of a candidate, a tab and what it is; `:files` and `:folders` leave it to the shell.
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
)
def completion(args: Arguments) -> int:
    """completion: a script that teaches a shell to complete swarm-mcp

    Verbs, their flags, sessions and tasks of this scope, else files. Load it from the shell's own file:
      bash   source <(swarm-mcp completion bash)            in ~/.bashrc
      zsh    source <(swarm-mcp completion zsh)             in ~/.zshrc, after compinit
      fish   swarm-mcp completion fish > ~/.config/fish/completions/swarm-mcp.fish

    example: swarm-mcp completion bash
    """
    if args.words[:1] == ["words"]:
        return _words(args.words[1:])
    say_text(SCRIPTS[args.words[0]].strip())
    return 0


def _words(words: list[str]) -> int:
    """Candidates, one a line. Somebody is typing: whatever goes wrong, there is just nothing to offer."""
    try:
        from swarm_mcp.cli.completion import candidates

        for candidate in candidates(words):
            about = one_line(candidate.about)[:100]
            say_text(f"{candidate.word}\t{about}" if about else candidate.word)
    except Exception:
        return 0
    return 0
