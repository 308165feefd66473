"""What all pages of HTML share: their templates, their style, and text of strangers that is safe to show."""

import base64
import hashlib
import re
from importlib import resources
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from neardup.urls import name_of
from neardup.wording import counted

if TYPE_CHECKING:
    from jinja2 import Environment

# Controls, direction overrides, line separators, characters without width or ink (soft hyphens, fillers, invisible
# tags), lone surrogates. Joiners and variation selectors stay where a script or an emoji needs them.
_JOINED = "\u0600-\u08ff\u0900-\u0dff\u0f00-\u109f\u1780-\u18af\u2190-\u2bff\ua840-\ua87f\U0001f000-\U0001faff"
_UNSAFE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\u2800\u3164\ufeff\uffa0\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e0fff]"
    f"|(?<![{_JOINED}])[\u200c\ufe00-\ufe0f]|(?<![{_JOINED}\ufe0f])\u200d|[\u200c\u200d](?![{_JOINED}])"
)


def visible(value: Any) -> Any:
    """Replaces characters that hide text or change the reading order by U+FFFD. Leaves markup alone."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return _UNSAFE.sub("\ufffd", value)
    return value


def environment(package: str) -> "Environment":
    """Loads the templates of a package and of the report. Values are escaped and passed through `visible`."""
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined  # `visible` alone does without

    made = Environment(
        loader=ChoiceLoader([PackageLoader(package, "."), PackageLoader(__package__, ".")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=visible,
    )
    made.filters |= {"name": name_of, "counted": counted}
    return made


def styled(style: str) -> dict[str, str]:
    """Returns `style` (report.css and this style) and `style_hash`, by which a page's policy allows it."""
    style = resources.files(__package__).joinpath("report.css").read_text(encoding="utf-8") + style
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return {"style": Markup(style), "style_hash": digest}
