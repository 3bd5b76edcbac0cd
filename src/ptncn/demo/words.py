"""What happened, in plain words: every sentence is made from the numbers, whoever was better."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ptncn.demo.contestants import LSTM, NAMES, PTNCN
from ptncn.demo.life import UNCORRECTED

Record = Mapping[str, Any]
ORDINALS = ("first", "second", "third", "fourth")
TIE = 0.01
"""Errors that differ by less than this share are called equal."""


def share(error: float, copy: float) -> str:
    """
    >>> share(15.0, 20.0)
    '75%'
    """
    return f"{error / copy:.0%}"


def winner(errors: Mapping[str, float]) -> str | None:
    """Whose error is the smaller one; None where there is no difference worth the name.

    >>> winner({"ptncn": 1.0, "lstm-tbptt": 2.0}), winner({"ptncn": 1.0, "lstm-tbptt": 1.005})
    ('ptncn', None)
    """
    ours, theirs = errors[PTNCN], errors[LSTM]
    if abs(ours - theirs) <= TIE * max(ours, theirs):
        return None
    return PTNCN if ours < theirs else LSTM


def part_names(record: Record) -> list[str]:
    """
    >>> part_names({"life": ["digits", "letters", "digits"]})
    ['digits', 'letters', 'digits again']
    """
    life = record["life"]
    return [f"{world} again" if world in life[:part] else world for part, world in enumerate(life)]


def life_errors(record: Record) -> dict[str, float]:
    """Mean error of the whole life."""
    parts = record["parts"]
    return {name: sum(part["all"][name] for part in parts) / len(parts) for name in (PTNCN, LSTM, "copy")}


def headline(record: Record) -> str:
    """The one sentence that is told first."""
    errors, won = life_errors(record), [winner(part["all"]) for part in record["parts"]]
    counts = {name: won.count(name) for name in (PTNCN, LSTM)}
    best = max(counts, key=lambda name: counts[name])
    other = LSTM if best == PTNCN else PTNCN
    if counts[best] == counts[other]:
        told = "Neither was clearly better"
    elif counts[best] == len(won):
        told = f"The {NAMES[best]} predicted better in all {len(won)} parts of the life"
    else:
        told = f"The {NAMES[best]} predicted better in {counts[best]} of the {len(won)} parts of the life"
        rest = {f"the {NAMES[other]}": counts[other], "neither": won.count(None)}
        told += "".join(f", {who} in {number}" for who, number in rest.items() if number)
    return (
        f"**{told}.** Over the whole life the {NAMES[PTNCN]}'s error is {errors[PTNCN]:.1f} a frame, "
        f"the {NAMES[LSTM]}'s {errors[LSTM]:.1f}; repeating the last frame makes {errors['copy']:.1f}."
    )


def learning(record: Record) -> str:
    """How soon each began to know more than the last frame."""
    curve = record["curve"]
    block = curve["frames"][1] - curve["frames"][0]
    told = []
    for name in (PTNCN, LSTM):
        passed = next((n for n, (e, c) in enumerate(zip(curve[name], curve["copy"], strict=True)) if e < c), None)
        when = "never did" if passed is None else f"did so within {(passed + 1) * block:,} frames"
        told.append(f"the {NAMES[name]} {when}")
    return f"**Learning from nothing.** To be better than repeating the last frame takes practice: {', '.join(told)}."


def changing(record: Record) -> str:
    """The first frames of each new world."""
    told = []
    for name, part in list(zip(part_names(record), record["parts"], strict=True))[1:]:
        first = part["first"]
        shares = (f"{NAMES[each]} {share(first[each], first['copy'])}" for each in (PTNCN, LSTM))
        told.append(f"{name}: {', '.join(shares)}")
    return (
        f"**When the world changes**, the first {record['first']:,} frames cost, as a share of repeating the last "
        f"frame: {'; '.join(told)}."
    )


def returning(record: Record) -> str:
    """The first frames of the world that came twice, at its first time and at its second."""
    world, again = record["parts"][0], record["parts"][-1]
    told = []
    for name in (PTNCN, LSTM):
        then, left, now = (part[name] / part["copy"] for part in (world["first"], world["last"], again["first"]))
        how = "better than" if now < left * (1 - TIE) else "worse than" if now > left * (1 + TIE) else "as well as"
        told.append(
            f"the {NAMES[name]} begins at {now:.0%}, {how} it had left off ({left:.0%}; it was born with {then:.0%})"
        )
    return f"**When {world['world']} come back**, {'; '.join(told)}. These are shares of repeating the last frame."


def frozen(record: Record) -> str:
    """What weights that never saw the second world make of it."""
    worlds, looks = record["worlds"], record["looks"]
    place = worlds.index(record["life"][1])
    ours, theirs = (looks[name][1][place] for name in (PTNCN, LSTM))
    return (
        f"**Never seen, never learnt.** After {record['life'][0]} alone, with learning switched off, unseen "
        f"{worlds[place]} cost the {NAMES[PTNCN]} {ours:.1f} a frame, the {NAMES[LSTM]} {theirs:.1f}, and repeating "
        f"the last frame {looks['copy'][0][place]:.1f}."
    )


def correcting(record: Record) -> str:
    """What the correction of states is worth when weights are frozen: the mean of all looks but the first."""
    ours, without = (
        sum(map(sum, record["looks"][name][1:])) / (len(record["life"]) * len(record["worlds"]))
        for name in (PTNCN, UNCORRECTED)
    )
    gain = without / ours - 1
    told = "that hardly matters" if abs(gain) <= TIE else f"that {'helps' if gain > 0 else 'harms'}"
    return (
        f"**Frozen weights, living states.** The {NAMES[PTNCN]} corrects its state at every frame by what it got "
        f"wrong, even when its weights are frozen, and {told}: the mean of all looks is {ours:.1f}, and {without:.1f} "
        "when the same weights do without correction, which they never did while they learnt."
    )


def forgetting(record: Record) -> str:
    """What became of the first world while others were learnt."""
    world = record["life"][0]
    place, away = record["worlds"].index(world), len(record["life"]) - 1
    told = []
    for name in (PTNCN, LSTM):
        before, after = record["looks"][name][1][place], record["looks"][name][away][place]
        how = "forgot nothing" if after <= before * (1 + TIE) else f"forgot some: {after / before - 1:.0%} more error"
        told.append(f"the {NAMES[name]} {how} ({before:.1f}, then {after:.1f})")
    between = " and ".join(record["life"][1:away])
    return f"**Forgetting.** Unseen {world} before and after the {between}, with frozen weights: {'; '.join(told)}."


def cost(record: Record) -> str:
    """Time and size."""
    both = [record["learners"][name] for name in (PTNCN, LSTM)]
    stride, window = (both[1]["options"][name] for name in ("stride", "window"))
    return (
        f"**Cost.** {NAMES[PTNCN]}: {both[0]['weights']:,} weights, {both[0]['milliseconds']:.2f} ms a frame, an "
        f"update at each. {NAMES[LSTM]}: {both[1]['weights']:,} weights, {both[1]['milliseconds']:.2f} ms a frame, an "
        f"update every {stride} frames, for which it stores and unrolls {window}."
    )


def where_the_lstm_won(record: Record) -> str:
    """Every comparison of the page that it won, or that there is none."""
    found = []
    for name, part in zip(part_names(record), record["parts"], strict=True):
        for span, told in (("all", "all of"), ("first", "the first frames of"), ("last", "the last frames of")):
            if winner(part[span]) == LSTM:
                found.append(f"{told} {name}")
    spans = 3 * len(record["parts"])
    looks = [winner(pair) for pair in look_pairs(record)]
    return (
        f"While learning, the {NAMES[LSTM]} was better in {len(found) or 'none'} of {spans} comparisons"
        f"{': ' * bool(found)}{', '.join(found)}. With frozen weights it was better in "
        f"{looks.count(LSTM) or 'none'} of {len(looks)} looks, the {NAMES[PTNCN]} in {looks.count(PTNCN) or 'none'}."
    )


def look_pairs(record: Record) -> list[dict[str, float]]:
    """The errors of both in every look after the first part or later."""
    rows = range(1, len(record["life"]) + 1)
    return [
        {name: record["looks"][name][row][place] for name in (PTNCN, LSTM)}
        for row in rows
        for place in range(len(record["worlds"]))
    ]


def pace(record: Record) -> str | None:
    """Why a learner may lead while it learns, and not when it is frozen; None where that did not happen."""
    living = [winner(part["all"]) for part in record["parts"]]
    looks = [winner(pair) for pair in look_pairs(record)]
    if living.count(PTNCN) > living.count(LSTM) and looks.count(PTNCN) < looks.count(LSTM):
        return (
            f"The {NAMES[PTNCN]} leads while it learns, and not when it is frozen: updates at every frame are part of "
            "how it predicts, and a frozen look does without them."
        )
    return None


def plain_headline(record: Record) -> str:
    """The headline for a terminal."""
    return headline(record).replace("**", "")
