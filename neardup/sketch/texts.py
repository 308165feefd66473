"""The texts of a sketch record, under the same names in both readers (`header` for matching, `view` for all else)."""

from neardup.sketch.layout import RecordKind, RecordSection

# Members of an enumeration cost a tenth of a microsecond each time they are asked for by name.
_URL, _TITLE, _CANONICAL = RecordSection.URL, RecordSection.TITLE, RecordSection.CANONICAL
_LANG, _REASON = RecordSection.LANG, RecordSection.REASON


class RecordTexts:
    """Text fields of a record, decoded on access by the reader's `_text`."""

    __slots__ = ()

    def _is(self, kind: RecordKind) -> bool:
        raise NotImplementedError

    def _text(self, section: RecordSection) -> str:
        raise NotImplementedError

    @property
    def url(self) -> str:
        """The normalised URL; of a rejected page the URL as received, cut."""
        return self._text(_URL)

    @property
    def title(self) -> str:
        """The title, white space collapsed, at most title_bytes_max bytes."""
        return self._text(_TITLE)

    @property
    def canonical(self) -> str:
        """The normalised URL of rel=canonical, or empty."""
        return self._text(_CANONICAL)

    @property
    def lang(self) -> str:
        return self._text(_LANG)

    @property
    def reason(self) -> str:
        """The reason for which a page was rejected."""
        return self._text(_REASON) if self._is(RecordKind.REJECTED) else ""
