"""Limits that depend on each other, and the conditions between them. Change them here only.

A page id is the position of a page in the sketch log: `offset of its message << PLACE_BITS | position in the message`.
Ids are stored in 6 bytes, so the log can have 2 ** 36 messages.
"""

PAGE_ID_BITS = 48
PLACE_BITS = 12
PAGE_ID_MAX = (1 << PAGE_ID_BITS) - 1

#: Limits of a message of the sketch log: pages, and bytes of records.
MESSAGE_PAGES_MAX = 512
MESSAGE_BYTES_MAX = 900_000
#: Bytes of a message besides its records: a head of 48, 4 for each length, 36 for each of up to 1,000 ranges.
MESSAGE_FRAMING_BYTES = 48 + 4 * MESSAGE_PAGES_MAX + 36 * 1_000
#: Message size that the client and the topic of the sketch log must admit. A broker's default is 48,588 greater.
LOG_RECORD_BYTES_MIN = 1_000_000
#: Bytes that Kafka may add to key, value and headers: the batch's header and the lengths are under 200 bytes.
KAFKA_FRAMING_BYTES = 1_024

#: Bytes of a body that are sketched. The scheme's default.
BODY_BYTES_MAX = 10_000_000
#: Bytes of a normalised URL; a longer one is rejected. The scheme's default.
URL_BYTES_MAX = 2_048
#: Bytes of a record of `pages`: a body of that size, its URL and headers. `pages.rejected` adds the reason and source.
PAGE_RECORD_BYTES_MAX = 10_485_760
REJECTED_EXTRA_BYTES = 65_536

#: Bytes of a line of a file of verdicts. A line is some 2 kB; evidence and titles are bounded.
VERDICT_LINE_BYTES_MAX = 1_000_000

#: Fetch and log times are milliseconds since 1970.
DAY_MS = 24 * 60 * 60 * 1000

#: HTTP statuses of a URL that is gone for good.
GONE_STATUSES = (404, 410)
#: HTTP statuses of success whose answer is not the page: without a body (204, 205), a part or a difference of it (206,
#: 226), or about other things (207, 208).
NO_PAGE_STATUSES = (204, 205, 206, 207, 208, 226)

assert MESSAGE_PAGES_MAX <= 1 << PLACE_BITS, "each page of a message has a place"
assert MESSAGE_BYTES_MAX + MESSAGE_FRAMING_BYTES + KAFKA_FRAMING_BYTES <= LOG_RECORD_BYTES_MIN, "a full message fits"
assert PAGE_RECORD_BYTES_MAX >= BODY_BYTES_MAX + 65_536 + KAFKA_FRAMING_BYTES, "the largest body fits with its headers"
