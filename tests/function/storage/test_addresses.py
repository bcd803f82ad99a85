"""Which addresses strangers may lead us to."""

from __future__ import annotations

from ipaddress import ip_network

import pytest

from function.storage.addresses import inside, public


@pytest.mark.parametrize(
    "address", ["8.8.8.8", "93.184.216.34", "2606:4700:4700::1111", "64:ff9b::808:808"]
)
def test_addresses_of_the_internet_are_public(address):
    assert public(address)


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "127.255.255.254",
        "0.0.0.0",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "100.100.100.200",
        "192.0.0.192",
        "192.0.2.1",
        "198.18.0.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "fe80::1",
        "fe80::1%eth0",
        "fc00::1",
        "fd00:ec2::254",
        "fec0::1",
        "ff02::1",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "64:ff9b::7f00:1",
        "64:ff9b::a9fe:a9fe",
        "2002:7f00:1::",
        "2001:0:4136:e378:8000:63bf:3fff:fdd2",
        "2130706433",
        "127.1",
        "0x7f.0.0.1",
        "0177.0.0.1",
        "localhost",
        "",
    ],
)
def test_everything_else_is_not(address):
    assert not public(address)


def test_a_network_holds_its_addresses_also_when_ipv6_wraps_them():
    networks = [ip_network("10.0.0.0/8"), ip_network("fd00::/8")]
    assert inside("10.1.2.3", networks)
    assert inside("::ffff:10.1.2.3", networks)
    assert inside("fd00::1", networks)
    assert not inside("11.0.0.1", networks)
    assert not inside("10.1", networks)
