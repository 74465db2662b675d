"""Numbers as texts, and the codes of a report as sentences in the reader's language."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext, pgettext

from evalsite.names import join_sentences, with_names
from evalsite.rounding import adding_up, exact, fixed, fixed_percent, significant
from evalsite.templatetags.show import NONE, number, percents
from judging.core.charts.axis import percent_texts, tick_text
from judging.core.statistics.frame import REFERENCE
from judging.core.values import value_texts

NAMES_SHOWN = 3
MOST_EXCLUSIONS = 20  # listed individually
ROUNDING = 1e-9
LARGE = 1e6
NARROW = 2  # scales up to this width are shown with a third decimal


def decimal(value: float | None, places: int = 3) -> str:
    """A number with exactly `places` decimals, so that columns align; very large and very small ones with four
    significant digits."""
    if value is None:
        return NONE
    size = abs(value)
    outside = size >= LARGE or 0 < size < 0.5 * 10**-places
    text = significant(value, 4) if outside else fixed(value, places)
    return text.replace("-", "−")


def signed(value: float | None) -> str:
    """A difference with its sign."""
    return f"+{decimal(value)}" if value is not None and value > 0 else decimal(value)


def shares_signed(shares: Sequence[float], difference: float, places: int = 3) -> list[str]:
    """The shares of a difference with their signs, rounded so that they add up to it."""
    rounded = adding_up(shares, difference, places)
    return [f"{'+' if value > 0 else ''}{fixed(value, places)}".replace("-", "−") for value in rounded]


def interval(low: float | None, high: float | None, places: int = 3) -> str:
    """Both ends, or a dash if one is missing."""
    return NONE if low is None or high is None else f"[{decimal(low, places)}, {decimal(high, places)}]"


def beside(figure: str, interval: str) -> str:
    """A figure with its interval in one text; alone if there is none, as too few items have none."""
    return figure if interval in ("", NONE) else f"{figure} {interval}"


def share_interval(low: float | None, high: float | None) -> str:
    """The interval of a share, in percent."""
    if low is None or high is None:
        return NONE
    return f"[{fixed_percent(low, 1)}, {fixed_percent(high, 1)}]".replace("-", "−")


def kappa(value: float | None) -> str:
    """An agreement or correlation with two decimals."""
    return NONE if value is None else fixed(value, 2).replace("-", "−")


@dataclass(frozen=True, slots=True)
class ValueFormat:
    """Format of a metric's values: rates as percentages, scores with decimals that depend on the scale. Without a
    declared scale, very large and very small scores are not rounded to these decimals."""

    rate: bool = False
    places: int = 2
    scaled: bool = False

    @classmethod
    def of(cls, kind: str | None, low: float | None, high: float | None) -> ValueFormat:
        scaled = low is not None and high is not None and max(abs(low), abs(high)) < LARGE
        narrow = low is not None and high is not None and high - low <= NARROW
        return cls(rate=kind == "bool", places=3 if narrow else 2, scaled=scaled)

    def text(self, value: float | None) -> str:
        if value is None:
            return NONE
        if self.rate:
            return percents(fixed_percent(value, 1).replace("-", "−"))
        return self._score(value)

    def _score(self, value: float) -> str:
        return fixed(value, self.places).replace("-", "−") if self.scaled else decimal(value, self.places)

    def signed(self, value: float | None) -> str:
        """A difference with its sign and its unit: for rates, percentage points."""
        return self.in_points(self.signed_number(value))

    def signed_number(self, value: float | None) -> str:
        """The same without the unit."""
        text = self.difference(value)
        return f"+{text}" if value is not None and value > 0 else text

    def in_points(self, difference: str) -> str:
        """A difference of rates as percentage points; others, and one that is missing, unchanged."""
        return _("%(n)s\xa0pp") % {"n": difference} if self.rate and difference != NONE else difference

    def difference(self, value: float | None) -> str:
        """The number of a difference, without a plus and a unit."""
        if value is None:
            return NONE
        return fixed(exact(value) * 100, 1).replace("-", "−") if self.rate else self._score(value)

    def interval(self, low: float | None, high: float | None) -> str:
        if self.rate:
            return share_interval(low, high)
        return NONE if low is None or high is None else f"[{self._score(low)}, {self._score(high)}]"

    def ticks(self, values: Sequence[float]) -> list[str]:
        """The labels of an axis' ticks."""
        if self.rate:
            return list(map(percents, percent_texts(values)))
        return [tick_text(value).replace("-", "−") for value in values]


def kind_name(kind: str | None) -> str:
    """The type of a metric's values."""
    return {"number": _("numbers"), "bool": _("pass or fail"), "category": _("categories")}.get(
        kind or "", ""
    )


def candidate_label(name: str) -> str:
    """A candidate's name; a comparison's other side may be the row's reference."""
    return _("Reference") if name == REFERENCE else name


def names_of(names: Sequence[str], shown: int = NAMES_SHOWN) -> str:
    """The names as a list in a sentence; of more than `shown`, the first ones and the number of others."""
    comma, names = pgettext("between names", ", "), [candidate_label(name) for name in names]
    if len(names) > shown:
        rest = len(names) - shown + 1
        return with_names(
            _("%(names)s and %(n)s others"), {"names": comma.join(names[: shown - 1]), "n": rest}
        )
    if len(names) == 1:
        return names[0]
    return with_names(_("%(names)s and %(last)s"), {"names": comma.join(names[:-1]), "last": names[-1]})


def note_sentences(
    cells: Mapping[str, Mapping[str, Any]], sides: Sequence[Mapping[str, Any]] = ()
) -> list[str]:
    """Warnings about a metric's figures, with the candidates concerned. `sides`: its entries in `side_by_side`."""
    concerned: dict[str, list[str]] = {}
    only_b: dict[str, Mapping[str, Any]] = {}
    for candidate, cell in cells.items():
        for code in cell["notes"]:
            compared = next((side for side in sides if candidate in side["candidates"]), None)
            if code == "nothing_scored" and compared:
                only_b[candidate] = compared["candidates"][candidate]
            else:
                concerned.setdefault(code, []).append(candidate)
    notes = [
        _("%(names)s: %(sentence)s")
        % {"names": _concerned(names, cells), "sentence": _note(code, names, cells)}
        for code, names in concerned.items()
    ]
    return [*notes, *(_second_only(name, outcomes) for name, outcomes in only_b.items())]


def _second_only(name: str, outcomes: Mapping[str, Any]) -> str:
    """What a candidate has that is the second answer of all its pairs."""
    sentence = _(
        "%(name)s is the second answer in all its pairs: %(wins)s won, %(ties)s tied, %(losses)s lost, %(unsettled)s "
        "unsettled."
    )
    counts = {key: number(outcomes[key]) for key in ("wins", "ties", "losses", "unsettled")}
    return sentence % {"name": name, **counts}


def cluster_sentences(cells: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """A note that related items are not counted as independent."""
    together = [cell for cell in cells.values() if cell["clusters"] < cell["items"]]
    if not together:
        return []
    counts = {"n": number(max(cell["clusters"] for cell in together))}
    sentence = _("Items of one conversation or cluster are not independent: intervals are over %(n)s groups.")
    return [sentence % counts]


def _concerned(names: list[str], cells: Mapping[str, Any]) -> str:
    return (
        _("All candidates") if 1 < len(names) == len(cells) else pgettext("between names", ", ").join(names)
    )


def _note(code: str, names: list[str], cells: Mapping[str, Mapping[str, Any]]) -> str:
    if code == "off_scale":
        count = sum(cells[name]["off_scale"] for name in names)
        return ngettext(
            "%(n)s score is outside the metric's scale and counts as is.",
            "%(n)s scores are outside the metric's scale and count as is.",
            count,
        ) % {"n": number(count)}
    if code == "mixed_kinds":
        kind = kind_name(cells[names[0]]["kind"])
        return _("mixed value types; statistics use only one type: %(kind)s.") % {"kind": kind}
    if code == "no_variation" and all(cells[name]["ci_low"] is None for name in names):
        return _("all items have the same score, and without a declared scale there is no interval.")
    return {
        "nothing_scored": _("no scores, so there are no statistics."),
        "one_unit": _("only one independent item; the interval of a mean needs three."),
        "two_units": _("only two independent items; the interval of a mean needs three."),
        "few_items": _("fewer than 30 items, so the figures are uncertain."),
        "few_clusters": _("fewer than 30 independent groups of items, so the figures are uncertain."),
        "no_variation": _(
            "all items have the same score, so the sample shows no variation. This doesn't prove there is none."
        ),
    }[code]


def verdict(pair: Mapping[str, Any]) -> str:
    """Whether the two candidates differ significantly, as text."""
    if pair["distinguishable"] is None:
        return _("too few shared items")
    if not pair["distinguishable"]:
        return _("no significant difference")
    return with_names(_("%(name)s is higher"), {"name": pair["a"] if pair["difference"] > 0 else pair["b"]})


def pair_summary(pairs: list[Mapping[str, Any]]) -> str:
    """How many of a metric's pairs do not differ significantly, and for how many that is unknown."""
    tested = [pair for pair in pairs if pair["distinguishable"] is not None]
    return join_sentences(
        filter(None, (_alike_sentence(tested), _too_few_sentence(len(pairs) - len(tested))))
    )


def _alike_sentence(tested: list[Mapping[str, Any]]) -> str:
    alike = sum(pair["distinguishable"] is False for pair in tested)
    if not alike:
        return ""
    if len(tested) == 1:
        return _("The pair does not differ significantly.")
    if alike == len(tested):
        return _("None of the %(total)s pairs differ significantly.") % {"total": number(len(tested))}
    counts = {"n": number(alike), "total": number(len(tested))}
    return _("%(n)s of %(total)s pairs do not differ significantly.") % counts


def _too_few_sentence(count: int) -> str:
    text = ngettext("%(n)s pair shares too few items.", "%(n)s pairs share too few items.", count)
    return text % {"n": number(count)} if count else ""


def left_out_sentences(left_out: Mapping[str, Any], *, named: bool = True) -> list[str]:
    """Rows that the run does not cover, what reviewers excluded, and why. `named`: also who excluded it."""
    sentences = []
    if count := left_out["bad_rows"]:
        text = ngettext("%(n)s invalid row.", "%(n)s invalid rows.", count)
        sentences.append(text % {"n": number(count)})
    if left_out["not_read_to_its_end"]:
        sentences.append(_("Rest of the file (incomplete)."))
    if count := left_out["rows_not_drawn"]:
        text = ngettext(
            "%(n)s row not sampled (seed %(seed)s).",
            "%(n)s rows not sampled (seed %(seed)s).",
            count,
        )
        sentences.append(text % {"n": number(count), "seed": left_out["seed"]})
    if count := left_out["rows_without_answers"]:
        text = ngettext(
            "%(n)s row without answers from these candidates.",
            "%(n)s rows without answers from these candidates.",
            count,
        )
        sentences.append(text % {"n": number(count)})
    if count := left_out["pairs_without_answers"]:
        text = ngettext(
            "%(n)s pair of candidates not compared, because an answer is missing.",
            "%(n)s pairs of candidates not compared, because an answer is missing.",
            count,
        )
        sentences.append(text % {"n": number(count)})
    if count := left_out.get("sealed"):
        sentences.append(sealed_sentence(count))
    if count := left_out.get("sent_by_rule"):
        text = ngettext(
            "%(n)s rating of an answer that a rule sent, left out because no draw chose it.",
            "%(n)s ratings of answers that a rule sent, left out because no draw chose them.",
            count,
        )
        sentences.append(text % {"n": number(count)})
    if named:
        return sentences + [
            _excluded_sentence(exclusion) for exclusion in left_out["excluded_by"][:MOST_EXCLUSIONS]
        ]
    if count := left_out["excluded"]:
        text = ngettext("%(n)s judgement excluded.", "%(n)s judgements excluded.", count)
        sentences.append(text % {"n": number(count)})
    return sentences


def sealed_sentence(count: int) -> str:
    """How many labels of people are left out because their test is sealed."""
    text = ngettext(
        "%(n)s rating in a sealed test, left out until it is opened.",
        "%(n)s ratings in a sealed test, left out until it is opened.",
        count,
    )
    return text % {"n": number(count)}


def _excluded_sentence(exclusion: Mapping[str, Any]) -> str:
    text = ngettext(
        "%(n)s judgement excluded by %(by)s: %(reason)s",
        "%(n)s judgements excluded by %(by)s: %(reason)s",
        exclusion["judgements"],
    )
    return text % {"n": number(exclusion["judgements"]), "by": exclusion["by"], "reason": exclusion["reason"]}


def overridden(document: Mapping[str, Any]) -> int:
    """Number of values set by reviewers."""
    return sum(cell["overridden"] for metrics in document["candidates"].values() for cell in metrics.values())


def overridden_sentence(document: Mapping[str, Any]) -> str:
    """States how many values reviewers set, and that they count; '' for none."""
    count = overridden(document)
    if not count:
        return ""
    return ngettext(
        "%(n)s score was overridden by a reviewer. The report uses the overridden score.",
        "%(n)s scores were overridden by reviewers. The report uses the overridden scores.",
        count,
    ) % {"n": number(count)}


def author_name(author: str) -> str:
    """Label of an author: translated for the document's special authors, else the judge's name."""
    names = {
        "people": _("people"),
        "rules": _("rules"),
        "script": _("script"),
        "combined": _("judges combined"),
    }
    return names.get(author, author)


def without_variation(agreement: Mapping[str, Any]) -> str:
    """Why kappa is meaningless for a judge; '' if it is not."""
    kappas = [agreement[name] for name in ("kappa", "kappa_weighted") if agreement[name]]
    counts = agreement["confusion"]
    if not counts or any(abs(value) > ROUNDING for value in kappas):
        return ""
    judge = sum(any(row) for row in counts) == 1
    other = sum(any(column) for column in zip(*counts, strict=True)) == 1
    if judge and other:
        return _("Neither side varies, so κ is undefined.")
    if judge:
        return _("The judge gave all of these answers the same value, so κ says nothing.")
    if not other:
        return ""
    if agreement["against"] == "people":
        return _("People gave all of these answers the same value, so κ says nothing about the judge.")
    return _("The other judge gave all of these answers the same value, so κ says nothing.")


def label_text(label: str | float) -> str:
    """A value as written in tables and charts."""
    if isinstance(label, str):
        return label
    return (significant(label, 3) if abs(label) < 1000 else fixed(label)).replace("-", "−")


def label_texts(labels: Sequence[str | float]) -> list[str]:
    """The values of a column, or along a side of a matrix: with equal decimals."""
    texts = zip(labels, value_texts(labels), strict=True)
    return [text if isinstance(label, str) else text.replace("-", "−") for label, text in texts]


def level_name(level: str) -> str:
    """The level of measurement that alpha assumes."""
    return {"nominal": _("nominal"), "ordinal": _("ordinal"), "interval": _("interval")}.get(level, level)


def refusal(code: str) -> str:
    """Why there is no corrected mean."""
    return {
        "not_random": _("the rated items are not a random sample"),
        "too_few": _("fewer than 20 rated rows"),
        "unrated_stratum": _("no answer of one stratum has been rated yet"),
        "few_passes": _("fewer than 10 passes by people in the licence's test"),
        "few_failures": _("fewer than 10 failures by people in the licence's test"),
        "few_rows": _("fewer than 20 rows in the licence's test"),
        "uninformed": _("the judge tells passes from failures too poorly in the licence's test"),
        "lapsed": _("the judge's licence has lapsed"),
        "suspended": _("the judge's licence is suspended"),
    }.get(code, code)


def step_names(a: str, b: str) -> dict[str, str]:
    """Labels of the five verdicts on a pair."""
    a, b = candidate_label(a), candidate_label(b)
    return {
        "A>>B": with_names(_("%(name)s much better"), {"name": a}),
        "A>B": with_names(_("%(name)s better"), {"name": a}),
        "A=B": _("tie"),
        "B>A": with_names(_("%(name)s better"), {"name": b}),
        "B>>A": with_names(_("%(name)s much better"), {"name": b}),
    }
