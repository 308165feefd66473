"""A broker with authentication (SASL over TLS, certificates of both sides) and ACLs.

Certificates are made for each run. The broker's own listener stays plain text, for the setup.
"""

import datetime
import ipaddress
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from broker import eventually, kafka
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewPartitions,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

#: A line of the authorizer's log, at "debug" of what was allowed, too.
ASKED = re.compile(
    r"Principal = User:(?P<user>\S+) is (?P<how>Allowed|Denied) operation = (?P<operation>\w+) "
    r"from host = \S+ on resource = (?P<kind>\w+):LITERAL:(?P<name>\S+) for request"
)


@dataclass(frozen=True)
class Signed:
    """A certificate and its key, as PEM files; `both` has the two in one."""

    certificate: Path
    key: Path
    both: Path


class Authority:
    """Signs certificates into a folder. certificate: its own, which others are checked by."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "the tests' authority")])
        usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
        made = (
            self._builder(self._name, self._key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.certificate = folder / "ca.crt"
        self.certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        public = key.public_key()
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(days=1))
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )

    def sign(self, name: str, *, password: str = "") -> Signed:
        """For a server at 127.0.0.1, or for a client of that name."""
        key = ec.generate_private_key(ec.SECP256R1())
        address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
        both = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        made = (
            self._builder(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]), key)
            .add_extension(x509.SubjectAlternativeName([address]), critical=False)
            .add_extension(x509.ExtendedKeyUsage(both), critical=False)
            .sign(self._key, hashes.SHA256())
            .public_bytes(serialization.Encoding.PEM)
        )
        how: Any = serialization.NoEncryption()
        if password:
            how = serialization.BestAvailableEncryption(password.encode())
        secret = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, how)
        found = Signed(*(self._folder / f"{name}.{end}" for end in ("crt", "key", "pem")))
        found.certificate.write_bytes(made)
        found.key.write_bytes(secret)
        found.both.write_bytes(secret + made)
        return found


class Secured:
    """The broker. bootstrap: in the clear, for its super user. sasl, mutual: addresses of the two other listeners."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.authority = Authority(folder / "certificates")
        server = self.authority.sign("broker")
        self._cluster = kafka.Cluster(folder / "kafka")
        (node,) = self._cluster.nodes
        node.port, node.controller_port, sasl, mutual = kafka.free_ports(4)
        places = {"PLAINTEXT": node.port, "SASL": sasl, "MUTUAL": mutual}
        listeners = ",".join(f"{name}://127.0.0.1:{port}" for name, port in places.items())
        self._cluster.set(
            **{
                "listeners": f"{listeners},CONTROLLER://127.0.0.1:{node.controller_port}",
                "advertised.listeners": listeners,
                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL:SASL_SSL,MUTUAL:SSL",
                "sasl.enabled.mechanisms": "SCRAM-SHA-512",
                "listener.name.sasl.scram-sha-512.sasl.jaas.config": (
                    "org.apache.kafka.common.security.scram.ScramLoginModule required;"
                ),
                "ssl.keystore.type": "PEM",
                "ssl.keystore.location": server.both,
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": self.authority.certificate,
                "listener.name.mutual.ssl.client.auth": "required",
                "listener.name.mutual.ssl.principal.mapping.rules": "RULE:^CN=(.*?)$/$1/",
                "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
                "super.users": "User:ANONYMOUS",
            }
        )
        text = "logger.asked.name = kafka.authorizer.logger\nlogger.asked.level = debug\n"
        settings = node.folder / "log4j2.properties"
        settings.write_text(settings.read_text() + text)
        self._log = node.log
        self._cluster.start()
        self.bootstrap = self._cluster.bootstrap
        self.sasl, self.mutual = f"127.0.0.1:{sasl}", f"127.0.0.1:{mutual}"
        self._admin = AdminClient({"bootstrap.servers": self.bootstrap})

    def user(self, name: str, password: str) -> None:
        """One that may come in, and do nothing."""
        how = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        change = UserScramCredentialUpsertion(name, how, password.encode())
        for done in self._admin.alter_user_scram_credentials([change]).values():
            done.result(60)

    def allow(self, user: str, kind: str, name: str, pattern: str, operations: list[str]) -> None:
        bindings = [
            AclBinding(
                ResourceType[kind.upper()],
                name,
                ResourcePatternType[pattern.upper()],
                f"User:{user}",
                "*",
                AclOperation[operation],
                AclPermissionType.ALLOW,
            )
            for operation in operations
        ]
        for done in self._admin.create_acls(bindings).values():
            done.result(60)

    def grow(self, topic: str, partitions: int) -> None:
        """Gives a topic so many partitions."""
        self._admin.create_partitions([NewPartitions(topic, partitions)])[topic].result(60)

    def asked(self) -> set[tuple[str, str, str, str, str]]:
        """What the authorizer was asked so far: user, Allowed or Denied, operation, kind and name of the resource."""
        text = self._log.read_text()
        return {
            (found["user"], found["how"], found["operation"], found["kind"], found["name"])
            for found in ASKED.finditer(text)
        }

    def output(self) -> str:
        return self._log.read_text()

    def close(self) -> None:
        self._cluster.stop()


__all__ = ["Authority", "Secured", "Signed", "eventually"]
