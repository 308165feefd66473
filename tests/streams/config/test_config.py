"""Where settings come from, which are refused, and that no secret gets out."""

import re
from dataclasses import FrozenInstanceError, fields
from pathlib import Path

import pytest

from neardup.decider import ONLINE_RULES, Decider, SiteOverride
from neardup.errors import BadInput
from neardup.scheme import Scheme
from streams.config.load import load
from streams.config.settings import OPTIONS, Settings
from streams.process.logs import Redactor

SEED = "11400714819323198485"
PASSWORD = "correct horse battery"


@pytest.fixture
def config(tmp_path):
    def write(text: str) -> str:
        path = tmp_path / "neardup.toml"
        path.write_text(text)
        return str(path)

    return write


def refusal(environ=None, **how) -> list[str]:
    """The lines of the refusal, without its headline."""
    with pytest.raises(BadInput) as caught:
        load(environ or {}, **how)
    headline, *lines = str(caught.value).split("\n")
    assert headline == (f"{len(lines)} settings cannot be used:" if len(lines) > 1 else "a setting cannot be used:")
    return [line.strip() for line in lines]


def row(settings: Settings, name: str):
    (found,) = [row for row in settings.describe() if row.setting == name]
    return found


def test_defaults_alone_are_settings():
    settings = load({})
    assert (settings.bootstrap, settings.batch_pages, settings.seed) == ("127.0.0.1:9092", 512, None)
    assert settings.metrics_host == "127.0.0.1"
    assert {row.origin for row in settings.describe()} == {"default"}


def test_every_default_is_an_allowed_value():
    for option in OPTIONS.values():
        if option.default not in (None, (), {}):
            assert option.kind.parse(option.default) == option.default, option.name


def test_flags_beat_environment_beats_file_beats_default(config):
    path = config("batch_pages = 1\nbatch_ms = 1\nthreads = 1")
    environ = {"NEARDUP_CONFIG": path, "NEARDUP_BATCH_PAGES": "2", "NEARDUP_BATCH_MS": "2"}
    settings = load(environ, flags={"batch_pages": 3, "threads": None})
    assert (settings.batch_pages, settings.batch_ms, settings.threads, settings.inflight_batches) == (3, 2, 1, 4)
    assert [row(settings, name).origin for name in ("batch_pages", "batch_ms", "threads", "inflight_batches")] == [
        "flag --batch-pages",
        "environment NEARDUP_BATCH_MS",
        f"file {path}",
        "default",
    ]


def test_the_flag_names_the_file_before_the_environment(config, tmp_path):
    path = config("threads = 3")
    assert load({"NEARDUP_CONFIG": str(tmp_path / "none")}, flags={"config": path}).threads == 3


def test_settings_are_frozen():
    with pytest.raises(FrozenInstanceError):
        load({}).threads = 2


def test_all_errors_have_value_origin_and_allowed_values(config):
    path = config(
        'batch_pages = "many"\nbtach_ms = 3\nthreads = true\n[decider]\ntape_min = nan\nrule = "verfied"\ntape_mim = 1'
    )
    environ = {
        "NEARDUP_CONFIG": path,
        "NEARDUP_METRICS_PORT": "70000",
        "NEARDUP_LOG_LVL": "info",
        "NEARDUP_KAFKA__GROUP_ID": "x",
        "NEARDUP_KAFKA_SECURITY_PROTOCOL": "SSL",
    }
    flags = {"bootstrap": "broker", "kafka": ["ssl.ca.location", "acks=0"], "treads": 3}
    file = f"(file {path})"
    assert refusal(environ, flags=flags, role="match") == [
        f"batch_pages = 'many' {file}: must be a whole number from 1 to 512",
        f"btach_ms {file}: unknown; did you mean batch_ms?",
        f"threads = True {file}: must be a whole number from 1 to 256",
        f"decider.tape_min = nan {file}: must be a number from 0 to 1",
        f"decider.rule = 'verfied' {file}: must be one of {', '.join(ONLINE_RULES)}",
        f"decider.tape_mim {file}: unknown; did you mean decider.tape_min?",
        "NEARDUP_KAFKA_SECURITY_PROTOCOL (environment): unknown; did you mean NEARDUP_KAFKA__SECURITY_PROTOCOL?",
        "kafka.group.id (environment NEARDUP_KAFKA__GROUP_ID): set group instead",
        "NEARDUP_LOG_LVL (environment): unknown; did you mean NEARDUP_LOG_LEVEL?",
        "metrics_port = '70000' (environment NEARDUP_METRICS_PORT): must be a whole number from 0 to 65535",
        "bootstrap = 'broker' (flag --bootstrap): must be host:port, or several with commas",
        "treads (flag --treads): unknown; did you mean threads?",
        "kafka (flag --kafka): must be NAME=VALUE",
        "kafka.acks (flag --kafka): is fixed: exactly-once depends on it",
        "seed (not given): `neardup match` needs it: set NEARDUP_SEED or NEARDUP_SEED_FILE",
    ]


def test_a_bad_value_is_an_error_even_where_a_stronger_source_overrides_it(config):
    path = config("threads = 0")
    (line,) = refusal({"NEARDUP_CONFIG": path}, flags={"threads": 2})
    assert line.startswith("threads = 0 ")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("BOOTSTRAP", "a:1,b"),
        ("BOOTSTRAP", "http://a:1"),
        ("GENERATION", "a.b"),
        ("PAGES_TOPIC", ".."),
        ("PAGES_TOPIC", "pages/x"),
        ("PAGES_TOPIC", "p" * 201),
        ("CODEC", "xml"),
        ("BODY_REF_PREFIXES", "s3://bucket"),
        ("BODY_REF_PREFIXES", "/etc/"),
        ("BATCH_MS", "-1"),
        ("BATCH_MS", "1.5"),
        ("THREADS", "9" * 5000),
        ("LOG_FORMAT", "JSON "),
        ("METRICS_HOST", "a b"),
        ("SEED", "18446744073709551616"),
        ("SEED", "0xg"),
        ("DECIDER__TAPE_MIN", "1.01"),
        ("DECIDER__TAPE_MIN", "inf"),
        ("DECIDER__SITES", "example.com"),
        ("DECIDER__SITES", '{"www.example.com": {}}'),
        ("DECIDER__SITES", '{"example.com": {"tape_mim": 1}}'),
        ("DECIDER__SITES", '{"example.com": {"never_merge": 1}}'),
        ("DECIDER__SITES", '{"example.com": 1}'),
        ("KAFKA__MATHC__LINGER_MS", "1"),
        ("KAFKA_", "1"),
        ("KAFKA__", "1"),
        ("batch_ms", "1"),
    ],
)
def test_bad_values(name, value):
    (line,) = refusal({"NEARDUP_" + name: value})
    assert len(line) < 300


@pytest.mark.parametrize(
    "text",
    [
        "threads = '2'\nthreads = 3",
        "threads = [1]",
        "threads = 2024-01-01",
        "codec = 3",
        "kafka = 3",
        "decider = 'x'",
        "body_ref_prefixes = [3]",
        "body_ref_prefixes = {a = 3}",
        "[kafka]\n'ssl.ca.location' = ['x']",
        "[kafka]\n'x y' = 3",
        "[decider]\nsites = [1]",
        "[decider.sites]\n'example.com' = 'never'",
        "[decider]\nrule_version = 2",
        "seed_file = 3",
        "seed_file = '/nonexistent'",
    ],
)
def test_bad_files(config, text):
    (line,) = refusal(flags={"config": config(text)})
    assert "neardup.toml" in line


def test_a_file_that_is_missing_or_no_text_is_one_error_among_others(tmp_path):
    environ = {"NEARDUP_CONFIG": str(tmp_path / "none.toml"), "NEARDUP_THREADS": "x"}
    first, second = refusal(environ)
    assert first.endswith("none.toml' (environment NEARDUP_CONFIG): No such file or directory")
    assert second.startswith("threads = 'x'")
    (tmp_path / "none.toml").write_bytes(b"\xff")
    assert refusal(environ)[0].endswith("not TOML: not UTF-8")


def test_settings_that_do_not_go_together():
    lines = refusal({"NEARDUP_SKETCHES_TOPIC": "pages", "NEARDUP_DECIDER__THIN_TOKENS": "60"})
    assert lines == [
        "pages_topic (default), rejected_topic (default), sketches_topic (environment NEARDUP_SKETCHES_TOPIC), "
        "verdicts_topic (default), audit_topic (default): must be different names",
        "decider.thin_tokens (environment NEARDUP_DECIDER__THIN_TOKENS), decider.short_tokens (default): "
        "must be in ascending order",
    ]


def test_empty_variables_and_kubernetes_service_links_are_no_settings():
    assert load(
        {
            "NEARDUP_THREADS": "",
            "NEARDUP_PORT": "tcp://10.0.0.1:80",
            "NEARDUP_MATCH_SERVICE_HOST": "10.0.0.1",
            "NEARDUP_MATCH_SERVICE_PORT_METRICS": "9464",
            "NEARDUP_MATCH_PORT_9464_TCP_ADDR": "10.0.0.1",
            "NEARDUP_METRICS_PORT": "tcp://10.0.0.1:9464",
            "NEARDUP_TEST_FAILPOINT": "3",
            "PATH": "/bin",
        }
    ) == load({})


def test_a_generation_has_its_own_topics_groups_and_transactional_id():
    live, second = load({}), load({"NEARDUP_GENERATION": "g2", "NEARDUP_AUDIT_TOPIC": "audit"})
    assert live.topics == ("pages", "pages.rejected", "sketches", "verdicts", "")
    assert second.topics == ("pages", "pages.rejected.g2", "sketches.g2", "verdicts.g2", "audit.g2")
    assert (live.group_of("sketch"), second.group_of("sketch")) == ("neardup.sketch", "neardup.sketch.g2")
    assert (live.transactional_id, second.transactional_id) == ("neardup.match", "neardup.match.g2")


def test_a_prefix_stands_before_every_topic():
    settings = load({"NEARDUP_TOPIC_PREFIX": "team.", "NEARDUP_GENERATION": "g2", "NEARDUP_AUDIT_TOPIC": "audit"})
    assert settings.topics == (
        "team.pages",
        "team.pages.rejected.g2",
        "team.sketches.g2",
        "team.verdicts.g2",
        "team.audit.g2",
    )
    assert settings.generations_topic == "team.neardup.generations"
    long = {"NEARDUP_TOPIC_PREFIX": "p" * 40, "NEARDUP_GENERATION": "g" * 40}
    (line,) = refusal(long | {"NEARDUP_PAGES_TOPIC": "p" * 200, "NEARDUP_SKETCHES_TOPIC": "s" * 200})
    assert line.endswith("group (default): must be 249 characters or fewer, put together")


def test_scheme_and_decider_take_behaviour_and_nothing_else():
    environ = {
        "NEARDUP_SEED": SEED,
        "NEARDUP_BODY_BYTES_MAX": "5000",
        "NEARDUP_DECIDER__TAPE_MIN": ".8",
        "NEARDUP_DECIDER__SITES": '{"Example.co.uk": {"never_merge": true}, "a.org": {"tape_min": 0.9}}',
    }
    settings = load(environ)
    scheme = settings.scheme()
    assert scheme == Scheme(seed=int(SEED), body_bytes_max=5000)
    sites = {"example.co.uk": SiteOverride(never_merge=True), "a.org": SiteOverride(tape_min=0.9)}
    assert settings.decider(scheme) == Decider(scheme=scheme.digest, tape_min=0.8, sites=sites)
    faster = load(environ | {"NEARDUP_BATCH_PAGES": "1", "NEARDUP_THREADS": "9", "NEARDUP_FLUSH_MS": "5"})
    assert faster.scheme().digest == scheme.digest
    assert faster.decider(scheme).digest == settings.decider(scheme).digest


def test_every_number_of_the_decider_can_be_set():
    assert {f"decider.{item.name}" for item in fields(Decider)} - set(OPTIONS) == {
        "decider.scheme",
        "decider.rule_version",
        "decider.model",  # of the partition
    }


def test_the_seed_may_be_hexadecimal():
    assert load({"NEARDUP_SEED": "0x9e3779b97f4a7c15"}).seed == 0x9E3779B97F4A7C15
    with pytest.raises(BadInput, match="NEARDUP_SEED_FILE"):
        load({}).scheme()


def test_flags_and_variables_are_distinguished_by_name():
    options = OPTIONS.values()
    assert len({option.parameter for option in options}) == len({option.env for option in options}) == len(OPTIONS)
    assert not {"config", "kafka", "role"} & {option.parameter for option in options}
    option = OPTIONS["decider.tape_min"]
    assert (option.flag, option.env) == ("--set tape_min=", "NEARDUP_DECIDER__TAPE_MIN")
    assert option.usage == "Tape score of a near-duplicate on one site [NEARDUP_DECIDER__TAPE_MIN; default: 0.74]"


def test_any_librdkafka_setting_passes_through_for_all_roles_or_one(config):
    path = config(
        "[kafka]\nlinger.ms = 5\n'ssl.ca.location' = 'ca.pem'\n[kafka.sketch]\n'fetch.min.bytes' = 1\nlinger.ms = 9"
    )
    environ = {
        "NEARDUP_CONFIG": path,
        "NEARDUP_KAFKA__SECURITY_PROTOCOL": "SASL_SSL",
        "NEARDUP_KAFKA__MATCH__RETRY_BACKOFF_MS": "5",
    }
    settings = load(
        environ, flags={"kafka": ["socket.keepalive.enable=true", "match.linger.ms=0", "sasl.username=a=b"]}
    )
    common = {
        "bootstrap.servers": "127.0.0.1:9092",
        "message.max.bytes": "1000000",
        "ssl.ca.location": "ca.pem",
        "security.protocol": "SASL_SSL",
        "socket.keepalive.enable": "true",
        "sasl.username": "a=b",
    }
    assert settings.kafka("sketch") == common | {
        "client.id": "neardup.sketch",
        "fetch.min.bytes": "1",
        "linger.ms": "9",
    }
    assert settings.kafka("match") == common | {
        "client.id": "neardup.match",
        "retry.backoff.ms": "5",
        "linger.ms": "0",
    }
    assert settings.kafka("verdicts") == common | {"client.id": "neardup.verdicts", "linger.ms": "5"}
    assert row(settings, "kafka.match.retry.backoff.ms") == (
        "kafka.match.retry.backoff.ms",
        "5",
        "environment NEARDUP_KAFKA__MATCH__RETRY_BACKOFF_MS",
        "Passed to librdkafka",
        "NEARDUP_KAFKA__MATCH__RETRY_BACKOFF_MS",
        "--kafka match.retry.backoff.ms=",
        "a string, a number, true or false",
    )


def test_secrets_come_from_the_environment_or_from_files_and_are_never_shown(config, tmp_path):
    for name, text in (("seed", SEED), ("password", PASSWORD), ("key", "KEY PHRASE")):
        (tmp_path / name).write_text(text + "\n")
    path = config(
        f"[kafka]\nsasl.password_file = '{tmp_path}/password'\n"
        f"[kafka.match]\n'ssl.key.password_file' = '{tmp_path}/key'"
    )
    by_file = {"NEARDUP_CONFIG": path, "NEARDUP_SEED_FILE": str(tmp_path / "seed")}
    by_name = {
        "NEARDUP_SEED": SEED,
        "NEARDUP_KAFKA__SASL_PASSWORD": PASSWORD,
        "NEARDUP_KAFKA__MATCH__SSL_KEY_PASSWORD_FILE": str(tmp_path / "key"),
    }
    for environ in (by_file, by_name):
        settings = load(environ, role="match")
        assert settings.seed == int(SEED)
        kafka = settings.kafka("match")
        assert (kafka["sasl.password"], kafka["ssl.key.password"]) == (PASSWORD, "KEY PHRASE")
        assert {SEED, f"{int(SEED):x}", PASSWORD, "KEY PHRASE"} <= set(settings.secrets())
        shown = repr(settings) + str(settings.describe()) + str(settings.topics)
        assert not [secret for secret in settings.secrets() if secret in shown]
        assert row(settings, "seed").value == row(settings, "kafka.sasl.password").value == "***"
    assert row(load(by_file), "seed").origin == f"file {tmp_path}/seed by environment NEARDUP_SEED_FILE"


def test_secrets_in_flags_or_in_the_settings_file_are_refused_and_not_repeated(config):
    path = config(f"seed = {SEED}\n[kafka]\nsasl.password = '{PASSWORD}'\nssl.key.pem = 7")
    flags = {
        "config": path,
        "seed": SEED,
        "kafka": [f"sasl.password={PASSWORD}", f"match.ssl.keystore.password={PASSWORD}"],
    }
    lines = refusal(flags=flags)
    assert [line.partition(" (")[0] for line in lines] == [
        "seed",
        "kafka.sasl.password",
        "kafka.ssl.key.pem",
        "seed",
        "kafka.sasl.password",
        "kafka.match.ssl.keystore.password",
    ]
    assert "seed_file" in lines[0]
    assert "NEARDUP_KAFKA__MATCH__SSL_KEYSTORE_PASSWORD_FILE" in lines[5]
    assert not re.search(f"{SEED}|{PASSWORD}", "".join(lines))


def test_bad_secrets_are_not_repeated_either(tmp_path):
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    (tmp_path / "large").write_bytes(b"1" * 70_000)
    for environ in (
        {"NEARDUP_SEED": "hunter2hunter2"},
        {"NEARDUP_SASL_PASSWORD": "hunter2hunter2"},
        {"NEARDUP_SEED": "1", "NEARDUP_SEED_FILE": str(tmp_path / "empty")},
        {"NEARDUP_SEED_FILE": str(tmp_path / "binary")},
        {"NEARDUP_SEED_FILE": str(tmp_path / "large")},
        {"NEARDUP_SEED_FILE": str(tmp_path / "none")},
        {"NEARDUP_SEED_FILE": str(tmp_path)},
    ):
        text = "\n".join(refusal(environ))
        assert "hunter2" not in text
        assert len(text) < 500
    both = refusal({"NEARDUP_SEED": "1", "NEARDUP_SEED_FILE": str(tmp_path / "empty")})
    assert both[0] == "seed (environment NEARDUP_SEED_FILE): given twice, by NEARDUP_SEED too"


def test_describe_has_one_row_a_setting_each_with_help():
    rows = load({}).describe()
    assert [row.setting for row in rows] == list(OPTIONS)
    assert all(row.help and row.env.startswith("NEARDUP_") for row in rows)
    limits = {row.setting: row.allowed for row in rows}
    assert limits["decider.tape_min"] == "a number from 0 to 1"
    assert limits["decider.postings_max"] == "a whole number from 1 to 64"
    sites = load(
        {"NEARDUP_DECIDER__SITES": '{"a.org": {"tape_min": 0.9}}', "NEARDUP_BODY_REF_PREFIXES": "s3://a/, s3://b/"}
    )
    assert row(sites, "decider.sites").value == '{"a.org": {"never_merge": false, "tape_min": 0.9}}'
    assert row(sites, "body_ref_prefixes").value == "s3://a/, s3://b/"


def test_credentials_of_urls_are_secrets_of_the_log():
    settings = load(
        {
            "NEARDUP_CHECKPOINTS": "s3://AKIAKEY:hunter2word@bucket/a?sig=hunter3word",
            "NEARDUP_BODY_REF_PREFIXES": "https://ana:hunter4word@a.example/, s3://b/",
        }
    )
    redact = Redactor(settings.secrets())
    values = redact("cannot write s3://AKIAKEY:hunter2word@bucket/a?sig=hunter3word: hunter4word was refused")
    assert "hunter" not in values
    assert redact("s3://b/ is fine") == "s3://b/ is fine"


def test_a_seed_that_anybody_would_guess_hides_no_addresses():
    redact = Redactor(load({"NEARDUP_SEED": "1"}).secrets())
    assert redact("127.0.0.1:9092, partition 1 of 1") == "127.0.0.1:9092, partition 1 of 1"
    assert "11400714819323198485" not in Redactor(load({"NEARDUP_SEED": "11400714819323198485"}).secrets())(
        "seed 11400714819323198485"
    )


def test_variables_of_other_parts_of_the_project_are_no_unknown_settings():
    root = Path(__file__).parents[3]
    read = re.compile(r"""(?:environ(?:\.get\(|\[)|getenv\()["'](NEARDUP_\w+)|\$\{?(NEARDUP_\w+)""")
    found = set()
    for folder in ("deploy", "helm", "neardup", "streams", "tests"):
        for file in (root / folder).rglob("*"):
            if file.suffix in (".py", ".sh", ".yaml", ".yml", ".md", ".toml") and file != Path(__file__):
                found |= {one or other for one, other in read.findall(file.read_text())}
    found |= {one or other for one, other in read.findall((root / "Makefile").read_text())}
    assert {"NEARDUP_KAFKA_CACHE", "NEARDUP_PLAIN_KERNELS", "NEARDUP_VERSION"} <= found
    settings = {option.env for option in OPTIONS.values()} | {"NEARDUP_SEED_FILE", "NEARDUP_CONFIG"}
    load(dict.fromkeys(found - settings, "1"))


def test_every_default_is_an_admitted_value():
    for option in OPTIONS.values():
        if option.default not in (None, (), {}):
            shown = ",".join(option.default) if isinstance(option.default, tuple) else option.default
            assert option.kind.parse(shown) == option.default, option.name


def test_a_list_of_urls_may_end_with_a_comma():
    assert load({"NEARDUP_BODY_REF_PREFIXES": "s3://a/, s3://b/,"}).body_ref_prefixes == ("s3://a/", "s3://b/")
