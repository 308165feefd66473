"""The results as tables in Markdown: rules side by side, generators, and what each step and number is worth."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tests.measure.commons import rules

Result = Mapping[str, Any]
Counts = Counter[str]
#: A page that is hidden wrongly is lost, a missed repeat is read twice: the former counts as so many of the latter.
WRONG_WEIGHT = 3
PACKAGES = ("package", "releases", "editions")


def summed(results: Sequence[Result], form: str) -> Counts:
    return sum((Counter(one["counts"].get(form, {})) for one in results), Counter())


def per_1000(tally: Counts, what: str = "wrong") -> float:
    return 1000 * tally[what] / max(1, tally["distinct"])


def share(tally: Counts) -> float:
    return tally["near_found"] / max(1, tally["near"])


def whole_share(tally: Counts) -> float:
    """The share of all repeats, for streams whose truth is given."""
    kinds = ("exact", "near", "reframed")
    return sum(tally[f"{kind}_found"] for kind in kinds) / max(1, sum(tally[kind] for kind in kinds))


def f1(tally: Counts) -> float:
    found = sum(tally[f"{kind}_found"] for kind in ("exact", "near", "reframed"))
    repeats = sum(tally[kind] for kind in ("exact", "near", "reframed"))
    return 2 * found / max(1, found + tally["wrong"] + tally["misled"] + repeats)


def by_generator(results: Sequence[Result]) -> dict[str, list[Result]]:
    groups: dict[str, list[Result]] = defaultdict(list)
    for one in results:
        if one["kind"] in PACKAGES:
            groups[one["generator"]].append(one)
    return dict(sorted(groups.items()))


def table(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = [headings, ["---"] * len(headings), *rows]
    return "".join("| " + " | ".join(str(cell) for cell in line) + " |\n" for line in lines)


def side_by_side(results: Sequence[Result]) -> str:
    """A row for each rule."""
    of = {kind: [one for one in results if one["kind"] == kind] for kind in {one["kind"] for one in results}}
    packages = [one for one in results if one["kind"] in PACKAGES]
    groups = by_generator(results)
    forms = [name for name in (*rules.RULES, *rules.TEXT_RULES) if any(name in one["counts"] for one in results)]
    single = [one for one in results if one["kind"] in ("labelled", "slugs", "real")]
    single += [one for one in results if one["stream"].startswith("class: syndicated")]
    rows = []
    for form in forms:
        whole = summed(packages, form)
        worst = max(((per_1000(summed(some, form)), name) for name, some in groups.items()), default=(0.0, "-"))
        package = max(((per_1000(summed([one], form)), one["stream"]) for one in packages), default=(0.0, "-"))
        row = [form, f"{per_1000(whole):.2f}", f"{worst[0]:.1f} {worst[1]}", f"{package[0]:.1f} {package[1]}"]
        row += [f"{share(whole):.4f}", f"{share(summed(of.get('editions', []), form)):.4f}"]
        made = summed(of.get("made", []), form)
        row += [f"{per_1000(made):.2f}, {whole_share(made):.3f}"]
        for one in single:
            row.append(_single(one, Counter(one["counts"].get(form, {}))))
        rows.append(row)
    headings = ["rule", "wrong per 1,000", "worst generator", "worst package", "repeats found", "editions found"]
    headings += ["gate: wrong, found", *(one["stream"].removeprefix("class: ") for one in single)]
    return table(headings, rows)


def _single(one: Result, tally: Counts) -> str:
    if not tally:
        return ""
    if one["kind"] == "labelled":
        return f"F1 {f1(tally):.3f}"
    if one["kind"] == "real":
        return f"{tally['wrong']} wrong"
    return f"{whole_share(tally):.3f}"


def generators(results: Sequence[Result], form: str = rules.DEFAULT, other: str = "tape") -> str:
    """A row for each generator."""
    rows: list[Sequence[object]] = []
    for name, some in by_generator(results).items():
        tally, beside = summed(some, form), summed(some, other)
        worst = max(some, key=lambda one: per_1000(summed([one], form)))
        rows.append(
            (
                *(name, len(some), f"{tally['pages']:,}", f"{per_1000(tally):.2f}", f"{per_1000(beside):.1f}"),
                f"{per_1000(summed([worst], form)):.1f} {worst['stream']}" if tally["wrong"] else "",
                *(f"{tally['near']:,}", f"{share(tally):.4f}", f"{share(beside):.4f}"),
                *(tally["twin"], tally["edition"], tally["misled"]),
            )
        )
    headings = ("generator", "packages", "pages", "wrong per 1,000", f"`{other}`", "worst package", "repeats", "found")
    return table((*headings, f"`{other}`", "twins", "editions", "misled"), rows)


class Change(NamedTuple):
    """What a form does beside the default: pages hidden wrongly, repeats missed; negative is better."""

    wrong: int
    missed: int

    @property
    def cost(self) -> int:
        return WRONG_WEIGHT * self.wrong + self.missed


def change(results: Sequence[Result], form: str) -> Change:
    usual, tally = summed(results, rules.DEFAULT), summed(results, form)
    return Change(tally["wrong"] - usual["wrong"], usual["near_found"] - tally["near_found"])


def left_out(results: Sequence[Result]) -> str:
    """Of each step: what dropping it does, generator by generator, chosen without that generator.

    A step is *kept* by the other generators if dropping it costs them more than it saves. gain: what the choice of the
    others saved on the generators that had no part in it, beside always dropping the step.
    """
    groups = by_generator(results)
    rows: list[Sequence[object]] = []
    for step in rules.DROPPED:
        form = f"without {step.name}"
        changes = {name: change(some, form) for name, some in groups.items()}
        whole = sum(one.cost for one in changes.values())
        kept = [name for name, one in changes.items() if whole - one.cost > 0]
        gain = sum(changes[name].cost for name in kept)
        helped = {name: one.cost for name, one in changes.items() if one.cost > 0}
        harmed = {name: one.cost for name, one in changes.items() if one.cost < 0}
        made = change([one for one in results if one["kind"] == "made"], form)
        other = change([one for one in results if one["kind"] in ("public", "labelled", "slugs", "real")], form)
        wrong, missed = (sum(one[i] for one in changes.values()) for i in (0, 1))
        rows.append(
            (
                *(step.name, f"{wrong:+}", f"{missed:+}", f"{len(kept)} of {len(groups)}", f"{gain:+}"),
                *(most(helped), most(harmed), f"{made.wrong:+} {made.missed:+}", f"{other.wrong:+} {other.missed:+}"),
            )
        )
    headings = ("without", "wrong", "missed", "kept by", "gain where left out", "worth most to", "harms")
    return table((*headings, "gate", "public and labelled"), rows)


def most(costs: Mapping[str, int]) -> str:
    """The generators for which a change is largest."""
    names = sorted(costs, key=lambda name: -abs(costs[name]))[:3]
    rest = f" and {len(costs) - 3}" if len(costs) > 3 else ""
    return ", ".join(f"{name} {abs(costs[name])}" for name in names) + rest


def numbers(results: Sequence[Result]) -> str:
    """Of each number: the value that the other generators choose, and what it does where it was not chosen."""
    groups = by_generator(results)
    rows: list[Sequence[object]] = []
    for number in rules.NUMBERS:
        costs = {
            value: {name: change(some, f"{number.name}={value}").cost for name, some in groups.items()}
            for value in number.values
        }
        chosen: Counter[str] = Counter()
        gain = 0
        for name in groups:
            others = {value: sum(one.values()) - one[name] for value, one in costs.items()}
            best = min(others, key=lambda value: others[value])
            if others[best] < 0:
                chosen[str(best)] += 1
                gain -= costs[best][name]
            else:
                chosen["usual"] += 1
        cells = [f"{value}: {sum(one.values()):+} ({max(one.values()):+})" for value, one in costs.items()]
        rows.append((number.name, "; ".join(cells), dict(chosen), f"{gain:+}"))
    return table(("number", "value: cost (most in one generator)", "chosen", "gain where left out"), rows)


def report(results: Sequence[Result]) -> str:
    packages = [one for one in results if one["kind"] in PACKAGES]
    tally = summed(packages, rules.DEFAULT)
    releases = sum(one["kind"] != "package" for one in packages)
    editions = sum(one["kind"] == "editions" for one in packages)
    parts = [
        f"{len(packages)} packages by {len(by_generator(results))} generators, {releases} with releases, of these "
        f"{editions} with three. {tally['pages']:,} pages, {tally['distinct']:,} of them distinct, {tally['exact']:,} "
        f"equal to an earlier one, {tally['near']:,} repeats of another release, {tally['reframed']:,} reframed.\n",
        side_by_side(results),
        generators(results),
    ]
    if all(f"without {step.name}" in packages[0]["counts"] for step in rules.DROPPED):
        parts.append(left_out(results))
    if all(f"{number.name}={number.values[0]}" in packages[0]["counts"] for number in rules.NUMBERS):
        parts.append(numbers(results))
    return "\n".join(parts)
