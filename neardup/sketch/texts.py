"""The texts of a sketch record, as both of its readers name them (`header` for matching, `view` for all else)."""

from neardup.sketch.layout import RecordKind, RecordSection


class RecordTexts:
    """Decoded when asked for, by the reader's `_text`."""

    __slots__ = ()

    def _is(self, kind: RecordKind) -> bool:
        raise NotImplementedError

    def _text(self, section: RecordSection) -> str:
        raise NotImplementedError

    @property
    def url(self) -> str:
        """Normalised; of a rejected page as it came, cut."""
        return self._text(RecordSection.URL)

    @property
    def title(self) -> str:
        """At most title_bytes_max bytes, white space collapsed."""
        return self._text(RecordSection.TITLE)

    @property
    def canonical(self) -> str:
        """Normalised URL of rel=canonical, or empty."""
        return self._text(RecordSection.CANONICAL)

    @property
    def lang(self) -> str:
        return self._text(RecordSection.LANG)

    @property
    def reason(self) -> str:
        """Why a page was rejected."""
        return self._text(RecordSection.REASON) if self._is(RecordKind.REJECTED) else ""
