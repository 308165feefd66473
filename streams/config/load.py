"""Reads the settings of the stream from flags, environment, a file and defaults, in this order of precedence.

All values are checked at the start, and all errors are reported together. Spellings of `decider.tape_min`:

    flag           --set tape_min=.8                   (other settings: --threads 4)
    environment    NEARDUP_DECIDER__TAPE_MIN=.8        (an empty value counts as not given)
    file (TOML)    [decider] tape_min = .8             (the file that --config or NEARDUP_CONFIG names)

Secrets come from the environment (NEARDUP_SEED), or from a file that the environment or the settings file names
(NEARDUP_SEED_FILE, seed_file). Flags and the settings file must not hold them: a list of processes shows flags, and
people share settings files. librdkafka settings are passed on, for all roles or for one:

    flag           --kafka security.protocol=SSL       --kafka match.retry.backoff.ms=5
    environment    NEARDUP_KAFKA__SECURITY_PROTOCOL    NEARDUP_KAFKA__MATCH__RETRY_BACKOFF_MS
    file           [kafka] security.protocol = "SSL"   [kafka.match] retry.backoff.ms = 5

The sources of cyclopts (its Env and Toml), which parses the command line, are not used: they pass over a
variable that names no option and over a value that a stronger source overrides, and they end at the first error. Roles
also read settings without a command line.
"""

import re
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from neardup.decider import Decider
from neardup.errors import BadInput
from streams.config.settings import (
    OPTIONS,
    PREFIX,
    RESERVED,
    ROLES,
    TOPIC_CHARS_MAX,
    Option,
    Settings,
    kafka_option,
)
from streams.errors import WrongUsage, without_credentials

_SECRET_BYTES_MAX = 65_536  # a PEM key is 3 kB; more is the wrong file
_SHOWN_MAX = 80  # characters of a bad value in a message

# Kubernetes puts the addresses of every service of a namespace into the environment: a service named neardup-match
# gives NEARDUP_MATCH_PORT=tcp://10.0.0.1:9464 and others.
_SERVICE_LINK = re.compile(r"NEARDUP(_\w+)?_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)(_\w+)?)")
# Variables of the test suite, such as failpoints of its processes.
_TESTS = PREFIX + "TEST_"
# Variables that are no settings of a role: the folder of `deploy/kafka/broker.py`, how kernels are compiled
# (`neardup/kernels/kernel_cache.py`), the image of `deploy/compose.yaml`.
_OTHERS = frozenset(PREFIX + name for name in ("CONFIG", "KAFKA_CACHE", "PLAIN_KERNELS", "VERSION"))

_TABLES = ("decider", "kafka")
_NEEDED: Mapping[str, tuple[str, ...]] = {"sketch": ("seed",), "match": ("seed",)}


def load(environ: Mapping[str, str], *, flags: Mapping[str, Any] | None = None, role: str = "") -> Settings:
    """Reads settings from `flags`, `environ`, the file and the defaults, in this order of precedence.

    Values that another source overrides are checked, too. Raises WrongUsage, which names each bad setting, the source
    of its value, and what is allowed.

    Args:
        flags: values by `Option.parameter`, None for a flag that was not given. `config` is the file; `set` (numbers of
            the decider) and `kafka` are lists of NAME=VALUE.
        role: whose required settings must be given, such as the seed.
    """
    flags = flags or {}
    given = _Given()
    if flags.get("config"):
        given.take_file(str(flags["config"]), "flag --config")
    elif path := environ.get(PREFIX + "CONFIG"):
        given.take_file(path, f"environment {PREFIX}CONFIG")
    given.take_environment(environ)
    given.take_flags(flags)
    return given.settings(role)


def decider_numbers(texts: Iterable[str], *, flag: str = "--set", without: Collection[str] = ()) -> dict[str, Any]:
    """Parses NAME=NUMBER texts as numbers of the decider. Raises WrongUsage, which names every bad one.

    flag: the source, for the message. without: names that are not allowed.
    """
    given = _Given()
    given.take_numbers(texts, f"flag {flag}", without)
    if given.problems:
        raise WrongUsage("; ".join(given.problems))
    return {name.removeprefix("decider."): value for name, value in given.values.items()}


class _Given:
    """Collects the values of the sources, in ascending precedence, and the problems with them."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.origins: dict[str, str] = {}
        self.problems: list[str] = []

    def take(self, option: Option, raw: Any, origin: str) -> None:
        if option.name.startswith("kafka."):
            name = option.name.removeprefix("kafka.")
            bare = name.partition(".")[2] if name.partition(".")[0] in ROLES else name
            if reason := RESERVED.get(bare):
                self.problems.append(f"{option.name} ({origin}): {reason}")
                return
            if not re.fullmatch(r"[a-z0-9_]+(\.[a-z0-9_]+)*", bare):
                self.problems.append(f"{option.name[:_SHOWN_MAX]!r} ({origin}): not a librdkafka setting's name")
                return
        try:
            self.values[option.name] = option.kind.parse(raw)
            self.origins[option.name] = origin
        except BadInput as error:  # of a file that the setting names
            self.problems.append(f"{option.name} ({origin}): {error}")
        except (ValueError, TypeError, AttributeError):  # AttributeError: a string's or table's method on another type
            shown = without_credentials(repr(raw), queries=True)[:_SHOWN_MAX]
            value = "" if option.kind.secret else f" = {shown}"
            self.problems.append(f"{option.name}{value} ({origin}): must be {option.kind.allowed}")

    def take_secret_file(self, option: Option, path: Any, origin: str) -> None:
        try:
            if not isinstance(path, str):  # open() would take a number for a file descriptor
                raise TypeError
            with open(path, "rb") as file:
                secret = file.read(_SECRET_BYTES_MAX + 1).decode().rstrip("\r\n")
        except (OSError, ValueError, TypeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not a file of UTF-8 text"
            self.problems.append(f"{option.name} ({origin}): cannot read {str(path)[:_SHOWN_MAX]!r}: {reason}")
            return
        if not secret or len(secret) > _SECRET_BYTES_MAX:
            self.problems.append(f"{option.name} ({origin}): {path!r} is empty or over {_SECRET_BYTES_MAX} bytes")
            return
        self.take(option, secret, f"file {path} by {origin}")

    def unknown(self, name: str, origin: str, known: Sequence[str]) -> None:
        from difflib import get_close_matches

        near = get_close_matches(name, known, 1)
        hint = f"did you mean {near[0]}?" if near else "`neardup config` lists all"
        self.problems.append(f"{name[:_SHOWN_MAX]} ({origin}): unknown; {hint}")

    def take_file(self, path: str, named_by: str) -> None:
        try:
            with open(path, "rb") as file:
                tables = tomllib.load(file)
        except OSError as error:
            self.problems.append(f"config = {path!r} ({named_by}): {error.strerror}")
            return
        except ValueError as error:  # TOMLDecodeError and bad UTF-8; it names line and column, no content
            reason = str(error) if isinstance(error, tomllib.TOMLDecodeError) else "not UTF-8"
            self.problems.append(f"config = {path!r} ({named_by}): not TOML: {reason}")
            return
        origin = f"file {path}"
        for name, raw in _flat(tables):
            base = name.removesuffix("_file")
            option, secret = _option(name), _option(base)
            if name != base and secret and secret.kind.secret:
                self.take_secret_file(secret, raw, origin)
            elif option is None:
                if name in _TABLES:
                    self.problems.append(f"{name} ({origin}): must be a table")
                else:
                    self.unknown(name, origin, [*OPTIONS, *_TABLES, "seed_file"])
            elif option.kind.secret:
                self.problems.append(
                    f"{name} ({origin}): a secret does not go here: name its file in {name}_file, or set {option.env}"
                )
            else:
                self.take(option, raw, origin)

    def take_environment(self, environ: Mapping[str, str]) -> None:
        by_env = {option.env: option for option in OPTIONS.values()}
        for env, raw in sorted(environ.items()):
            if not env.startswith(PREFIX) or env in _OTHERS or env.startswith(_TESTS) or not raw:
                continue
            if _SERVICE_LINK.fullmatch(env) or (env.endswith("_PORT") and re.match(r"(tcp|udp|sctp)://", raw)):
                continue
            origin = f"environment {env}"
            base = env.removesuffix("_FILE")
            option, secret = by_env.get(env) or _kafka_of_env(env), by_env.get(base) or _kafka_of_env(base)
            if env != base and secret and secret.kind.secret:
                if environ.get(base):
                    self.problems.append(f"{secret.name} ({origin}): given twice, by {base} too")
                self.take_secret_file(secret, raw, origin)
            elif option is None:
                meant = re.sub(r"KAFKA_(?!_)", "KAFKA__", env)
                self.unknown(env, "environment", [*by_env, PREFIX + "SEED_FILE", PREFIX + "CONFIG", *{meant} - {env}])
            else:
                self.take(option, raw, origin)

    def take_flags(self, flags: Mapping[str, Any]) -> None:
        by_parameter = {option.parameter: option for option in OPTIONS.values() if not option.flag.endswith("=")}
        own = ("config", "kafka", "set")
        pairs = [(by_parameter.get(name), name, raw) for name, raw in flags.items() if name not in own]
        self.take_numbers(flags.get("set") or (), "flag --set")
        for text in flags.get("kafka") or ():
            name, equals, raw = text.partition("=")
            pairs.append((kafka_option(name), "kafka", raw if equals else None))
        for option, parameter, raw in pairs:
            flag = "--" + parameter.replace("_", "-")
            if option is None:
                self.unknown(parameter, f"flag {flag}", list(by_parameter))
            elif parameter == "kafka" and raw is None:
                # The text is not shown: it may be a pasted secret.
                self.problems.append("kafka (flag --kafka): must be NAME=VALUE")
            elif raw is None or raw == []:
                continue
            elif option.kind.secret:
                self.problems.append(
                    f"{option.name} (flag {flag}): a secret does not go on the command line, which process lists show:"
                    f" set {option.env} or {option.env}_FILE"
                )
            else:
                self.take(option, raw, f"flag {flag}")

    def take_numbers(self, texts: Iterable[str], origin: str, without: Collection[str] = ()) -> None:
        """Takes NAME=NUMBER texts as numbers of the decider. without: names that are not allowed."""
        known = {option.parameter: option for option in OPTIONS.values() if option.flag.endswith("=")}
        for text in texts:
            name, equals, raw = text.strip().partition("=")
            if name in without:
                self.problems.append(f"{name} ({origin}): must be that of the live rule")
            elif name not in known:
                self.unknown(name, origin, [each for each in known if each not in without])
            elif not equals:
                self.problems.append(f"{name} ({origin}): must be {name}=NUMBER")
            else:
                self.take(known[name], raw, origin)

    def settings(self, role: str) -> Settings:
        tables: dict[str, dict[str, Any]] = {"": {}, "decider": {}, "kafka": {}}
        for full, value in self.values.items():
            table, dot, name = full.partition(".")
            tables[table if dot else ""][name or full] = value
        settings = Settings(
            **tables[""],
            decider_values=MappingProxyType(tables["decider"]),
            kafka_values=MappingProxyType(tables["kafka"]),
            origins=MappingProxyType(self.origins),
        )
        for name in _NEEDED.get(role, ()):
            if getattr(settings, name) is None and not any(p.startswith(name) for p in self.problems):
                env = OPTIONS[name].env
                self.problems.append(f"{name} (not given): `neardup {role}` needs it: set {env} or {env}_FILE")
        self._check_together(settings)
        self.must_be_good()
        return settings

    def must_be_good(self) -> None:
        """Raises WrongUsage if there is a problem."""
        if self.problems:
            count = f"{len(self.problems)} settings" if len(self.problems) > 1 else "a setting"
            raise WrongUsage(f"{count} cannot be used:\n" + "\n".join("  " + problem for problem in self.problems))

    def _check_together(self, settings: Settings) -> None:
        named = list(filter(None, settings.topics))
        if len(set(named)) < len(named):
            self._together(
                "different names",
                *("pages_topic", "rejected_topic", "sketches_topic", "verdicts_topic", "audit_topic"),
            )
        if max(map(len, (*settings.topics, settings.generations_topic))) > TOPIC_CHARS_MAX:
            self._together(
                f"{TOPIC_CHARS_MAX} characters or fewer, put together", "topic_prefix", "generation", "group"
            )
        decider = Decider(scheme="", **settings.decider_values)
        if decider.thin_tokens > decider.short_tokens:
            self._together("in ascending order", "decider.thin_tokens", "decider.short_tokens")

    def _together(self, must: str, *names: str) -> None:
        origins = ", ".join(f"{name} ({self.origins.get(name, 'default')})" for name in names)
        self.problems.append(f"{origins}: must be {must}")


def _flat(tables: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yields dotted names with their values. Only known tables are flattened."""
    for name, value in tables.items():
        if name == "kafka" and isinstance(value, Mapping):
            yield from _leaves("kafka", value)
        elif name == "decider" and isinstance(value, Mapping):
            yield from ((f"decider.{item}", raw) for item, raw in value.items())
        else:
            yield name, value


def _leaves(prefix: str, table: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from _leaves(f"{prefix}.{name}", value)
        else:
            yield f"{prefix}.{name}", value


def _option(name: str) -> Option | None:
    return kafka_option(name.removeprefix("kafka.")) if name.startswith("kafka.") else OPTIONS.get(name)


def _kafka_of_env(env: str) -> Option | None:
    table, *parts = env.removeprefix(PREFIX).lower().split("__")
    if table != "kafka" or not 1 <= len(parts) <= 2 or (len(parts) == 2 and parts[0] not in ROLES):
        return None
    return kafka_option(".".join(parts).replace("_", "."))
