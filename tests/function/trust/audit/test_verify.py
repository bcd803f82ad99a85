"""Whatever is done to an audit is found, and named with file and line."""

from __future__ import annotations

import hashlib
import hmac
import itertools
import json
import random
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from function.trust.audit.chain import ChainWriter, canonical, sealed
from function.trust.audit.find import WantedPicture, find
from function.trust.audit.keyring import KEYLESS, AuditKey
from function.trust.audit.line import AuditFile

from .chains import KEY, OTHER, lines, report, written


@pytest.fixture
async def folder(tmp_path):
    """Two chains, one after the other: the second has seen the end of the first."""
    await written(tmp_path)
    await written(tmp_path, ["d", "e"])
    return tmp_path


def ordered(folder):
    """The two files, the one that was seen first."""
    first, second = sorted(folder.glob("*.jsonl"), key=lambda path: path.stat().st_mtime_ns)
    return first, second


def edited(path, change):
    """Change the lines of a file."""
    text = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(change(text)))


def only(found):
    """The one fault of a report."""
    (fault,) = found.faults
    return str(fault)


async def test_what_nobody_touched_is_whole(folder):
    found = report(folder)
    assert (found.faults, found.notes, found.chains, found.lines) == ((), (), 2, 9)


async def test_a_line_has_what_it_is_about_and_no_name(folder):
    path, _ = ordered(folder)
    first, swap, *_, last = map(json.loads, path.read_text().splitlines())
    assert first["kind"] == "start"
    assert {"pid", "replica", "seen"} <= set(first)
    assert last["kind"] == "stop"
    assert swap["caller"] == KEY.digest(b"ann")
    assert (swap["request"], swap["entry"], swap["tier"]) == ("a", "http", "free")
    assert "ann" not in json.dumps(lines(folder))


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda at: [*at[:2], *at[3:]], "line 2 is missing before it"),
        (lambda at: [*at[:1], *at[3:]], "lines 1 to 2 are missing before it"),
        (lambda at: at[1:], "the lines before line 1 are missing"),
        (lambda at: [at[0].replace(b'"pid":', b'"pid":1'), *at[1:]], "was changed"),
        (lambda at: [*at[:2], at[2].replace(b"free", b"plus"), *at[3:]], "was changed"),
        (lambda at: [*at[:2], at[1], *at[2:]], "line 1 of"),
        (lambda at: [*at, at[4]], "is there 2 times"),
        (lambda at: [*at[:2], b"hello\n", *at[2:]], "is no line of an audit"),
        (lambda at: [*at[:2], at[2][:-9] + b"\n", *at[2:]], "is no line of an audit"),
        (lambda at: [*at[:2], at[2].replace(b",", b", ", 1), *at[3:]], "is no line of an audit"),
    ],
)  # fmt: skip
async def test_a_change_is_found_where_it_is(folder, change, complaint):
    first, _ = ordered(folder)
    edited(first, change)
    faults = [str(fault) for fault in report(folder).faults]
    assert any(complaint in fault and first.stem in fault for fault in faults)


async def test_lines_that_change_places_are_found(folder):
    first, _ = ordered(folder)
    edited(first, lambda at: [at[0], at[2], at[1], *at[3:]])
    fault = only(report(folder))
    assert fault.startswith(f"{first.name}:3: line 1 of")
    assert "comes after line 2" in fault


async def test_a_lost_chain_is_missed_by_who_has_seen_it(folder):
    first, second = ordered(folder)
    first.unlink()
    assert only(report(folder)) == (
        f"{first.stem}: the chain is missing; {second.name}:1 had seen it"
    )


async def test_a_lost_end_is_missed_by_who_has_seen_it(folder):
    first, second = ordered(folder)
    edited(first, lambda at: at[:-2])
    found = report(folder)
    assert only(found) == f"{first.stem}: ends with line 2; {second.name}:1 had seen line 4"
    assert "ended without stop after line 2" in str(found.notes[0])


async def test_an_end_that_was_written_anew_is_not_what_was_seen(tmp_path):
    """Even by somebody who has the key."""
    first = await written(tmp_path)
    await written(tmp_path, ["d"])
    old = lines(tmp_path)
    chain = ChainWriter(KEY, first.stem)
    facts = [dict(each) for each in old if each["chain"] == first.stem]
    made = []
    for each in facts:
        del each["mac"]
        made.append(chain.line({**each, "tier": "other"} if "tier" in each else each))
        chain.advance()
    first.write_bytes(b"".join(made))
    assert "line 4 is not the one that" in only(report(tmp_path))


async def test_a_process_that_was_killed_leaves_a_note_and_no_fault(folder):
    _, second = ordered(folder)
    edited(second, lambda at: [*at[:-1], at[-1][:20]])
    found = report(folder)
    assert found.faults == ()
    torn, ended = sorted(map(str, found.notes), key=len)
    assert torn == f"{second.name}:4: ends with a line that is not whole"
    assert "ended without stop after line 2" in ended


async def test_what_comes_after_the_end_is_found(tmp_path):
    path = await written(tmp_path, ["a"])
    stop = lines(tmp_path)[-1]
    chain = ChainWriter(KEY, path.stem)
    chain.seq, chain._prev = stop["seq"] + 1, stop["mac"]
    with path.open("ab") as file:
        file.write(chain.line({"kind": "swap"}))
    assert "comes after the end of its chain" in only(report(tmp_path))


async def test_a_fork_is_found(tmp_path):
    """Two processes that write one chain, or a copy that went another way."""
    path = await written(tmp_path)
    second = lines(tmp_path)[1]
    chain = ChainWriter(KEY, path.stem)
    chain.seq, chain._prev = 2, second["mac"]
    (tmp_path / "other.jsonl").write_bytes(chain.line({"kind": "swap"}))
    assert f"is another line 2 of {path.stem} than that in" in only(report(tmp_path))


async def test_the_same_lines_in_two_places_are_copies(tmp_path):
    path = await written(tmp_path)
    text = path.read_bytes().splitlines(keepends=True)
    found = report([AuditFile(place, "x", text, pure=True) for place in ("spool", "bucket")])
    assert found.faults == ()


async def test_without_the_key_nobody_can_write_a_line(folder):
    first, _ = ordered(folder)
    forged = ChainWriter(OTHER)
    (folder / "forged.jsonl").write_bytes(forged.line({"kind": "start"}))
    assert "was written with the key" in only(report(folder))
    assert "was changed" not in only(report(folder, (KEY,)))
    assert report(folder, (KEY, OTHER)).faults == ()
    bare = ChainWriter(KEYLESS)
    (folder / "forged.jsonl").write_bytes(bare.line({"kind": "start"}))
    assert "was written without a key" in only(report(folder, (KEY, KEYLESS)))
    assert first.exists()


async def test_without_keys_a_chain_still_shows_what_was_changed(tmp_path):
    path = await written(tmp_path, key=KEYLESS)
    assert report(tmp_path, (KEYLESS,)).faults == ()
    edited(path, lambda at: [at[0], at[1].replace(b"free", b"plus"), *at[2:]])
    assert "was changed" in only(report(tmp_path, (KEYLESS,)))


async def test_keyed_lines_are_not_believed_without_their_key(tmp_path):
    await written(tmp_path, ["a"])
    assert len(report(tmp_path, (KEYLESS,)).faults) == 3


async def test_what_is_kept_no_longer_is_not_missed(folder):
    first, _ = ordered(folder)
    first.unlink()
    later = datetime.now(UTC) + timedelta(hours=1)
    assert report(folder, since=later).faults == ()
    assert report(folder, since=later - timedelta(days=1)).faults != ()


async def test_the_beginning_of_an_old_chain_may_be_gone_but_not_its_middle(tmp_path):
    path = await written(tmp_path, [str(number) for number in range(6)])
    edited(path, lambda at: at[3:])
    later = datetime.now(UTC) + timedelta(hours=1)
    assert report(tmp_path, since=later).faults == ()
    edited(path, lambda at: [at[0], *at[2:]])
    assert "line 4 is missing" in only(report(tmp_path, since=later))


async def test_any_loss_but_that_of_the_last_lines_is_found(tmp_path):
    """All ways to leave out some of five lines: only a beginning looks whole."""
    path = await written(tmp_path)
    text = path.read_bytes().splitlines(keepends=True)
    for kept in itertools.chain.from_iterable(
        itertools.combinations(range(5), n) for n in range(6)
    ):
        rest = AuditFile("", "x", [text[number] for number in kept], pure=True)
        found = report([rest])
        whole = list(kept) == list(range(len(kept)))
        assert (found.faults == ()) == whole, kept
        assert bool(found.notes) == (len(kept) > 0 and kept[-1] != 4)


async def test_any_changed_byte_is_found(tmp_path):
    path = await written(tmp_path, ["a"])
    data, rng = path.read_bytes(), random.Random(7)
    for _ in range(300):
        at = rng.randrange(len(data) - 1)
        other = rng.choice([byte for byte in range(256) if byte != data[at]])
        changed = data[:at] + bytes([other]) + data[at + 1 :]
        found = report([AuditFile("", "x", changed.splitlines(keepends=True), pure=True)])
        assert found.faults, (at, other)


class TestLogs:
    """Lines among those of other things, as collectors keep them."""

    @pytest.fixture
    async def text(self, tmp_path):
        path = await written(tmp_path)
        return path.read_text().splitlines()

    def judged(self, made):
        return report([AuditFile("", "log", [each.encode() + b"\n" for each in made], pure=False)])

    @pytest.mark.parametrize(
        "around",
        [
            lambda line: line,
            lambda line: f"2026-12-01T09:00:00.1Z stdout F {line}",
            lambda line: f"[pod/ember-1/function] {line}",
            lambda line: json.dumps({"log": line + "\n", "stream": "stdout"}),
            lambda line: json.dumps({"jsonPayload": json.loads(line), "severity": "INFO"}),
            lambda line: json.dumps(json.loads(line), indent=None, sort_keys=False),
            lambda line: json.dumps({"jsonPayload": json.loads(line, parse_int=float)}),
        ],
    )
    async def test_they_are_found_whatever_is_around_them(self, text, around):
        noise = ["", "starting", '{"level":"info","audit":"x"}', "{", '{"audit":1}', '"audit"']
        made = [each for line in text for each in (around(line), *noise)]
        found = self.judged(made)
        assert (found.lines, found.faults, found.notes) == (5, (), ())
        assert self.judged(made[:7] + made[14:]).faults != ()

    async def test_a_name_that_is_there_twice_is_not_believed(self, text):
        """One who reads it would see the other value."""
        text[2] = '{"tier":"plus",' + text[2][1:]
        assert "line 2 is missing" in only(self.judged(text))

    async def test_the_parts_of_a_rotated_log_may_come_in_any_order(self, text):
        parts = [
            AuditFile("", name, [each.encode() for each in part], pure=False)
            for name, part in (("app.log", text[3:]), ("app.log.1", text[:3]))
        ]
        assert report(parts).faults == ()


def test_what_is_no_sight_does_not_stop_the_check():
    chain = ChainWriter(KEYLESS)
    for seen in (3, [3], [{"chain": 1}], [{"chain": "x", "seq": "y", "mac": "z"}]):
        facts = {"kind": "start", "seen": seen}
        file = AuditFile("", "x", [chain.line(facts)], pure=True)
        assert report([file], (KEYLESS,)).faults == ()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from(["audit", "chain", "key", "kind", "mac", "prev", "seq",
                                        "seen", "count", "log", "watermark", "sources",
                                        "references", "people"]), JSON),
       st.booleans())  # fmt: skip
def test_whatever_stands_in_a_file_it_is_checked_to_its_end(changes, pure):
    facts = json.loads(ChainWriter(KEYLESS).line({"kind": "start"})) | changes
    line = json.dumps(facts, sort_keys=True, separators=(",", ":")).encode() + b"\n"
    file = AuditFile("", "x", [line, line], pure)
    report([file], (KEYLESS,))
    list(find(file, WantedPicture.of(b"", (KEYLESS,), ["0" * 12]), (KEYLESS,)))


@pytest.mark.parametrize("depth", [10, 900, 990, 100_000])
@pytest.mark.parametrize("pure", [True, False])
def test_what_is_nested_deep_does_not_stop_the_check(depth, pure):
    line = ChainWriter(KEYLESS).line({"kind": "start"})
    deep = line.replace(b'{"at"', b'{"a":' + b"[" * depth + b"]" * depth + b',"at"')
    found = report([AuditFile("", "x", [deep, line], pure)], (KEYLESS,))
    assert found.lines >= 1


def test_the_code_of_a_line_is_of_all_that_stands_before_it():
    """Written down here for whoever checks it by other means."""
    body = canonical({"b": "ü", "a": 1})
    assert body == b'{"a":1,"b":"\\u00fc"}'
    code = hashlib.sha256(body).hexdigest()
    assert KEYLESS.code(body) == code
    assert sealed(body, code) == body[:-1] + f',"mac":"{code}"}}\n'.encode()
    secret = b"k" * 32
    key = hmac.digest(secret, b"ember audit chain", "sha256")
    assert AuditKey.of(secret).code(body) == hmac.digest(key, body, "sha256").hex()
