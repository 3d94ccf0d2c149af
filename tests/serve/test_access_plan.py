"""Where a service listens, for whom, and what is refused."""

import pytest

from holon.serve.access_plan import AccessMode, AccessRequest, BadAccessError, plan_access


def test_without_a_word_only_this_machine_can_reach_it() -> None:
    plan = plan_access(AccessRequest())
    assert (plan.host, plan.port) == ("127.0.0.1", 7878)
    assert plan.base_url(7878) == "http://127.0.0.1:7878"
    assert plan.host_names(7878) == {b"127.0.0.1:7878", b"localhost:7878", b"[::1]:7878"}


@pytest.mark.parametrize(
    ("asked", "address"),
    [
        (AccessRequest(listen="127.0.0.1:8080"), ("127.0.0.1", 8080)),
        (AccessRequest(listen="[::1]:8080"), ("::1", 8080)),
        (AccessRequest(host="localhost", port=0), ("localhost", 0)),
        (AccessRequest(port=9), ("127.0.0.1", 9)),
        (
            AccessRequest(mode=AccessMode.LAN, host="192.168.1.2", has_own_token=True),
            ("192.168.1.2", 7878),
        ),
        (
            AccessRequest(mode=AccessMode.TAILNET, listen="100.64.0.7:1", has_own_token=True),
            ("100.64.0.7", 1),
        ),
    ],
)
def test_an_address_is_taken_as_it_is_given(asked: AccessRequest, address: tuple[str, int]) -> None:
    plan = plan_access(asked)
    assert (plan.host, plan.port) == address


def test_an_advertised_address_is_a_name_of_ours() -> None:
    asked = AccessRequest(
        mode=AccessMode.TUNNEL, advertise="https://holon.example.org/", has_own_token=True
    )
    plan = plan_access(asked)
    assert plan.base_url(7878) == "https://holon.example.org"
    assert {b"holon.example.org", b"holon.example.org:443"} <= plan.host_names(7878)


@pytest.mark.requirement("triggers:callback-base")
def test_trigger_urls_may_begin_with_another_address_than_the_advertised_one() -> None:
    asked = AccessRequest(
        advertise="https://holon.example.org", callback_base="http://hooks.example.org:8080/in/"
    )
    plan = plan_access(asked)
    assert plan.base_url(7878) == "http://hooks.example.org:8080/in"
    assert plan.advertise == "https://holon.example.org"
    assert {b"holon.example.org", b"hooks.example.org:8080"} <= plan.host_names(7878)


def test_a_tunnel_may_be_there_for_callbacks_only() -> None:
    asked = AccessRequest(
        mode=AccessMode.TUNNEL, callback_base="https://hooks.example.org", has_own_token=True
    )
    plan = plan_access(asked)
    assert (plan.base_url(1), plan.advertise) == ("https://hooks.example.org", None)


def test_an_address_with_colons_is_written_in_brackets() -> None:
    plan = plan_access(AccessRequest(listen="[::1]:8080"))
    assert (plan.base_url(9), plan.address(9)) == ("http://[::1]:9", "[::1]:9")


def test_listening_everywhere_is_no_name() -> None:
    asked = AccessRequest(mode=AccessMode.LAN, host="0.0.0.0", has_own_token=True)
    assert not any(name.startswith(b"0.0.0.0") for name in plan_access(asked).host_names(1))


@pytest.mark.parametrize(
    "asked",
    [
        AccessRequest(host="0.0.0.0"),
        AccessRequest(mode=AccessMode.LAN, host="0.0.0.0"),  # S14: no token of the operator's
        AccessRequest(mode=AccessMode.LAN, has_own_token=True),
        AccessRequest(mode=AccessMode.TAILNET, host="127.0.0.1", has_own_token=True),
        AccessRequest(mode=AccessMode.TUNNEL, has_own_token=True),
        AccessRequest(mode=AccessMode.TUNNEL, advertise="https://a.example"),
        AccessRequest(listen="127.0.0.1:1", port=2),
        AccessRequest(listen="127.0.0.1"),
        AccessRequest(listen=":80"),
        AccessRequest(listen="127.0.0.1:٨٠"),
        AccessRequest(listen="127.0.0.1:99999"),
        AccessRequest(host="evil.example"),
        AccessRequest(port=70_000),
        AccessRequest(advertise="ftp://a.example"),
        AccessRequest(advertise="https://user:word@a.example"),
        AccessRequest(advertise="https://a.example/?q=1"),
        AccessRequest(advertise="nonsense"),
        AccessRequest(advertise="http://[::1"),
        AccessRequest(advertise="http://a.example:99999"),
        AccessRequest(advertise="http://a.example:0"),
        AccessRequest(advertise="http://a.example\nX: y"),
        AccessRequest(advertise="http://a example"),
        AccessRequest(advertise="http://a\udcff.example"),
        AccessRequest(callback_base="nonsense"),
        AccessRequest(callback_base="http://[::1"),
    ],
)
def test_a_contradiction_is_refused_with_what_to_change(asked: AccessRequest) -> None:
    with pytest.raises(BadAccessError) as refused:
        plan_access(asked)
    assert refused.value.hint
