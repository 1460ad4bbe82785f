"""When a store that stays silent is asked again."""

from __future__ import annotations

from app.fileio.network.circuit import FIRST_REST_S, LONGEST_REST_S, SILENT_CALLS, Circuit


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def opened() -> tuple[Circuit, Clock]:
    clock = Clock()
    circuit = Circuit(clock)
    for _ in range(SILENT_CALLS):
        assert circuit.refusal() is None
        circuit.silent("too slow")
    return circuit, clock


def test_it_opens_after_calls_in_a_row_and_gives_the_reason() -> None:
    circuit, _ = opened()

    refusal = circuit.refusal()

    assert refusal is not None
    assert f"{SILENT_CALLS} requests in a row (the last one: too slow)" in refusal
    assert f"in {FIRST_REST_S:.0f} s" in refusal


def test_an_answer_between_keeps_it_closed() -> None:
    circuit = Circuit(Clock())

    for _ in range(10):
        for _ in range(SILENT_CALLS - 1):
            circuit.silent("too slow")
        circuit.answered()

    assert circuit.refusal() is None


def test_after_the_rest_one_call_goes_and_its_answer_closes_it() -> None:
    circuit, clock = opened()
    clock.now_s += FIRST_REST_S

    assert circuit.refusal() is None
    refusal = circuit.refusal()
    assert refusal is not None
    assert "when one request has found it awake" in refusal
    circuit.answered()

    assert circuit.refusal() is None
    assert circuit.refusal() is None


def test_each_silent_probe_doubles_the_rest_up_to_a_limit() -> None:
    circuit, clock = opened()

    rests = []
    for _ in range(10):
        before = clock.now_s
        while circuit.refusal() is not None:
            clock.now_s += 1
        rests.append(clock.now_s - before)
        circuit.silent("too slow")

    assert rests[:3] == [FIRST_REST_S, 2 * FIRST_REST_S, 4 * FIRST_REST_S]
    assert rests[-1] == LONGEST_REST_S


def test_calls_begun_before_it_opened_do_not_prolong_the_rest() -> None:
    circuit, clock = opened()
    for _ in range(20):
        circuit.silent("too slow")
    clock.now_s += FIRST_REST_S

    assert circuit.refusal() is None
