"""Renders the templates of the pages."""

from datetime import UTC, datetime
from importlib import resources
from typing import Any

from markupsafe import Markup

from neardup.evaluation.labelling.criteria import NAMES
from neardup.evaluation.rules.audits import SAMPLES
from neardup.page import name_of
from neardup.report import environment, prose
from neardup.report.samples import instant
from neardup.rules import why_refused
from streams.views.charts import over_time
from streams.views.health import ago
from streams.views.lists import Facts, family_name


def _share(part: int, whole: int) -> str:
    return prose.percent(part / whole) if whole else ""


def _short(url: str) -> str:
    """Cut the middle of a long URL for display; links keep the whole URL. A document is shown by its id."""
    return prose.short(name_of(url))


def _labelled(time: Facts) -> list[tuple[str, Facts]]:
    form = "%d %b %H:00" if time["span_hours"] == 1 else "%d %b %Y"
    return [(datetime.fromtimestamp(span["from"] / 1000, UTC).strftime(form), span["kinds"]) for span in time["spans"]]


_environment = environment("streams.views")
_environment.filters |= {"instant": instant, "short": _short}
_environment.globals |= {
    "kinds": prose.KINDS,
    "samples": SAMPLES,
    "judgement_names": NAMES,
    "form_token": "",
    "sent": (),
    "labels_taken": False,
    "share": _share,
    "family_name": family_name,
    "ago": ago,
    "refusal": why_refused,
    "time_chart": lambda time: over_time("Verdicts over time", _labelled(time)),
}


def html(template: str, facts: Facts | None, **more: Any) -> str:
    """Render a template. facts: None: nothing is known."""
    return _environment.get_template(f"{template}.html.j2").render(facts=facts, **more)


def style() -> str:
    """Return the report's style sheet and that of the views."""
    report = resources.files("neardup.report").joinpath("report.css").read_text(encoding="utf-8")
    return Markup(report + resources.files("streams.views").joinpath("views.css").read_text(encoding="utf-8"))
