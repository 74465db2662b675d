"""Which addresses of networks a webhook may be sent to."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network
NEVER_PUBLIC: tuple[Network, ...] = tuple(
    map(
        ip_network,
        (
            "0.0.0.0/8",
            "100.64.0.0/10",  # shared by customers of a carrier
            "192.0.0.0/24",
            "192.88.99.0/24",  # relays of 6to4
            "198.18.0.0/15",
            "224.0.0.0/3",  # multicast and reserved
            "fec0::/10",  # site-local
            "64:ff9b:1::/48",  # NAT64 of a network's own
            "5f00::/16",
        ),
    )
)
MAPPED = IPv6Network("::ffff:0:0/96")
NAT64 = IPv6Network("64:ff9b::/96")
COMPATIBLE = (IPv6Network("::/96"), IPv6Network("::ffff:0:0:0/96"))
ISATAP = (0x00005EFE, 0x02005EFE)  # the third quarter of an address that ends with an IPv4 one


def may_be_called(text: str, allowed: Sequence[Network] = ()) -> bool:
    """Whether an address is public, and any IPv4 address inside it too, or stands in an allowed network."""
    try:
        address = ip_address(text)
    except ValueError:
        return False
    inner = embedded_in(address)
    return any(_contains(network, (address, *inner)) for network in allowed) or (
        _is_public(address) and all(map(_is_public, inner))
    )


def _contains(network: Network, addresses: Sequence[Address]) -> bool:
    return any(address.version == network.version and address in network for address in addresses)


def _is_public(address: Address) -> bool:
    if isinstance(address, IPv6Address) and (address in MAPPED or address in NAT64):
        return True  # as public as what it holds
    return (
        address.is_global
        and not (address.is_multicast or address.is_reserved or address.is_unspecified)
        and not (address.is_loopback or address.is_link_local or address.is_private)
        and not any(_contains(network, (address,)) for network in NEVER_PUBLIC)
    )


def embedded_in(address: Address) -> list[IPv4Address]:
    """The IPv4 addresses inside an IPv6 address, by any way of writing or tunnelling one there."""
    if isinstance(address, IPv4Address):
        return []
    number = int(address)
    last = IPv4Address(number & 0xFFFFFFFF)
    inner = [*filter(None, (address.ipv4_mapped, address.sixtofour)), *(address.teredo or ())]
    if address in NAT64 or any(address in network for network in COMPATIBLE):
        inner.append(last)
    if number >> 32 & 0xFFFFFFFF in ISATAP:
        inner.append(last)
    return inner
