from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.sandbox.permitted_webhook_addresses import MAX_URL, is_address_allowed, url_refusal_reason

HOSTILE = [
    "http://169.254.169.254/latest/meta-data",  # metadata
    "https://10.0.0.1/hook",  # private
    "https://100.64.0.1/hook",  # CGNAT
    "https://224.0.0.1/hook",  # multicast
    "http://2130706433/hook",  # decimal
    "http://0177.0.0.1/hook",  # octal
    "http://0x7f.1/hook",  # hexadecimal
    "http://127.1/hook",  # short
    "http://[::ffff:127.0.0.1]/hook",  # IPv4 in IPv6
    "http://[fe80::1%25eth0]/hook",  # zone
    "https://user@example.com/hook",  # userinfo
    "https://localhost./hook",  # trailing dot
    "http://127.0.0.1@example.com/hook",
    "http://example.com/hook",  # not https
    "https://0/hook",
    "https://1.2.3.0x4/hook",
    "https://①②⑦.0.0.1/hook",
    "https://\uff4cocalhost/hook",
    "https://exam ple.com/hook",
    "https://example.com\\@127.0.0.1/hook",
    "https://example.com/hook#part",
    "https://example.com:0/hook",
    "https://example.com:65536/hook",
    "https://example.com:/hook",
    "https://example.com/hook\n",
    "https://-example.com/hook",
    "https://[::]/hook",
    "https://8.8.8.8/hook",
    "ftp://example.com/hook",
    "file:///etc/passwd",
    "https:///hook",
    "https://" + "a" * MAX_URL + ".com",
    "",
]
GOOD = [
    "https://hooks.example.com",
    "https://Hooks.Example.com:8443/a/b?c=d",
    "https://xn--bcher-kva.example/hook",
    "https://hooks.example.com?a=b",
    "http://localhost:8080/hook",
    "http://127.0.0.1/hook",
    "http://127.255.0.3:1",
    "https://[::1]:65535/hook",
]


@pytest.mark.parametrize("url", HOSTILE)
def test_a_hostile_url_is_refused(url: str) -> None:
    """Internal addresses, unusual forms of them, user information and malformed addresses are refused."""
    assert url_refusal_reason(url)


@pytest.mark.parametrize("url", GOOD)
def test_a_url_of_the_internet_or_this_machine_is_accepted(url: str) -> None:
    """https with a DNS name, and both schemes with a usual form of a loopback address."""
    assert url_refusal_reason(url) is None


@pytest.mark.parametrize(
    "address",
    [
        *("0.0.0.0", "10.1.2.3", "172.16.0.1", "192.168.0.1", "100.64.0.1", "169.254.169.254", "168.63.129.16"),
        *("192.88.99.1", "224.0.0.1", "240.0.0.1", "255.255.255.255", "127.0.0.1", "::1", "::", "fe80::1", "fc00::1"),
        *("ff02::1", "::ffff:8.8.8.8", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::", "2001::1", "fe80::1%eth0", "fec0::1"),
        *("fd00:ec2::254", "not an address"),
    ],
)
def test_a_name_must_not_lead_to_an_internal_address(address: str) -> None:
    """A public name that is resolved to a special address is refused, to a loopback one as well."""
    assert not is_address_allowed(address, "hooks.example.com")


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "::1"])
def test_names_of_this_machine_lead_to_this_machine_only(host: str) -> None:
    """localhost with an address elsewhere, even a public one, is refused."""
    assert is_address_allowed("127.0.0.1", host)
    assert is_address_allowed("::1", host)
    assert not any(is_address_allowed(each, host) for each in ("8.8.8.8", "10.0.0.1", "::ffff:127.0.0.1", "::1%lo"))


@given(st.ip_addresses())
def test_only_global_unicast_addresses_are_public(address: IPv4Address | IPv6Address) -> None:
    """No address that is private, link-local, loopback, reserved or multicast is reached by a name."""
    allowed = is_address_allowed(str(address), "hooks.example.com")
    special = address.is_private or address.is_link_local or address.is_multicast or address.is_unspecified
    assert not (allowed and (special or address.is_loopback or address.is_reserved))


@given(st.ip_addresses(v=4))
def test_an_ipv4_address_cannot_hide_in_an_ipv6_one(address: IPv4Address) -> None:
    """Mapped, NAT64 and 6to4 forms of any IPv4 address are refused."""
    number = int(address)
    for form in ((0xFFFF << 32) | number, (0x64FF9B << 96) | number, (0x2002 << 112) | (number << 80)):
        assert not is_address_allowed(str(IPv6Address(form)), "hooks.example.com")
