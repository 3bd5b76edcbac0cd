"""Sentences about a demo run, computed from its record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ptncn.demo.simulate import LSTM, NAMES, PTNCN, UNCORRECTED

Record = Mapping[str, Any]
TIE = 0.01
"""Errors that differ by less than this share count as equal."""


def share(error: float, copy: float) -> str:
    """
    >>> share(15.0, 20.0)
    '75%'
    """
    return f"{error / copy:.0%}"


def winner(errors: Mapping[str, float]) -> str | None:
    """The learner with the smaller error; None for a tie.

    >>> winner({"ptncn": 1.0, "lstm-tbptt": 2.0}), winner({"ptncn": 1.0, "lstm-tbptt": 1.005})
    ('ptncn', None)
    """
    ptncn, lstm = errors[PTNCN], errors[LSTM]
    if abs(ptncn - lstm) <= TIE * max(ptncn, lstm):
        return None
    return PTNCN if ptncn < lstm else LSTM


def part_names(record: Record) -> list[str]:
    """
    >>> part_names({"stream": ["digits", "letters", "digits"]})
    ['digits', 'letters', 'digits again']
    """
    parts = record["stream"]
    return [f"{name} again" if name in parts[:number] else name for number, name in enumerate(parts)]


def total_errors(record: Record) -> dict[str, float]:
    """Mean errors over the whole stream."""
    parts = record["parts"]
    return {name: sum(part["all"][name] for part in parts) / len(parts) for name in (PTNCN, LSTM, "copy")}


def headline(record: Record) -> str:
    """The main result."""
    errors, winners = total_errors(record), [winner(part["all"]) for part in record["parts"]]
    counts = {name: winners.count(name) for name in (PTNCN, LSTM)}
    best = max(counts, key=lambda name: counts[name])
    other = LSTM if best == PTNCN else PTNCN
    if counts[best] == counts[other]:
        result = "Neither learner was clearly better"
    elif counts[best] == len(winners):
        result = f"The {NAMES[best]} predicted better in all {len(winners)} parts of the stream"
    else:
        result = f"The {NAMES[best]} predicted better in {counts[best]} of the {len(winners)} parts of the stream"
        rest = {f"the {NAMES[other]}": counts[other], "neither": winners.count(None)}
        result += "".join(f", {learner} in {number}" for learner, number in rest.items() if number)
    return (
        f"**{result}.** Over the whole stream the squared error per frame is {errors[PTNCN]:.1f} for the "
        f"{NAMES[PTNCN]}, {errors[LSTM]:.1f} for the {NAMES[LSTM]} and {errors['copy']:.1f} for repeating the last "
        "frame."
    )


def plain_headline(record: Record) -> str:
    """The headline for a terminal."""
    return headline(record).replace("**", "")


def learning(record: Record) -> str:
    """How soon each learner beat repeating the last frame."""
    curve = record["curve"]
    block = curve["frames"][1] - curve["frames"][0]
    clauses = []
    for name in (PTNCN, LSTM):
        passed = next((n for n, (e, c) in enumerate(zip(curve[name], curve["copy"], strict=True)) if e < c), None)
        when = "never" if passed is None else f"within {(passed + 1) * block:,} frames"
        clauses.append(f"{NAMES[name]}: {when}")
    return f"**Learning from scratch.** How soon does a learner beat repeating the last frame? {', '.join(clauses)}."


def changing(record: Record) -> str:
    """Errors in the first frames after each change."""
    clauses = []
    for name, part in list(zip(part_names(record), record["parts"], strict=True))[1:]:
        first = part["first"]
        shares = (f"{NAMES[each]} {share(first[each], first['copy'])}" for each in (PTNCN, LSTM))
        clauses.append(f"{name}: {', '.join(shares)}")
    return (
        f"**Right after a change.** Error over the first {record['first']:,} frames, relative to repeating the last "
        f"frame: {'; '.join(clauses)}."
    )


def returning(record: Record) -> str:
    """The error when the first dataset returns, compared with the start and end of its first part."""
    then, again = record["parts"][0], record["parts"][-1]
    clauses = []
    for name in (PTNCN, LSTM):
        start, end, now = (part[name] / part["copy"] for part in (then["first"], then["last"], again["first"]))
        comparison = "better than" if now < end * (1 - TIE) else "worse than" if now > end * (1 + TIE) else "as well as"
        clauses.append(
            f"the {NAMES[name]} starts at {now:.0%}, {comparison} it had ended "
            f"({end:.0%}; it first began at {start:.0%})"
        )
    return f"**When the {then['dataset']} return**, {'; '.join(clauses)}, all relative to repeating the last frame."


def frozen(record: Record) -> str:
    """Errors on the second dataset before learning it."""
    datasets, evaluations = record["datasets"], record["evaluations"]
    column = datasets.index(record["stream"][1])
    ptncn, lstm = (evaluations[name][1][column] for name in (PTNCN, LSTM))
    return (
        f"**Never seen before.** After learning only {record['stream'][0]}, with weights frozen, the error on "
        f"{datasets[column]} is {ptncn:.1f} for the {NAMES[PTNCN]}, {lstm:.1f} for the {NAMES[LSTM]} and "
        f"{evaluations['copy'][0][column]:.1f} for repeating the last frame."
    )


def correcting(record: Record) -> str:
    """The effect of correcting states while weights are frozen, over all evaluations but the first."""
    count = len(record["stream"]) * len(record["datasets"])
    corrected, without = (sum(map(sum, record["evaluations"][name][1:])) / count for name in (PTNCN, UNCORRECTED))
    gain = without / corrected - 1
    effect = "makes hardly any difference" if abs(gain) <= TIE else "helps" if gain > 0 else "hurts"
    return (
        f"**Frozen weights, adapting states.** Even with frozen weights the {NAMES[PTNCN]} corrects its state after "
        f"each frame. Here that {effect}: the mean error over all evaluations is {corrected:.1f} with correction and "
        f"{without:.1f} without. (While learning, it always corrects.)"
    )


def forgetting(record: Record) -> str:
    """The change of the error on the first dataset while others were learnt."""
    dataset = record["stream"][0]
    column, away = record["datasets"].index(dataset), len(record["stream"]) - 1
    clauses = []
    for name in (PTNCN, LSTM):
        before, after = record["evaluations"][name][1][column], record["evaluations"][name][away][column]
        outcome = (
            "forgot nothing"
            if after <= before * (1 + TIE)
            else f"forgot some, with {after / before - 1:.0%} more error"
        )
        clauses.append(f"the {NAMES[name]} {outcome} ({before:.1f}, then {after:.1f})")
    between = " and ".join(record["stream"][1:away])
    return f"**Forgetting.** Error on unseen {dataset}, before and after learning {between}: {'; '.join(clauses)}."


def cost(record: Record) -> str:
    """Time and size."""
    ptncn, lstm = (record["learners"][name] for name in (PTNCN, LSTM))
    stride, window = (lstm["options"][name] for name in ("stride", "window"))
    return (
        f"**Cost.** The {NAMES[PTNCN]} has {ptncn['weights']:,} weights, takes {ptncn['milliseconds']:.2f} ms per "
        f"frame and updates at every frame. The {NAMES[LSTM]} has {lstm['weights']:,} weights, takes "
        f"{lstm['milliseconds']:.2f} ms per frame and updates every {stride} frames, unrolling the last {window}."
    )


def lstm_wins(record: Record) -> str:
    """Every comparison that the LSTM won."""
    clauses = []
    for name, part in zip(part_names(record), record["parts"], strict=True):
        for span, phrase in (("all", "all of"), ("first", "the first frames of"), ("last", "the last frames of")):
            if winner(part[span]) == LSTM:
                clauses.append(f"{phrase} {name}")
    evaluated = [winner(pair) for pair in evaluation_pairs(record)]
    return (
        f"While learning, the {NAMES[LSTM]} was better in {len(clauses) or 'none'} of {3 * len(record['parts'])} "
        f"comparisons{': ' * bool(clauses)}{', '.join(clauses)}. With frozen weights it was better in "
        f"{evaluated.count(LSTM) or 'none'} of {len(evaluated)} evaluations, and the {NAMES[PTNCN]} in "
        f"{evaluated.count(PTNCN) or 'none'}."
    )


def evaluation_pairs(record: Record) -> list[dict[str, float]]:
    """Errors of both learners in every evaluation after the first part or later."""
    return [
        {name: record["evaluations"][name][row][column] for name in (PTNCN, LSTM)}
        for row in range(1, len(record["stream"]) + 1)
        for column in range(len(record["datasets"]))
    ]


def online_lead(record: Record) -> str | None:
    """Why the P-TNCN leads while learning but not when frozen; None if it does not."""
    online = [winner(part["all"]) for part in record["parts"]]
    evaluated = [winner(pair) for pair in evaluation_pairs(record)]
    if online.count(PTNCN) > online.count(LSTM) and evaluated.count(PTNCN) < evaluated.count(LSTM):
        return (
            f"The {NAMES[PTNCN]} leads while it learns but not with frozen weights: its updates at every frame are "
            "part of how it predicts."
        )
    return None
