"""Which addresses a URI of a stranger may lead to: a pure decision."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_TRANSLATED = (IPv6Network("64:ff9b::/96"), IPv6Network("64:ff9b:1::/48"))
"""NAT64: the last 32 bits are an IPv4 address, which a gateway connects to."""

_NOT_FOR_STRANGERS = tuple(
    map(ip_network, ("100.64.0.0/10", "192.0.0.0/24", "192.88.99.0/24", "fec0::/10"))
)
"""Shared address space of providers, protocol assignments, 6to4 relays and site-local addresses;
not every version of Python says that they are not global."""


def allowed(scheme: str, text: str, networks: Iterable[Network]) -> bool:
    """Whether a URI of a stranger may lead to an address.

    Args:
        scheme: `https`, or `http`, which leads only into the networks.
        text: the address.
        networks: those of the operator's choice, public or not.
    """
    return (scheme == "https" and public(text)) or inside(text, networks)


def inside(text: str, networks: Iterable[Network]) -> bool:
    """Whether an address is in one of the networks; what is no canonical address is in none."""
    try:
        address = _plain(ip_address(text))
    except ValueError:
        return False
    return any(address in each for each in networks)


def public(text: str) -> bool:
    """Whether an address belongs to the public internet.

    Addresses that carry an IPv4 address count as that one. Old spellings of IPv4 (127.1,
    2130706433) count as not public, whatever they stand for.
    """
    try:
        address = _plain(ip_address(text))
    except ValueError:
        return False
    if isinstance(address, IPv6Address) and (address.sixtofour or address.teredo):
        return False
    if address.is_multicast or address.is_reserved or any(address in n for n in _NOT_FOR_STRANGERS):
        return False
    return address.is_global


def _plain(address: Address) -> Address:
    """The IPv4 address that an IPv6 address stands for, or the address itself."""
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped:
            return address.ipv4_mapped
        if any(address in network for network in _TRANSLATED):
            return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address
