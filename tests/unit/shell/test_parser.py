"""Shell text read into statements: as bash reads it; text that bash refuses is marked, and words stay as written."""

from __future__ import annotations

import subprocess

import pytest

from swarm_hook_core.shell import syntax
from swarm_hook_core.shell.parser import script_of

# Scripts, between bars; ⏎ is a newline.
READ = r"""
a ¦ a; b ¦ a & b ¦ a && b || c; d ¦ a &&⏎b ¦ a |⏎b ¦ a || # c⏎b ¦ a \⏎ b ¦ a |& b ¦ ! a ¦ # a ¦ ! a | b && ! c
! { a; } ¦ time -p a | b ¦ time ¦ a # b⏎⏎⏎c ¦ ( a; b ) | c ¦ { a; b; } ¦ { { a; }; } ¦ ( (a); b) ¦ ((a)) && b
((a); b) ¦ (( (a) + 1 )) ¦ echo $( (a) ) ¦ echo $((a); (b)) ¦ echo $((1+2))
if a; then b; elif c; then d; else e; fi ¦ if [[ a ]] then b; fi ¦ if { a; } then b; fi > f
while a; do b; done < f ¦ until a⏎do b⏎done ¦ while { a; }; do b; done ¦ while :; do a; done | b && c
for x; do a; done ¦ for x do a; done ¦ for x in a b; do c; done ¦ for x in; do a; done
for in in in; do a; done ¦ for x⏎in a b; do c; done ¦ for ((i=0;i<3;i++)); do a; done ¦ for ((;;)) { break; }
for x in a; { b; } ¦ select x in a b; do break; done ¦ case $x in a|b) c;; (d) e ;& *) f;;& esac
case x in esac ¦ case x in a);; esac ¦ case x in⏎ a | b ) c⏎ ;;⏎ # d⏎ (e)⏎ f⏎esac ¦ case in in (in) a;; esac
f() { a; } ¦ f () ( a ) ¦ function f { a; } ¦ function f() { a; } ¦ function f ()⏎{⏎ a⏎}
f() if a; then b; fi ¦ x-y() { a; } ¦ f() { a; } > x ¦ coproc a ¦ coproc N { a; } ¦ x=(a b 'c d')
x+=(a) y[1]=2 ¦ x=(⏎ a # b⏎ c) ¦ [[ a && ( b || c ) ]] ¦ [[ $x =~ ^(a|b)$ ]] ¦ [[ -f x ]] > f ¦ [[ a⏎&& b ]]
[ a = b ] && c ¦ (( x > 3 && y )) ¦ a >b <c 2>&1 &>d &>>e >|f <>g 3<<<x 2>&- {fd}>h ¦ > f ¦ >f a b ¦ a>b
diff <(a) <(b) ¦ tee >(a) > >(b) ¦ cat <<'E' > f; a⏎$(x⏎E⏎b ¦ cat <<-E⏎	a⏎	E⏎b ¦ cat <<A <<B⏎a⏎A⏎b⏎B
a <<E | b⏎x⏎E⏎c ¦ a "$(cat <<E⏎x ) y⏎E⏎)" ¦ x=$(a <<E⏎b⏎E⏎) c ¦ echo @(a|b) !(x) +(y|z)
echo ${x:-"a b"} ${y%%*(x)} ¦ a `b \`c\`` ¦ echo $'a\'b' $"c" ¦ echo } ]] { if then ¦ {a,b} ¦ echo {a,b}>x
a'b'"c"\d
"""
REFUSED = r"""
a;; ¦ && a ¦ a || ¦ fi ¦ done ¦ a ) ¦ ( a ¦ { a ¦ { a } ¦ if a ¦ if a; then b ¦ while a; do b ¦ do a
case x in a) b ¦ for x in a b ¦ f() ¦ echo (a) ¦ echo 'a ¦ echo "a ¦ echo $(a ¦ echo `a ¦ a | | b ¦ [[ a
a && && b ¦ if a; then b; fi; fi ¦ { a; } } ¦ a (b) c ¦ a > ¦ a > | b ¦ {a;} ¦ f(){ a;}} ¦ a;&
"""


def scripts(table: str) -> list[str]:
    return [one.strip().replace("⏎", "\n") for line in table.strip().splitlines() for one in line.split("¦")]


def accepted_by_bash(script: str) -> bool:
    return subprocess.run(["bash", "-O", "extglob", "-n", "-c", script], capture_output=True).returncode == 0


@pytest.mark.parametrize("script", scripts(READ))
def test_what_bash_reads_is_read(script: str) -> None:
    assert accepted_by_bash(script)
    assert not script_of(script).broken


@pytest.mark.parametrize("script", scripts(REFUSED))
def test_what_bash_refuses_is_marked(script: str) -> None:
    assert not accepted_by_bash(script)
    assert script_of(script).broken


def words(script: str) -> list[list[str]]:
    """The words of the simple commands right in `script`."""
    return [[word.raw for word in one.words] for one in script_of(script).statements if isinstance(one, syntax.Command)]


def test_words_stay_as_they_were_written() -> None:
    assert words("a=1 b 'c  d' \"$(e; f)\"$g `h` i\\ j ; k") == [
        ["a=1", "b", "'c  d'", '"$(e; f)"$g', "`h`", "i\\ j"],
        ["k"],
    ]


def test_what_stands_around_a_mistake_is_read() -> None:
    assert words("a; fi; b") == [["a"], ["b"]]
    assert words("a\n)\nb 'c") == [["a"], ["b", "'c"]]


def test_redirections_belong_to_the_command_they_stand_at() -> None:
    (chain,) = script_of("cd x && tee y <<E > z\nbody\nE").statements
    assert chain.first.redirects == []
    ((_operator, tee),) = chain.rest
    assert [(one.operator, one.word.raw, one.body) for one in tee.redirects] == [
        ("<<", "E", "body\n"),
        (">", "z", None),
    ]
    (piped,) = script_of("(a; b) > f 2>&1 | c").statements
    assert [(one.fd, one.operator, one.word.raw) for one in piped.parts[0].redirects] == [
        ("", ">", "f"),
        ("2", ">&", "1"),
    ]
