"""Which addresses pages may be given, and that a name is looked at where it leads."""

import asyncio
import socket
from typing import Any

import pytest

pytest.importorskip("aiohttp", reason="aiohttp is not installed")

from streams.results import render_network
from streams.results.render_network import Network, is_public

INSIDE = (
    *("127.0.0.1", "10.0.0.1", "192.168.1.1", "172.16.0.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1"),
    *("255.255.255.255", "::1", "::", "fe80::1", "fe80::1%eth0", "fd00::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1"),
    "ff02::1",
    *("64:ff9b::127.0.0.1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "2002:7f00:1::", "2002:a9fe:a9fe::1", "::127.0.0.1"),
    *("::ffff:0:10.0.0.1", "2001:0:4136:e378:8000:63bf:80ff:fffe", "2001:db8::1", "2606:2800::5efe:10.0.0.1"),
    *("2606:2800::200:5efe:10.0.0.1", "fec0::1", "4000::1", "3fff::1"),
    *("168.63.129.16", "192.88.99.1", "2002:a83f:8110::1", "192.0.0.192"),
)


def test_only_addresses_of_the_public_network_are_public() -> None:
    assert [address for address in INSIDE if is_public(address)] == []
    assert all(map(is_public, ("93.184.216.34", "2606:2800:220:1::1", "::ffff:93.184.216.34")))
    assert all(map(is_public, ("64:ff9b::93.184.216.34", "2002:5db8:d822::1", "2a00:1450:4001::200e")))


FORMS = (
    *("127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "2130706433", "0x7f.1", "localhost", "127.1", "127.0.1", "0177.1"),
    *("127.0.0.1.", "127.1.", "0x7f000001", "\uff11\uff12\uff17.1", "[::ffff:7f00:1]", "0", "0.0.0.0"),
)


@pytest.mark.parametrize("host", FORMS)
def test_nothing_inside_is_connected_to(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        port = server.getsockname()[1]
        assert asyncio.run(answer(f"http://{host}:{port}/")) is None
        with pytest.raises(BlockingIOError):
            server.accept()


async def answer(url: str) -> Any:
    async with Network() as opened:
        return await opened.get(url)


def test_a_name_that_leads_inside_as_well_leads_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name with a public address and one inside: the client might take either."""
    asked: list[str] = []

    class System:
        async def resolve(self, host: str, port: int, family: int) -> list[dict[str, Any]]:
            asked.append(host)
            return [{"host": "93.184.216.34"}, {"host": "127.0.0.1"}]

        async def close(self) -> None: ...

    monkeypatch.setattr(render_network, "ThreadedResolver", System)
    assert asyncio.run(answer("http://a.example/")) is None
    assert asked == ["a.example"]
