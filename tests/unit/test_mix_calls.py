"""The calls of `make bench --part mix`: their number, and their weights by the counts in transcripts."""

import pytest
from bench.mix_calls import COUNTED, calls


@pytest.mark.parametrize(("client", "number"), [("claude-code", 81), ("codex", 65)])
def test_calls_have_the_weights_that_were_counted(client: str, number: int) -> None:
    found = calls(client)
    assert len(found) == number
    assert sum(call.weight for call in found) == pytest.approx(1)
    totals = [sum(counts) for counts in zip(*COUNTED[client].values(), strict=True)]
    for kind, counts in COUNTED[client].items():
        share = sum(count / total for count, total in zip(counts, totals, strict=True)) / 2
        assert sum(call.weight for call in found if call.kind == kind) == pytest.approx(share), kind
