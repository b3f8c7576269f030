"""While no key is configured, only this machine is answered."""

from ipaddress import IPv6Address, ip_address
from typing import Any
from urllib.parse import urlsplit

from litestar.connection import ASGIConnection

from schemas.errors import Forbidden

MAKE_A_KEY = "make one with `apidesk keys add`, or set APIDESK_ADMIN_KEY"

FORWARDED = ("forwarded", "x-forwarded-for", "x-real-ip")

Connection = ASGIConnection[Any, Any, Any, Any]


def is_loopback(host: str) -> bool:
    """Whether `host`, an address or a name, is this machine and reached by nobody else."""
    if host.lower() == "localhost":
        return True
    try:
        address = ip_address(host)
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return (mapped or address).is_loopback


def check_local(connection: Connection) -> None:
    """Raises Forbidden for a request that this machine did not send to itself.

    A page of another site can make a browser here send one, by a name that it points to loopback:
    its Host and Origin tell. What a proxy passes on comes from elsewhere, too.
    """
    headers, peer = connection.headers, connection.client
    if peer and not is_loopback(peer.host):
        raise _forbidden("this one comes from elsewhere")
    if any(name in headers for name in FORWARDED):
        raise _forbidden("this one comes through a proxy")
    if not is_loopback(_host(f"//{headers.get('host', '')}")):
        raise _forbidden("the Host of this one is no loopback name")
    if "origin" in headers and not is_loopback(_host(headers["origin"])):
        raise _forbidden("the Origin of this one is no loopback name")


def from_this_machine(connection: Connection) -> bool:
    """Whether both ends of the connection are one machine, at whichever of its addresses."""
    peer, server = connection.client, connection.scope.get("server")
    return peer is None or is_loopback(peer.host) or bool(server and peer.host == server[0])


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def _forbidden(why: str) -> Forbidden:
    return Forbidden(
        "no API key is configured, so only requests of this machine to itself are answered, and "
        f"{why}: {MAKE_A_KEY}"
    )
