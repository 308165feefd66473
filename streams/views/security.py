"""Translates librdkafka's TLS and SASL settings for Faust's driver: one set of settings serves both clients."""

import ssl
from collections.abc import Callable, Mapping
from pathlib import Path

from faust import SASLCredentials, SSLCredentials

from neardup.errors import BadInput

PROTOCOLS = ("plaintext", "ssl", "sasl_plaintext", "sasl_ssl")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_TAKEN = (
    *("security.protocol", "sasl.mechanism", "sasl.mechanisms", "sasl.username", "sasl.password"),
    *("ssl.ca.location", "ssl.certificate.location", "ssl.key.location", "ssl.key.password"),
    *("ssl.endpoint.identification.algorithm", "enable.ssl.certificate.verification"),
)
_SECURITY = ("security.", "sasl.", "ssl.", "enable.ssl.", "enable.sasl.")


def credentials(values: Mapping[str, str]) -> SASLCredentials | SSLCredentials | None:
    """Return Faust's `broker_credentials`; None for plain text.

    Raises BadInput for a setting that this driver lacks: it would connect in another way than configured.
    """
    for name in values:
        if name.startswith(_SECURITY) and name not in _TAKEN:
            raise BadInput(f"kafka.{name}: the views' driver has no such setting; it has {', '.join(_TAKEN)}")
    protocol = values.get("security.protocol", "plaintext").lower()
    if protocol not in PROTOCOLS:
        raise BadInput(f"kafka.security.protocol = {protocol!r}: must be one of {', '.join(PROTOCOLS)}")
    context = _context(values) if protocol.endswith("ssl") else None
    if not protocol.startswith("sasl"):
        return None if context is None else SSLCredentials(context)
    mechanism = values.get("sasl.mechanism") or values.get("sasl.mechanisms") or ""
    if mechanism not in MECHANISMS:
        raise BadInput(f"kafka.sasl.mechanism = {mechanism!r}: the views' driver knows {', '.join(MECHANISMS)}")
    return SASLCredentials(
        username=values.get("sasl.username", ""),
        password=values.get("sasl.password", ""),
        mechanism=mechanism,
        ssl_context=context,
    )


def _context(values: Mapping[str, str]) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if path := values.get("ssl.ca.location"):
        # As librdkafka: only the named certificates are trusted.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        how = {"capath" if Path(path).is_dir() else "cafile": path}
        _load("ssl.ca.location", path, lambda: context.load_verify_locations(**how))
    if values.get("ssl.endpoint.identification.algorithm", "https") == "none":
        context.check_hostname = False
    if values.get("enable.ssl.certificate.verification", "true").lower() == "false":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if own := values.get("ssl.certificate.location"):
        key, password = values.get("ssl.key.location") or None, values.get("ssl.key.password") or None
        # An empty password: without one OpenSSL would prompt on the terminal.
        _load("ssl.certificate.location", own, lambda: context.load_cert_chain(own, key, password or ""))
    return context


def _load(name: str, path: str, load: Callable[[], None]) -> None:
    try:
        load()
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError; its text names no secret
        raise BadInput(f"kafka.{name} = {path}: cannot be used: {getattr(error, 'strerror', None) or error}") from error
