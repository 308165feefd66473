"""Serves /metrics, /live and /ready over HTTP, for Prometheus, supervisors and load balancers.

/live answers 503 if the process should be restarted: one of its loops has made no turn for `stall_ms`. /ready answers
503 while a role still catches up or has no partition: a restart would not help. Both give their reason as JSON.

The server of prometheus_client is not used: it keeps a thread for each silent client without end, and answers a
request with any Host.
"""

import contextlib
import json
import logging
import socket
import socketserver
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler
from typing import Any, ClassVar

from neardup.errors import BadInput
from streams.process.foreign_requests import probe_refusal
from streams.process.metrics import Metrics

_Pages = dict[str, Callable[[], tuple[int, str, bytes]]]

_log = logging.getLogger(__name__)

REQUESTS_MAX = 16  # at once; a probe and a scrape need two. A further one replaces the oldest
REQUEST_SECONDS_MAX = 5  # longest silence of a client
REASON_CHARS_MAX = 500


class RoleHealth:
    """Health of a role. Its loop writes it; request threads read it."""

    def __init__(self, steady_ms: Callable[[], int]) -> None:
        self._steady_ms = steady_ms
        self._turned = steady_ms()
        self._state = (False, "starting")
        self._awaits = ""

    def turned(self, awaits: str = "") -> None:
        """Records a turn of the loop, with or without work. Call it also in every wait that may exceed stall_ms.

        awaits: reason for which the loop waits; until the next turn the role is not ready for this reason.
        """
        self._turned = self._steady_ms()
        self._awaits = awaits

    def ready(self, reason: str = "caught up") -> None:
        self._state = (True, reason)

    def not_ready(self, reason: str) -> None:
        self._state = (False, reason)

    def silent_ms(self) -> int:
        return max(0, self._steady_ms() - self._turned)

    def state(self) -> tuple[bool, str]:
        """(whether the role is ready, the reason)."""
        ready, reason = self._state
        awaits = self._awaits
        return ready and not awaits, awaits or reason


class Health:
    """Health of all roles of the process. steady_ms: a monotonic clock; its zero has no meaning.

    redact: applied to every reason before it leaves the process.
    """

    def __init__(self, steady_ms: Callable[[], int], stall_ms: int, redact: Callable[[str], str] = str) -> None:
        self._steady_ms = steady_ms
        self._stall_ms = stall_ms
        self._redact = redact
        self._roles: dict[str, RoleHealth] = {}
        #: Further fields of the answer of /ready.
        self.facts: Mapping[str, str] = {}

    def role(self, name: str) -> RoleHealth:
        """The health of a role, made at the first call. From then on the role's loop must turn."""
        if name not in self._roles:
            # a new dict, because request threads iterate over the old one
            self._roles = {**self._roles, name: RoleHealth(self._steady_ms)}
        return self._roles[name]

    def live(self) -> tuple[bool, dict[str, Any]]:
        """(whether every loop turned within stall_ms, the answer as JSON)."""
        roles = {}
        for name, role in self._roles.items():
            silent = role.silent_ms()
            roles[name] = {"ok": silent <= self._stall_ms, "silent_ms": silent, "allowed_ms": self._stall_ms}
        return self._answer(roles)

    def ready(self) -> tuple[bool, dict[str, Any]]:
        """(whether every role is ready, the answer as JSON). Without roles the process is not ready."""
        roles = {}
        for name, role in self._roles.items():
            ok, reason = role.state()
            roles[name] = {"ok": ok, "reason": self._redact(reason)[:REASON_CHARS_MAX]}
        ok, answer = self._answer(roles)
        return (ok and bool(roles)), {**answer, **self.facts, "ok": ok and bool(roles)}

    def standing(self) -> dict[str, bool]:
        """Whether each role is ready."""
        return {name: role.state()[0] for name, role in self._roles.items()}

    def stopped(self, reason: str) -> None:
        """Records that all roles are stopped on purpose: none is ready, and none has to turn now."""
        for role in self._roles.values():
            role.not_ready(reason)
            role.turned()

    @staticmethod
    def _answer(roles: dict[str, dict[str, Any]]) -> tuple[bool, dict[str, Any]]:
        ok = all(role["ok"] for role in roles.values())
        return ok, {"ok": ok, "roles": roles}


class HealthServer:
    """Serves from construction until `stop`, in its own threads. address: (host, port) in use.

    Raises BadInput if the address cannot be used. Port 0 selects a free port.
    """

    def __init__(self, host: str, port: int, health: Health, metrics: Metrics) -> None:
        class BoundHandler(_Handler):
            pages: ClassVar[_Pages] = {
                "/metrics": lambda: (200, "text/plain; version=0.0.4; charset=utf-8", _rendered(metrics, health)),
                "/live": lambda: _json(*health.live()),
                "/ready": lambda: _json(*health.ready()),
            }
            bound_to = host

        try:
            family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
            self._server = _Server(address, BoundHandler, family)
        except OSError as error:
            raise BadInput(
                f"cannot serve metrics on {host}:{port}: {error.strerror}; set metrics_host, metrics_port"
            ) from error
        self.address: tuple[str, int] = self._server.socket.getsockname()[:2]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), name="health", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Frees the port. Open requests end without it. Stopping twice is harmless."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def __enter__(self) -> "HealthServer":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def _rendered(metrics: Metrics, health: Health) -> bytes:
    for role, ready in health.standing().items():
        metrics.ready.labels(role).set(ready)
    return metrics.render()


def _json(ok: bool, answer: dict[str, Any]) -> tuple[int, str, bytes]:
    return (200 if ok else 503), "application/json", json.dumps(answer).encode() + b"\n"


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True  # an open request does not delay the end of the process
    request_queue_size = REQUESTS_MAX

    def __init__(self, address: Any, handler: type["_Handler"], family: int) -> None:
        self.address_family = family
        self._lock = threading.Lock()
        self._open: dict[Any, None] = {}  # connections in the order of arrival
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Accepts a request. At the limit the oldest connection is closed, so slow clients cannot block a probe."""
        with self._lock:
            if len(self._open) >= REQUESTS_MAX:
                oldest = next(iter(self._open))
                del self._open[oldest]
                with contextlib.suppress(OSError):  # closed already
                    oldest.shutdown(socket.SHUT_RDWR)  # its thread reads the end of the stream, and ends
            self._open[request] = None
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self._lock:
                self._open.pop(request, None)

    def handle_error(self, request: Any, client_address: Any) -> None:
        # Clients that disconnect or stay silent are normal; any other error is a bug.
        _log.debug("request failed", exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    """GET and HEAD of three pages. HTTP/1.0, so each request has its own connection."""

    timeout = REQUEST_SECONDS_MAX
    server_version = "neardup"
    sys_version = ""
    pages: ClassVar[_Pages]
    bound_to: ClassVar[str]

    def do_GET(self) -> None:
        page = self.pages.get(self.path.partition("?")[0])
        if reason := probe_refusal(dict(self.headers.items()), self.bound_to):
            status, kind, body = 403, "text/plain", f"{reason}\n".encode()
        else:
            status, kind, body = page() if page else (404, "text/plain", b"/metrics /live /ready\n")
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_HEAD = do_GET

    def log_message(self, format: str, *args: Any) -> None:
        """Logs nothing: probes come every few seconds."""
