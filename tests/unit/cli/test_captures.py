"""The comparison of the conformance tests sees every kind of difference, and the same thing by its other name."""

import itertools
import time

import pytest
from support.captures import Names, Verdict, differences
from support.deviations import Deviation

ONE, TWO = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"


@pytest.mark.parametrize(
    ("pattern", "actual", "found"),
    [
        ({"a": 1, "b": "x"}, {"a": 1, "b": "x"}, []),
        ({"a": 1}, {"a": True}, ["a: is true, not 1"]),
        ({"a": 1}, {"a": "1"}, ['a: is "1", not 1']),
        ({"a": None}, {"a": 0}, ["a: is 0, not null"]),
        ({"a": 1}, {}, ["missing a"]),
        ({}, {"a": 1}, ["extra a"]),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, ["order : b a"]),
        ({"a": {"b": 1}}, {"a": {"b": 2}}, ["a.b: is 2, not 1"]),
        ([1, 2], [1], ["missing 1: 2"]),
        ([{"k": 1}, {"k": 2}], [dict.fromkeys("abcdefg", 0), {"k": 1}, {"k": 2}], ["extra 0: *"]),
        ({"<set>": [1, 2]}, [2, 1], []),
        ({"<set>": [1, 2]}, [2, 3], ["0: is 3, not 1"]),
        ({"<json>": {"a": 1}}, '{"a": 1}', []),
        ({"<json>": {"a": 1}}, "{", ['*: is "{", not JSON']),
        ("<ROOT>/a", "/r/a", []),
        ("<ROOT>/a", "/s/a", ['*: is "/s/a", *']),
        ("<n> of <prose>", "3 of these", []),
        ("<n> of <prose>", "three of these", ["*"]),
        ("a\n<time>\nb", "a\n2026-01-02 03:04:05\nx\nb", ['extra 2: "x"']),
        ("<sec>", int(time.time()), []),
        ("<sec>", int(time.time() * 1000), ["*"]),
        ("<ms>", int(time.time()), ["*"]),
        ("<pid>", 0, ["*"]),
        ("<n>", True, ["*"]),
        ("<any>", {"what": "ever"}, []),
        (["<id 1>", "<id 2>", "<id 1:8>"], [ONE, TWO, ONE[:8]], []),
        (["<id 1>", "<id 2>"], [ONE, ONE], ["1: *"]),
        (["<id 1>", "<id 1>"], [ONE, TWO], ["1: *"]),
        (["<no 1>", "x<no 1>"], [4, "x4"], []),
        (["<no 1>", "x<no 1>"], [4, "x5"], ["1: *"]),
    ],
    ids=itertools.count(),  # the clock is in some values; every worker must know a case by the same name
)  # fmt: skip
def test_differences(pattern, actual, found: list[str]):
    verdict = Verdict(tuple(Deviation("*", difference, "") for difference in found))
    verdict.judge("here", differences(pattern, actual, Names("/r")))
    verdict.deliver()


def test_ids_of_the_record_become_those_of_the_run():
    names = Names("/r")
    assert names.fits("created <id 7>", f"created {ONE}")
    assert names.fill({"a": ["<id 7>", "<id 7:8>", "<ROOT>/x", 3]}) == {"a": [ONE, ONE[:8], "/r/x", 3]}


def test_a_difference_without_a_reason_and_a_reason_without_a_difference_both_fail():
    with pytest.raises(AssertionError, match="here | extra a"):
        judged = Verdict(())
        judged.judge("here", ["extra a"])
        judged.deliver()
    with pytest.raises(AssertionError, match="said to differ"):
        Verdict((Deviation("*", "extra a", "because"),)).deliver()
