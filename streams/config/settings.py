"""The settings of the stream: each with its default, its admitted values and its help text."""

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields
from functools import cached_property
from types import MappingProxyType, NoneType
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta

from neardup.decider import ONLINE_RULES, Decider
from neardup.decider import numbers as decider_numbers
from neardup.errors import BadInput
from neardup.limits import BODY_BYTES_MAX, DAY_MS, MESSAGE_PAGES_MAX
from neardup.scheme import Scheme
from streams.config.sites import sites_of
from streams.errors import HIDDEN, credentials_in, without_credentials

Role = Literal["sketch", "match", "publish", "verdicts", "topics", "views"]

#: Roles with a [kafka.ROLE] table; `neardup run` is sketch and match together.
ROLES = ("sketch", "match", "publish", "verdicts", "topics", "views")
PREFIX = "NEARDUP_"
#: Default ports of the web pages on this machine.
LABEL_PORT, VIEWS_PORT, ASK_PORT = 8378, 8379, 8380

#: Approximate bytes of pages in a batch of a sketcher, and kilobytes that a consumer fetches in advance.
BATCH_BYTES, FETCHED_KB_MAX = 32_000_000, 62_500
#: Most addresses of metrics.
ADDRESSES_MAX = 32
#: How long the topics keep their records, by default.
PAGES_MS, SKETCHES_MS, VERDICTS_MS = 7 * DAY_MS, 30 * DAY_MS, 30 * DAY_MS
_CORES = min(len(os.sched_getaffinity(0)), 256)
#: Kafka's limit of a topic's name.
TOPIC_CHARS_MAX = 249
TOPIC_NAME = r"(?!\.{1,2}\Z)[A-Za-z0-9._-]{1,200}"  # Kafka's own rule, with room for a generation within its 249


@dataclass(frozen=True)
class ValueKind:
    """The admitted values of a setting, from its annotation, which msgspec checks.

    allowed: the values in words. type: annotation without None. read: makes a value of `type` of the spelling in a
    flag, a variable or TOML; raises ValueError or TypeError.
    """

    allowed: str
    type: Any
    read: Callable[[Any], Any]
    secret: bool = False

    def parse(self, raw: Any) -> Any:
        """Returns the value. Raises ValueError or TypeError for one that is not admitted."""
        return msgspec.convert(self.read(raw), self.type)


def _text(pattern: str, allowed: str, **extra: Any) -> Meta:
    """A text that matches all of a regular expression. extra: fields of `_kind`."""
    return Meta(pattern=rf"\A(?:{pattern})\Z", title=allowed, extra=extra)


def _choice(*values: str) -> Meta:
    """One of some texts; the empty one is the last, if it is one."""
    allowed = "one of " + ", ".join(value or "or nothing" for value in values)
    pattern = rf"\A(?:{'|'.join(map(re.escape, values))})\Z"
    return Meta(pattern=pattern, title=allowed, extra_json_schema={"enum": values})


def _whole(raw: Any) -> int:
    if isinstance(raw, bool) or not isinstance(raw, int | str):
        raise TypeError
    return int(raw)


def _number(raw: Any) -> float:
    if isinstance(raw, bool):
        raise TypeError
    return float(raw)


def _parts(raw: Any) -> Any:
    return [part for text in raw.split(",") if (part := text.strip())] if isinstance(raw, str) else raw


def _seed(raw: Any) -> int:
    value = int(raw, 16) if raw.lower().startswith("0x") else int(raw)
    if not 0 <= value < 1 << 64:  # beyond the limits that msgspec can check
        raise ValueError
    return value


def _same(raw: Any) -> Any:
    return raw


_READ: Mapping[Any, Callable[[Any], Any]] = {int: _whole, float: _number, tuple: _parts}


def _kind(hint: Any) -> tuple[ValueKind, str]:
    """The admitted values and the help text of an annotation: a type, its `Meta`, the text.

    The title of the `Meta` names the values; its `extra` may have `read` and `secret` of the `ValueKind`.
    """
    of_type, meta, text = get_args(hint)
    bare = next((each for each in get_args(of_type) if NoneType in get_args(of_type)), of_type)
    whole = "whole number" if bare is int else "number"
    allowed = meta.title or f"a {whole} from {meta.ge} to {meta.le}"
    extra = meta.extra or {}
    read = extra.get("read") or _READ.get(get_origin(bare) or bare, _same)
    return ValueKind(allowed, Annotated[bare, meta], read, extra.get("secret", False)), text


_Share = Annotated[float, Meta(ge=0, le=1)]
_Ms = Annotated[int, Meta(ge=1, le=3_600_000)]
_Topic = Annotated[str, _text(TOPIC_NAME, "a Kafka topic name: 1 to 200 of A-Z a-z 0-9 . _ -")]
_Token = Annotated[
    str | None, _text(r"[A-Za-z0-9._~+/=-]{16,200}", "16 to 200 letters, digits and -._~+/=", secret=True)
]
_GENERATION = _text(r"[A-Za-z0-9_-]{0,40}", "up to 40 of A-Z a-z 0-9 _ -")
_BROKER = r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):[0-9]{1,5}"
#: Addresses of brokers, and what else is asked for. librdkafka would take another port without a word.
BROKERS, BROKERS_FORM = rf"{_BROKER}(\s*,\s*{_BROKER})*", "host:port, or several with commas"
# Without the final slash s3://pages would also admit s3://pages-of-others.
_Prefix = Annotated[str, _text(r"[a-z0-9+.-]+://\S*/", "")]
# Addresses are shown, so they must not hold a user, a password or a query.
_Address = Annotated[str, _text(r"https?://[^\s/?#@]+(/[^\s?#@]*)?", "")]
_SITES = Meta(
    title='{"<registrable domain>": {"never_merge": true or false, "tape_min": 0 to 1}}, or a file of this or of TOML',
    extra={"read": sites_of},
)


def _of_decider() -> Iterator[tuple[str, tuple[ValueKind, str]]]:
    """The value kind and the help text of each number of the decider, from its field's annotation."""
    given: dict[str, Any] = {"rule": Annotated[str, _choice(*ONLINE_RULES), ""], "sites": Annotated[Any, _SITES, ""]}
    for name, number in decider_numbers().items():
        if number.limits:
            low, high = number.limits
            given[name] = Annotated[number.kind, Meta(ge=low, le=high), ""]
        yield name, (_kind(given[name])[0], number.help)


_DECIDER = dict(_of_decider())


#: How a record of the pages topic can hold a page: a file each in `streams.formats`.
CODECS = ("raw", "json", "warc")


class Topics(NamedTuple):
    """The topics of one generation; all but `pages` carry its name.

    audit: topic of sampled pairs; empty without an audit.
    """

    pages: str = "pages"
    rejected: str = "pages.rejected"
    sketches: str = "sketches"
    verdicts: str = "verdicts"
    audit: str = ""  # none


class SettingRow(NamedTuple):
    """One line of `neardup config`. value: never a secret. origin: "default" for a setting that is not set."""

    setting: str
    value: str
    origin: str
    help: str
    env: str
    flag: str  # "" for a secret, which no command line may hold
    allowed: str  # limits of a number, or the form of another value


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings in force. `load` checks them; a direct construction (in tests) does not."""

    # Input and output.
    bootstrap: Annotated[
        str,
        _text(BROKERS, BROKERS_FORM),
        "Kafka brokers from which the client learns the others",
    ] = "127.0.0.1:9092"
    generation: Annotated[str, _GENERATION, "Suffix of topics and groups"] = ""
    sketches_of: Annotated[
        str | None,
        _GENERATION,
        "Generation whose sketches this one judges; '' as an option: the unnamed one; none: its own",
    ] = None
    group: Annotated[
        str, _text(TOPIC_NAME, "1 to 200 of A-Z a-z 0-9 . _ -"), "Prefix of consumer groups and of the transactional id"
    ] = "neardup"
    topic_prefix: Annotated[
        str,
        _text(r"[A-Za-z0-9._-]{0,40}", "up to 40 of A-Z a-z 0-9 . _ -"),
        "Prefix of the names of all topics",
    ] = ""
    pages_topic: Annotated[_Topic, "Topic of fetched pages"] = "pages"
    rejected_topic: Annotated[_Topic, "Topic of rejected pages"] = "pages.rejected"
    sketches_topic: Annotated[_Topic, "Topic of sketches, the order of the crawl"] = "sketches"
    verdicts_topic: Annotated[_Topic, "Topic of verdicts"] = "verdicts"
    state: Annotated[str, _text(r"[^\0]+", "a folder"), "State directory with the index; one per generation"] = (
        "neardup-state"
    )
    codec: Annotated[str, _choice(*CODECS), "Format of records of the pages topic: raw, json or warc"] = "raw"
    body_ref_prefixes: Annotated[
        tuple[_Prefix, ...],
        Meta(title="URLs that end with a slash, with commas or as a list"),
        "URL prefixes of the bodies that records may refer to; none: such records are rejected",
    ] = ()

    # Behaviour: changes sketches (the scheme) or verdicts (the decider). A change needs a new generation, or a control
    # record in the log.
    seed: Annotated[
        int | None,
        Meta(
            title="a whole number from 0 to 18446744073709551615, or 0x and 16 hex digits",
            extra={"read": _seed, "secret": True},
        ),
        "Secret seed of the token hashes",
    ] = field(default=None, repr=False)
    body_bytes_max: Annotated[
        int, Meta(ge=1_000, le=100_000_000), "Bytes of a body that are sketched; the rest is ignored"
    ] = BODY_BYTES_MAX
    decider_values: Mapping[str, Any] = field(default_factory=dict)

    # Performance: changes no verdict.
    batch_pages: Annotated[
        int, Meta(ge=1, le=MESSAGE_PAGES_MAX), "Most pages in a batch, and in a message of the log"
    ] = MESSAGE_PAGES_MAX
    batch_ms: Annotated[int, Meta(ge=0, le=60_000), "Time that a batch waits for more pages"] = 20
    message_bytes_max: Annotated[int, Meta(ge=1_000_000, le=100_000_000), "Largest message, before compression"] = (
        1_000_000
    )
    match_messages: Annotated[int, Meta(ge=1, le=1_000), "Most messages of the log in one transaction"] = 16
    inflight_batches: Annotated[int, Meta(ge=1, le=64), "Most unacknowledged batches; then reading waits"] = 4
    threads: Annotated[int, Meta(ge=1, le=256), "Threads of the kernels"] = _CORES
    flush_ms: Annotated[_Ms, "Time between flushes of the index; after a crash, as much is folded again"] = 30_000
    transaction_timeout_ms: Annotated[
        int,
        Meta(ge=1_000, le=900_000),
        "The broker aborts a transaction after this time; raise transaction_deadline_ms with it",
    ] = 60_000
    transaction_deadline_ms: Annotated[
        int,
        Meta(ge=1_000, le=900_000),
        "A call of a transaction that takes longer ends the process; the next start recovers",
    ] = 45_000

    # Checkpoints of the index, for a lost disk.
    checkpoints: Annotated[
        str,
        _text(r"[^\0]*", "a folder or a URL that fsspec knows"),
        "Folder or URL of the checkpoints; none: no checkpoints",
    ] = ""
    checkpoint_messages: Annotated[
        int, Meta(ge=1, le=1_000_000_000), "Messages of the log between two checkpoints; a message has up to 512 pages"
    ] = 5_000
    checkpoints_kept: Annotated[int, Meta(ge=1, le=1_000), "Number of checkpoints kept; older ones are removed"] = 3

    # Auditing: changes no verdict either.
    audit_topic: Annotated[
        str,
        _text(f"({TOPIC_NAME})?", "a Kafka topic name, or nothing"),
        "Topic for the audit: pairs for people to check; written with the verdicts",
    ] = ""
    audit_rate: Annotated[_Share, "Share of the pages that the audit draws pairs from"] = 0.1
    shadow: Annotated[
        str,
        _choice(*ONLINE_RULES, ""),
        "Rule that decides nothing; its disagreements are counted",
    ] = ""
    shadow_set: Annotated[str, _text(r"[^\0]*", "NAME=NUMBER, several with commas"), "Numbers of the shadow rule"] = ""

    # Monitoring.
    stall_ms: Annotated[_Ms, "/live fails after this long without progress"] = 60_000
    hold_ms: Annotated[
        int,
        Meta(ge=0, le=3_600_000),
        "Time that the process stays, not ready, after an error that a restart does not repair",
    ] = 0
    metrics_host: Annotated[
        str, _text(r"[A-Za-z0-9.:_-]+", "a host or address"), "Address of /metrics, /live, /ready"
    ] = "127.0.0.1"
    metrics_port: Annotated[
        int, Meta(ge=0, le=65_535), "Port of /metrics, /live, /ready; 0: any free one, which the log names"
    ] = 0
    log_level: Annotated[str, _choice("debug", "info", "warning", "error"), "Lowest level that is logged"] = "info"
    log_format: Annotated[
        str, _choice("auto", "human", "json"), "Format of the log; auto: human on a terminal, else json"
    ] = "auto"

    traces: Annotated[
        str,
        _text(r"(https?://\S+)?", "an address of OTLP over HTTP, or nothing"),
        "Address for traces of pages; none: no traces",
    ] = ""
    trace_rate: Annotated[_Share, "Share of the published pages that are traced"] = 0.001

    # The views.
    views_state: Annotated[str, _text(r"[^\0]+", "a folder"), "Folder of the views' tables"] = "neardup-views"
    views_token: Annotated[_Token, "Token that requests to the views must have (Authorization: Bearer)"] = field(
        default=None, repr=False
    )
    ask_token: Annotated[_Token, "Token that requests to `neardup ask` must have (Authorization: Bearer)"] = field(
        default=None, repr=False
    )

    views_metrics: Annotated[
        tuple[_Address, ...],
        Meta(
            title=f"addresses like http://host:9464/metrics, {ADDRESSES_MAX} at most, with commas or as a list",
            max_length=ADDRESSES_MAX,
        ),
        "Addresses of the roles' metrics, for the page Health of the views; none: without metrics",
    ] = ()

    kafka_values: Mapping[str, str] = field(default_factory=dict, repr=False)
    origins: Mapping[str, str] = field(default_factory=dict)

    def _of_generation(self, name: str, generation: str | None = None) -> str:
        generation = self.generation if generation is None else generation
        return f"{name}.{generation}" if generation else name

    def _topic(self, name: str, generation: str | None = None) -> str:
        return self.topic_prefix + self._of_generation(name, generation)

    @property
    def judges_anew(self) -> bool:
        """Whether the matcher reads the sketches of another generation."""
        return self.sketches_of is not None and self.sketches_of != self.generation

    @cached_property
    def topics(self) -> Topics:
        return Topics(
            self.topic_prefix + self.pages_topic,
            self._topic(self.rejected_topic),
            self._topic(self.sketches_topic, self.sketches_of),
            self._topic(self.verdicts_topic),
            self._topic(self.audit_topic) if self.audit_topic else "",
        )

    @property
    def generations_topic(self) -> str:
        """The control topic; one for all generations."""
        return f"{self.topic_prefix}{self.group}.generations"

    def group_of(self, role: Role) -> str:
        return self._of_generation(f"{self.group}.{role}")

    @property
    def transactional_id(self) -> str:
        """The matcher's. Derived, so that two matchers of one generation always fence each other."""
        return self.group_of("match")

    def scheme(self) -> Scheme:
        """Raises BadInput without a seed."""
        if self.seed is None:
            raise BadInput(f"no seed: set {PREFIX}SEED or {PREFIX}SEED_FILE")
        return Scheme(seed=self.seed, body_bytes_max=self.body_bytes_max)

    def decider(self, scheme: Scheme) -> Decider:
        return Decider(scheme=scheme.digest, **self.decider_values)

    def kafka(self, role: Role) -> dict[str, str]:
        """librdkafka settings of a role. They hold secrets: pass them to the client only."""
        common = {name: value for name, value in self.kafka_values.items() if name.partition(".")[0] not in ROLES}
        own = {n.removeprefix(role + "."): v for n, v in self.kafka_values.items() if n.startswith(role + ".")}
        fixed = {"bootstrap.servers": self.bootstrap, "message.max.bytes": str(self.message_bytes_max)}
        return {"client.id": self.group_of(role), **common, **own, **fixed}

    def secrets(self) -> tuple[str, ...]:
        """Every secret in every printable form, for redaction."""
        forms = () if self.seed is None else (str(self.seed), f"{self.seed:x}", f"{self.seed:016x}")
        # A short seed is no secret, and hiding it would hide parts of addresses.
        seed = tuple(form for form in forms if len(form) >= _SEED_CHARS_MIN)
        token = tuple(token for token in (self.views_token, self.ask_token) if token)
        shown = (getattr(self, name) for name, option in OPTIONS.items() if "." not in name and not option.kind.secret)
        texts = [*map(_shown, shown), *self.kafka_values.values()]
        found = tuple(secret for text in texts for secret in credentials_in(text))
        return tuple(v for n, v in self.kafka_values.items() if _is_secret(n)) + seed + token + found

    def describe(self) -> list[SettingRow]:
        """All settings in force, for `neardup config`."""
        rows = []
        for option in [*OPTIONS.values(), *(kafka_option(name) for name in self.kafka_values)]:
            table, _, name = option.name.partition(".")
            if table == "kafka":
                value: Any = self.kafka_values[name]
            elif table == "decider":
                value = self.decider_values.get(name, option.default)
            else:
                value = getattr(self, option.name)
            secret = option.kind.secret and value is not None
            shown = HIDDEN if secret else without_credentials(_shown(value), queries=True)
            origin = self.origins.get(option.name, "default")
            flag = "" if option.kind.secret else f"--kafka {name}=" if table == "kafka" else option.flag
            rows.append(SettingRow(option.name, shown, origin, option.help, option.env, flag, option.kind.allowed))
        return rows


#: One random number of 64 bits in 2**32 is shorter, as decimal digits or hexadecimal ones.
_SEED_CHARS_MIN = 8


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(value)
    if isinstance(value, Mapping):
        return json.dumps({site: vars(override) for site, override in value.items()}) if value else ""
    return "" if value is None else str(value)


#: Settings of the decider with a flag of their own; `--set NAME=NUMBER` takes the others.
FLAGS_OF_DECIDER = ("decider.rule", "decider.sites")


@dataclass(frozen=True)
class Option:
    """One setting for the command line. parameter: key of the setting in the flags of `load`."""

    name: str
    kind: ValueKind
    help: str
    default: Any = None

    @property
    def parameter(self) -> str:
        return self.name.rpartition(".")[2]

    @property
    def flag(self) -> str:
        if self.name.startswith("decider.") and self.name not in FLAGS_OF_DECIDER:
            return f"--set {self.parameter}="
        return "--" + self.parameter.replace("_", "-")

    @property
    def env(self) -> str:
        table, _, name = self.name.partition(".")
        role, _, of_role = name.partition(".")
        parts = [table, role, of_role] if table == "kafka" and role in ROLES else [table, name]
        return PREFIX + "__".join(filter(None, parts)).replace(".", "_").upper()

    @property
    def usage(self) -> str:
        """For --help."""
        return f"{self.help} [{self.env}; default: {_shown(self.default) or 'none'}]"


def _options() -> Iterator[Option]:
    for name, hint in get_type_hints(Settings, include_extras=True).items():
        if get_origin(hint) is Annotated:
            yield Option(name, *_kind(hint), getattr(Settings, name))
        elif name == "decider_values":
            for item in fields(Decider):
                if item.name in _DECIDER:
                    default = {} if item.default is MISSING else item.default
                    yield Option("decider." + item.name, *_DECIDER[item.name], default)


#: Every setting by name, in the order of `Settings`, without those of librdkafka.
OPTIONS: Mapping[str, Option] = MappingProxyType({option.name: option for option in _options()})

# librdkafka settings that exactly-once depends on, or that have a setting here.
RESERVED = {
    "bootstrap.servers": "set bootstrap instead",
    "metadata.broker.list": "set bootstrap instead",
    "group.id": "set group instead",
    "transactional.id": "set group instead",
    "transaction.timeout.ms": "set transaction_timeout_ms instead",
    "message.max.bytes": "set message_bytes_max instead",
} | dict.fromkeys(
    (
        "acks",
        "auto.offset.reset",
        "enable.auto.commit",
        "enable.auto.offset.store",
        "enable.idempotence",
        "isolation.level",
        "partition.assignment.strategy",
        "request.required.acks",
    ),
    "is fixed: exactly-once depends on it",
)


#: Endings of the names of librdkafka's secrets; a pattern for every dialect of regular expressions.
SECRET = r"(password|passphrase|secret|key\.pem|oauthbearer\.config)$"


def _is_secret(kafka_name: str) -> bool:
    return bool(re.search(SECRET, kafka_name))


def _kafka_value(raw: Any) -> str:
    if isinstance(raw, bool):
        return str(raw).lower()
    if not isinstance(raw, str | int | float):
        raise TypeError
    return str(raw)


def kafka_option(name: str) -> Option:
    return Option(
        "kafka." + name,
        ValueKind("a string, a number, true or false", str, _kafka_value, _is_secret(name)),
        "Passed to librdkafka",
    )
