"""Addresses of networks that webhooks may be sent to."""

from __future__ import annotations

from ipaddress import ip_network

import pytest

from evalsite.webhooks.addresses import may_be_called

INSIDE = (
    *("127.0.0.1", "127.9.9.9", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1"),
    *(
        "100.127.255.254",
        "0.0.0.0",
        "0.1.2.3",
        "224.0.0.1",
        "239.255.255.255",
        "240.0.0.1",
        "255.255.255.255",
    ),
    *("192.0.0.1", "192.0.2.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "192.88.99.1"),
    *("::1", "::", "fe80::1", "fe80::1%lo", "fc00::1", "fd12::1", "fec0::1", "ff02::1", "2001:db8::1"),
    *("100::1", "64:ff9b:1::1"),
)
INSIDE_IPV6 = (
    *("::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::127.0.0.1"),
    *("64:ff9b::10.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "2002:a00:1::1"),
    *("::ffff:0:10.0.0.1", "2001:0:808:808::80ff:fffe", "2606:4700::5efe:a00:1", "2606:4700::200:5efe:a00:1"),
)


@pytest.mark.parametrize("address", [*INSIDE, *INSIDE_IPV6, "localhost", "", "1.2.3", "2130706433"])
def test_an_address_that_is_not_public_is_refused(address: str) -> None:
    assert not may_be_called(address)


@pytest.mark.parametrize(
    "address", ["8.8.8.8", "1.1.1.1", "2606:4700::1", "::ffff:8.8.8.8", "64:ff9b::808:808", "100.128.0.1"]
)
def test_a_public_address_may_be_called(address: str) -> None:
    assert may_be_called(address)


def test_an_allowed_network_opens_itself_alone() -> None:
    allowed = [ip_network("10.1.0.0/16"), ip_network("fd00::/64")]
    assert may_be_called("10.1.2.3", allowed)
    assert may_be_called("::ffff:10.1.2.3", allowed)
    assert may_be_called("fd00::5", allowed)
    assert not may_be_called("10.2.0.1", allowed)
    assert not may_be_called("127.0.0.1", allowed)
