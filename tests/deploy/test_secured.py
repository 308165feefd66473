"""The stream on a Kafka with authentication and the documented ACLs, with the settings of the chart."""

import base64
import http.client
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from broker import PATIENCE_SECONDS, eventually, kafka
from secured import Secured

from neardup.errors import BadInput

pytest.importorskip("faust", reason="faust-streaming is not installed")

from faust import SASLCredentials, SSLCredentials

from streams.views.driver import credentials

GUIDE = Path(__file__).resolve().parents[2] / "deploy" / "secure.md"
NEARDUP = [sys.executable, "-c", "from streams.commands import main; main()"]
SEED, TOKEN = "11400714819323198485", "a-token-of-the-tests-views"
USERS = ("operator", "crawler", "sketcher", "matcher", "indexer", "views")
Right = tuple[str, str, str, str]


def password(user: str) -> str:
    return f"{user}-secret-{user[::-1]}"


def rights() -> dict[str, set[tuple[Right, str]]]:
    """By user what the guide's table gives: kind, name, pattern of the resource, and the operation."""
    text = GUIDE.read_text().partition("## Rights in Kafka")[2].partition("\n## ")[0]
    found: dict[str, set[tuple[Right, str]]] = {}
    rows = re.findall(r"^\| (\w+) \| (\w+) (`[^|]+) \| ([^|]+) \|$", text, re.MULTILINE)
    for user, kind, names, operations in rows:
        for (name, prefix), operation in product(re.findall(r"`([^`]+)`(\*?)", names), operations.split(",")):
            right = (kind, name, "prefixed" if prefix else "literal", operation.strip())
            found.setdefault(user, set()).add((right, operation))
    return found


class Users:
    """Users with password, certificate and rights. environment: that of the chart's pods."""

    def __init__(self, broker: Secured, folder: Path) -> None:
        self._broker, self._folder = broker, folder
        self.outputs: list[Path] = []
        given = rights()
        assert set(given) == set(USERS)
        for user in USERS:
            broker.user(user, password(user))
            (folder / f"{user}.password").write_text(password(user))
            for (kind, name, pattern, operation), _ in given[user]:
                kind = "transactional_id" if kind == "transactionalId" else kind
                broker.allow(user, kind, name, pattern, [re.sub(r"(?<=[a-z])(?=[A-Z])", "_", operation).upper()])
        (folder / "seed").write_text(SEED)
        (folder / "token").write_text(TOKEN)

    def environment(self, user: str, *, certificate: bool = False) -> dict[str, str]:
        own = {name: value for name, value in os.environ.items() if not name.startswith("NEARDUP_")}
        found = {
            **own,
            "NEARDUP_BOOTSTRAP": self._broker.mutual if certificate else self._broker.sasl,
            "NEARDUP_KAFKA__SSL_CA_LOCATION": str(self._broker.authority.certificate),
            "NEARDUP_SEED_FILE": str(self._folder / "seed"),
            "NEARDUP_VIEWS_TOKEN_FILE": str(self._folder / "token"),
            "NEARDUP_STATE": str(self._folder / "state"),
            "NEARDUP_VIEWS_STATE": str(self._folder / "views"),
            "NEARDUP_LOG_LEVEL": "debug",
        }
        if certificate:
            signed = self._broker.authority.sign(user, password=password(user))
            return found | {
                "NEARDUP_KAFKA__SECURITY_PROTOCOL": "SSL",
                "NEARDUP_KAFKA__SSL_CERTIFICATE_LOCATION": str(signed.certificate),
                "NEARDUP_KAFKA__SSL_KEY_LOCATION": str(signed.key),
                "NEARDUP_KAFKA__SSL_KEY_PASSWORD_FILE": str(self._folder / f"{user}.password"),
            }
        return found | {
            "NEARDUP_KAFKA__SECURITY_PROTOCOL": "SASL_SSL",
            "NEARDUP_KAFKA__SASL_MECHANISM": "SCRAM-SHA-512",
            "NEARDUP_KAFKA__SASL_USERNAME": user,
            "NEARDUP_KAFKA__SASL_PASSWORD_FILE": str(self._folder / f"{user}.password"),
        }

    def start(self, user: str, *words: str, certificate: bool = False, **more: str) -> "subprocess.Popen[bytes]":
        """A process whose output is kept."""
        self.outputs.append(self._folder / f"{len(self.outputs)}-{user}-{words[0]}.log")
        with self.outputs[-1].open("wb") as log:
            environment = {**self.environment(user, certificate=certificate), **more}
            return subprocess.Popen([*NEARDUP, *words], env=environment, stdout=log, stderr=log)

    def run(self, user: str, *words: str, certificate: bool = False, **more: str) -> tuple[int, str]:
        code = self.start(user, *words, certificate=certificate, **more).wait(PATIENCE_SECONDS)
        return code, self.outputs[-1].read_text()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    made = Secured(tmp_path_factory.mktemp("secured") / "broker")
    yield made
    made.close()


def view(port: int, path: str) -> dict[str, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        token = base64.b64encode(f":{TOKEN}".encode()).decode()
        connection.request("GET", path, headers={"Authorization": f"Basic {token}"})
        found: dict[str, Any] = json.loads(connection.getresponse().read())
        return found
    except OSError:
        return {}
    finally:
        connection.close()


def send_again(port: int, reason: str, page_id: int) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/x-www-form-urlencoded"}
        connection.request("POST", "/send-again", f"reason={quote(reason)}&page_id={page_id}", headers)
        return connection.getresponse().status
    finally:
        connection.close()


def verdicts(users: Users) -> list[str]:
    return [verdict["verdict"] for verdict in verdicts_read(users)]


def verdicts_read(users: Users) -> list[dict[str, Any]]:
    code, lines = users.run("indexer", "verdicts", "--no-follow", "--json")
    assert code == 0, lines
    return [json.loads(line) for line in lines.splitlines() if line.startswith("{")]


@contextmanager
def views(users: Users) -> Iterator[tuple[int, int]]:
    """Views that are behind nothing: their port, and how many verdicts they have consumed."""
    (port,) = kafka.free_ports(1)
    process = users.start("views", "views", "--port", str(port))
    log = users.outputs[-1]
    try:

        def caught_up() -> int:
            assert process.poll() is None, log.read_text()
            now = view(port, "/overview.json")
            return int(now["verdicts"]) if now and now["behind"] == 0 else 0

        yield port, eventually(caught_up, "the views have seen verdicts")
    finally:
        process.terminate()
        assert process.wait(60) == 0, log.read_text()[-3000:]


def look_at_views(users: Users) -> int:
    """Queries the pages that read from Kafka and sends one rejected page again; how many verdicts there are."""
    found = next(verdict for verdict in verdicts_read(users) if verdict["verdict"] == "unique")
    url = quote(found["url"])
    with views(users) as (port, count):
        assert view(port, f"/compare.json?a={url}&b={url}")["a"]["missing"] == {}
        chosen = view(port, f"/cluster.json?id={found['cluster']}")
        assert "not known" not in chosen["why"]["words"], "whether a policy holds may be read"
        assert view(port, "/health.json")["steps"]
        (reason,) = view(port, "/rejects.json")["reasons"]
        (rejected,) = view(port, f"/rejects.json?reason={quote(reason)}")["items"]
        assert send_again(port, reason, rejected["page_id"]) == 303
    return count


def used(broker: Secured, given: Mapping[str, set[tuple[Right, str]]]) -> dict[str, set[tuple[Right, str]]]:
    """The rights of which the broker was asked to make use, each by the resource that gives it."""
    found: dict[str, set[tuple[Right, str]]] = {user: set() for user in given}
    for user, how, operation, kind, name in broker.asked():
        if user in given:
            assert how == "Allowed", f"{user} was denied {operation} on {kind} {name}"
            fits = [
                each
                for each in given[user]
                if each[0][0].lower() == kind.lower()
                and re.sub(r"(?<=[a-z])(?=[A-Z])", "_", each[0][3]).upper() == operation
                and (name.startswith(each[0][1]) if each[0][2] == "prefixed" else name == each[0][1])
            ]
            # To read or write includes to describe.
            assert fits or operation == "DESCRIBE", f"{user} makes use of {operation} on {kind} {name}"
            found[user] |= set(fits)
    return found


#: Rights that this test does not use: `neardup topics check --page` only describes a control topic that is empty.
IDLE = {"crawler": {("topic", "neardup.generations", "literal", "Read")}}


@pytest.mark.whole
def test_the_line_needs_the_rights_that_are_documented_and_no_others(broker: Secured, tmp_path: Path) -> None:
    users = Users(broker, tmp_path)
    code, result = users.run("operator", "topics", "create", "--partitions", "2")
    assert code == 0, result
    code, result = users.run("operator", "topics", "check")
    assert code == 0, result
    roles = {
        "sketcher": users.start("sketcher", "sketch"),
        "matcher": users.start("matcher", "match", certificate=True),
    }
    try:
        code, result = users.run(
            "crawler", "topics", "check", "--page", "--json", "--timeout", str(PATIENCE_SECONDS), certificate=True
        )
        assert code == 0, result
        # Another sketcher reads the scheme that the log began with, and a matcher without its index the last verdicts;
        # a page that cannot be read goes its own way.
        for name, process in roles.items():
            process.terminate()
            assert process.wait(60) == 0, name
        shutil.rmtree(tmp_path / "state" / "index")
        roles["sketcher"] = users.start("sketcher", "sketch")
        roles["matcher"] = users.start("matcher", "match", certificate=True)
        (tmp_path / "bad.jsonl").write_text('{"url": "https://a.example/", "body": "oops", "http_status": 503}\n')
        code, result = users.run("crawler", "publish", str(tmp_path / "bad.jsonl"), certificate=True)
        assert code == 0, result
        eventually(lambda: "rejected" in verdicts(users), "the verdict on what cannot be read")
        assert verdicts(users).count("unique") == 1
        assert look_at_views(users) == 3
    finally:
        for process in roles.values():
            process.terminate()
        for name, process in roles.items():
            assert process.wait(60) == 0, name

    broker.grow("verdicts", 3)  # the views give their changelogs as many
    with views(users) as (_, count):
        assert count == len(verdicts(users))

    given = rights()
    for user, made_use in used(broker, given).items():
        idle = {right for right, _ in given[user] - made_use} - IDLE.get(user, set())
        assert not idle, f"{user} has rights that nothing makes use of: {idle}"

    code, shown = users.run("matcher", "config", "--json")
    assert code == 0
    secret = {row["setting"]: row["value"] for row in json.loads(shown)}
    assert secret["kafka.sasl.password"] == secret["seed"] == secret["views_token"] == "***"

    # No log may contain passwords, the seed or the token, also where they are wrong.
    (tmp_path / "matcher.password").write_text("not-what-it-should-be")
    code, result = users.run("matcher", "topics", "check", "--page", "--timeout", "5")
    assert code == 1
    assert "uthentication" in result, result
    code, result = users.run("indexer", "sketch")
    assert code == 1
    assert "pages" in result.splitlines()[-1], result
    secrets = [*map(password, USERS), SEED, f"{int(SEED):x}", TOKEN, "not-what-it-should-be"]
    for path in users.outputs:
        text = path.read_text()
        assert not [secret for secret in secrets if secret in text], path.name
        assert "Traceback" not in text, path.name


def test_the_views_driver_gets_the_settings_of_librdkafka(tmp_path: Path) -> None:
    from secured import Authority

    authority = Authority(tmp_path / "ca")
    mine = authority.sign("me", password="hunter2hunter2")
    tls = {"security.protocol": "SSL", "ssl.ca.location": str(authority.certificate)}
    assert credentials({}) is None
    assert credentials({"security.protocol": "PLAINTEXT", "socket.nagle.disable": "true"}) is None
    plain = credentials({"security.protocol": "sasl_plaintext", "sasl.mechanisms": "PLAIN", "sasl.username": "me"})
    assert isinstance(plain, SASLCredentials)
    assert (plain.protocol.value, plain.ssl_context, plain.username) == ("SASL_PLAINTEXT", None, "me")
    found = credentials(tls)
    assert isinstance(found, SSLCredentials)
    assert found.context.check_hostname
    assert len(found.context.get_ca_certs()) == 1, "those of the system would let others in"
    found = credentials({**tls, "ssl.endpoint.identification.algorithm": "none"})
    assert isinstance(found, SSLCredentials)
    assert not found.context.check_hostname
    assert found.context.verify_mode.name == "CERT_REQUIRED"
    own = {"ssl.certificate.location": str(mine.certificate), "ssl.key.location": str(mine.key)}
    both = {**tls, **own, "ssl.key.password": "hunter2hunter2"}
    assert isinstance(credentials(both), SSLCredentials)
    scram = credentials({**tls, "security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-256"})
    assert isinstance(scram, SASLCredentials)
    assert scram.protocol.value == "SASL_SSL"

    for wrong, expected in (
        ({**tls, "ssl.cipher.suites": "X"}, "ssl.cipher.suites"),
        ({"sasl.oauthbearer.config": "x"}, "sasl.oauthbearer.config"),
        ({"security.protocol": "TLS"}, "security.protocol"),
        ({"security.protocol": "SASL_SSL"}, "sasl.mechanism"),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "GSSAPI"}, "sasl.mechanism"),
        ({**tls, "ssl.ca.location": str(tmp_path / "nowhere")}, "ssl.ca.location"),
        ({**both, "ssl.key.password": "hunter3"}, "ssl.certificate.location"),
        ({**tls, **own}, "ssl.certificate.location"),
    ):
        with pytest.raises(BadInput) as refused:
            credentials(wrong)
        assert expected in str(refused.value)
        assert "hunter" not in str(refused.value)
