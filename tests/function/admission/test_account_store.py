"""Both stores keep accounts in the same way; the shared one is a real Redis."""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import replace

import pytest
from redis.asyncio import Redis

from function.admission.account import CURRENT, HOUR_MS, Account, Allowance, Receipt
from function.admission.account_store import KEEP_MS, InMemoryAccounts
from function.admission.redis_accounts import RedisAccounts
from tests.running import unused_port

from .redis_server import RedisServer

FREE = Allowance(10)
WHAT = ["take"] * 4 + ["back", "grant", "settle", "look"]


@pytest.fixture(params=["memory", "redis"])
async def store(request):
    if request.param == "memory":
        yield InMemoryAccounts()
        return
    server = request.getfixturevalue("redis_server")
    store = RedisAccounts(server.url, 5.0)
    yield store
    await store.close()


def timeless(account):
    return replace(account, ends=bool(account.ends), hour=bool(account.hour))


async def test_tokens_are_taken_until_there_are_none(store):
    for left in range(9, -1, -1):
        debit, _ = await store.take("ann", FREE, 1)
        assert debit.account.left(FREE) == left
    debit, _ = await store.take("ann", FREE, 1)
    assert debit.receipt is None
    assert HOUR_MS - 60_000 < debit.again_ms <= HOUR_MS
    assert (await store.take("bob", FREE, 10))[0].receipt


async def test_a_price_above_everything_is_never_paid(store):
    assert (await store.take("ann", FREE, 11))[0].again_ms is None
    assert (await store.take("ann", replace(FREE, cap=3), 4))[0].again_ms is None
    assert (await store.look("ann")).account == Account()


async def test_the_allowance_comes_back_after_its_period(store):
    short = Allowance(2, 300)
    assert (await store.take("ann", short, 2))[0].receipt
    refused, _ = await store.take("ann", short, 1)
    assert 0 < refused.again_ms <= 300
    await asyncio.sleep(refused.again_ms / 1e3 + 0.01)
    assert (await store.take("ann", short, 2))[0].receipt


async def test_a_refund_gives_back_once_what_was_taken(store):
    await store.grant("ann", 3, "key")
    debit, _ = await store.take("ann", FREE, 12)
    assert (debit.receipt.allowed, debit.receipt.granted) == (10, 2)
    account = (await store.give_back("ann", debit.receipt)).account
    assert (account.left(FREE), account.granted, account.spent) == (10, 3, 0)


async def test_a_grant_is_made_once_for_each_key(store):
    assert (await store.grant("ann", 5, "one")).before is None
    again = await store.grant("ann", 7, "one")
    assert (again.before, again.balance.account.granted) == (5, 5)
    assert (await store.grant("ann", 7, "two")).balance.account.granted == 12
    assert (await store.grant("bob", 1, "one")).balance.account.granted == 1


async def test_a_cap_of_an_hour_holds(store):
    capped = Allowance(10, 24 * HOUR_MS, cap=4)
    assert (await store.take("ann", capped, 4))[0].receipt
    refused, _ = await store.take("ann", capped, 1)
    assert HOUR_MS - 60_000 < refused.again_ms <= HOUR_MS


async def test_a_hundred_at_once_get_no_more_than_there_is(store):
    debits = await asyncio.gather(*(store.take("ann", Allowance(50), 3) for _ in range(100)))
    assert sum(debit.receipt is not None for debit, _ in debits) == 16
    assert (await store.look("ann")).account.used == 48


@pytest.mark.parametrize("seed", range(5))
async def test_both_stores_decide_the_same(redis_server, seed):
    """The same course of events, random but for its seed, in both."""
    chance = random.Random(seed)
    memory, shared = InMemoryAccounts(), RedisAccounts(redis_server.url, 5.0)
    receipts = []
    for _ in range(300):
        what, subject = chance.choice(WHAT), chance.choice("ab")
        if what == "take":
            allowance = Allowance(chance.randint(0, 40), cap=chance.choice([None, None, 30]))
            tokens = chance.randint(1, 12)
            here, _ = await memory.take(subject, allowance, tokens)
            there, _ = await shared.take(subject, allowance, tokens)
            assert timeless(here.account) == timeless(there.account)
            assert (here.receipt is None) == (there.receipt is None)
            assert (here.again_ms is None) == (there.again_ms is None)
            if here.receipt:
                receipts.append((subject, here.receipt, there.receipt))
        elif what == "back" and receipts:
            subject, receipt, same = receipts.pop(chance.randrange(len(receipts)))
            here = await memory.give_back(subject, receipt)
            there = await shared.give_back(subject, same)
            assert timeless(here.account) == timeless(there.account)
        elif what == "settle":
            allowance = Allowance(chance.randint(0, 40))
            tokens, key = chance.randint(1, 12), str(chance.randint(0, 20))
            here = await memory.settle(subject, allowance, tokens, key)
            there = await shared.settle(subject, allowance, tokens, key)
            assert timeless(here.account) == timeless(there.account)
            if chance.random() < 0.3:  # what was settled is given back, in whatever period
                receipt = Receipt(chance.randint(0, tokens), 0, CURRENT, CURRENT)
                receipts.append((subject, receipt, receipt))
        elif what == "grant":
            tokens, key = chance.randint(1, 9), str(chance.randint(0, 20))
            here = await memory.grant(subject, tokens, key)
            there = await shared.grant(subject, tokens, key)
            assert here.before == there.before
        here, there = await memory.look(subject), await shared.look(subject)
        assert timeless(here.account) == timeless(there.account)
    await shared.close()


async def test_memory_drops_what_has_no_say_any_more():
    now = 0
    store = InMemoryAccounts(lambda: now)
    for number in range(1000):
        await store.take(f"subject-{number}", FREE, 1)
    await store.grant("ann", 5, "key")
    now = HOUR_MS + 1
    await store.look("ann")
    assert len(store) == 1
    now = KEEP_MS + 1
    assert (await store.grant("ann", 5, "key")).before is None


async def test_two_replicas_and_a_hundred_clients_share_one_account(redis_server):
    replicas = [RedisAccounts(redis_server.url, 5.0) for _ in range(2)]
    allowance = Allowance(200)

    async def client(number):
        taken = 0
        for _ in range(4):
            debit, _ = await replicas[number % 2].take("ann", allowance, 1)
            taken += debit.receipt is not None
        return taken

    assert sum(await asyncio.gather(*map(client, range(100)))) == 200
    for replica in replicas:
        assert (await replica.look("ann")).account.used == 200
        await replica.close()


async def test_a_decision_is_one_round_trip(redis_server):
    store = RedisAccounts(redis_server.url, 5.0)
    await store.look("ann")
    async with Redis.from_url(redis_server.url) as redis:
        await redis.config_resetstat()
        for number in range(10):
            await store.take("ann", FREE, 1)
            await store.grant("ann", 1, str(number))
        stats = await redis.info("commandstats")
    asked = {name: each["calls"] for name, each in stats.items()}
    in_scripts = {"time", "hmget", "hset", "pexpireat", "get", "set"}
    ours = {"info", "config|resetstat"}
    assert {name.removeprefix("cmdstat_") for name in asked} <= {"evalsha"} | in_scripts | ours
    assert asked["cmdstat_evalsha"] == 20
    await store.close()


async def test_keys_name_nobody_and_expire(redis_server):
    store = RedisAccounts(redis_server.url, 5.0)
    await store.take("ann@example.org", FREE, 1)
    await store.grant("{odd}", 5, "a key")
    async with Redis.from_url(redis_server.url) as redis:
        keys = await redis.keys()
        assert len(keys) == 3
        for key in keys:
            assert b"ann" not in key
            assert b"odd" not in key
            assert await redis.ttl(key) > 0
        assert max([await redis.pttl(key) for key in keys]) > KEEP_MS
        assert min([await redis.pttl(key) for key in keys]) <= HOUR_MS
    await store.close()


async def test_both_keys_of_a_subject_are_in_one_slot_of_a_cluster(needs, free_port, tmp_path):
    bus = str(unused_port())
    options = "--cluster-enabled", "yes", "--cluster-port", bus, "--dir", str(tmp_path)
    with RedisServer(needs("redis-server"), free_port, *options) as server:
        async with Redis.from_url(server.url) as redis:
            await redis.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
            while b"cluster_state:ok" not in await redis.execute_command("CLUSTER", "INFO"):
                await asyncio.sleep(0.05)
        store = RedisAccounts(server.url, 5.0)
        for number in range(20):
            assert (await store.grant(f"subject-{number}", 5, "key")).before is None
            assert (await store.take(f"subject-{number}", FREE, 12))[0].receipt
        await store.close()


async def test_a_password_and_tls_are_in_the_address(needs, free_port, tmp_path, certificate):
    cert, key = certificate
    options = ("--tls-cert-file", cert, "--tls-key-file", key, "--tls-auth-clients", "no")
    options += ("--requirepass", "a-secret", "--dir", str(tmp_path))
    with RedisServer(needs("redis-server"), free_port, *options, tls=True):
        where = f"localhost:{free_port}/0?ssl_ca_certs={cert}"
        store = RedisAccounts(f"rediss://:a-secret@{where}", 5.0)
        assert (await store.take("ann", FREE, 1))[0].receipt
        await store.close()
        for wrong in (f"rediss://:another@{where}", f"rediss://:a-secret@localhost:{free_port}/0"):
            store = RedisAccounts(wrong, 5.0)
            with pytest.raises(Exception, match=r"(?i)password|certificate"):
                await store.take("ann", FREE, 1)
            await store.close()


@pytest.fixture
def certificate(tmp_path):
    """The files of a certificate for localhost, signed by itself, and its key."""
    import datetime as dt

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
    )

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    paths = tmp_path / "cert.pem", tmp_path / "key.pem"
    paths[0].write_bytes(made.public_bytes(Encoding.PEM))
    paths[1].write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return tuple(map(str, paths))


async def test_what_nobody_waits_for_any_more_takes_nothing(redis_server):
    """Redis was stopped while it was asked; when it goes on, it reads what was asked then."""
    store = RedisAccounts(redis_server.url, 0.2)
    assert (await store.take("ann", FREE, 1))[0].receipt
    redis_server.pause()
    began = time.monotonic()
    refused = await asyncio.gather(
        *(store.take("ann", FREE, 1) for _ in range(5)), return_exceptions=True
    )
    assert all(isinstance(each, TimeoutError) for each in refused)
    assert time.monotonic() - began < 2
    await asyncio.sleep(0.3)
    redis_server.resume()
    await asyncio.sleep(0.3)
    assert (await store.look("ann")).account.used == 1
    await store.close()


async def test_a_redis_that_was_started_again_is_used_again(redis_server):
    store = RedisAccounts(redis_server.url, 1.0)
    assert (await store.take("ann", FREE, 1))[0].receipt
    redis_server.kill()
    with pytest.raises(Exception, match=r"(?i)connect|closed"):
        await store.take("ann", FREE, 1)
    redis_server.start()
    debits = [await store.take("ann", FREE, 1) for _ in range(3)]
    assert all(debit.receipt for debit, _ in debits)
    await store.close()
