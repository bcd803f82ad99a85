"""What a request costs follows from what its decoders will do, however its files hide that."""

from __future__ import annotations

import asyncio
import io

import pytest
from PIL import Image

from function.admission import keys
from function.admission.policy import read
from function.faces.select import Selection
from function.http.pricing import batch_price, look_price, price
from function.problems import Problem
from function.requests import SwapRequest, Upload
from function.trust.trust import TierDuties
from tests.function.background.jobs.conftest import finished, new_id, put
from tests.function.images import make
from tests.function.images.make import gif_of, noise, quarters, save
from tests.function.images.odd_file import HEIC, heif
from tests.function.live import COLLINS, HOPPER, SOURCE, Live
from tests.function.video.films import PHOTOS

PRICES = read().prices


def cost(target: bytes, *sources: bytes, likes: tuple[bytes, ...] = (), faces: str = "all") -> int:
    wanted = SwapRequest(
        tuple(Upload(each, "source") for each in sources or (HOPPER,)),
        Upload(target, "target"),
        Selection.parse(faces),
        tuple(Upload(each, "like") for each in likes),
    )
    return asyncio.run(price(PRICES, wanted))


def photo(width: int, height: int, kind: str = "JPEG", **more: object) -> bytes:
    return save(Image.new("RGB", (width, height), "red"), kind, **more)


def padded_heic(size: int) -> bytes:
    """A HEIC whose facts come after so many bytes; its pixels are of no matter here."""
    data = heif(Image.new("RGB", (4000, 3000), "red"))
    first = int.from_bytes(data[:4], "big")
    return data[:first] + (size + 8).to_bytes(4, "big") + b"free" + bytes(size) + data[first:]


def test_an_ordinary_swap_costs_what_its_target_does():
    for source in (HOPPER, photo(4000, 3000), photo(300, 300, "PNG")):
        assert [cost(photo(*size), source) for size in ((854, 480), (1280, 720), (1921, 1080))] == [
            1,
            3,
            6,
        ]


@pytest.mark.parametrize("junk", [b"\0", b"\7" * 90, b"!\1\0\0"], ids=["zero", "junk", "empty"])
def test_bytes_between_the_frames_of_a_gif_hide_none(junk):
    views = [noise(640, 480, seed) for seed in range(2)] * 10
    assert cost(gif_of(views, between={2: junk})) == cost(gif_of(views)) == 5


def test_a_frame_outside_of_the_screen_costs_the_canvas_that_it_needs():
    views = [noise(320, 240)] * 4
    assert cost(gif_of(views, places={2: (2000, 1500)})) == PRICES.of(_job(2320 * 1740 * 4 // 4))


def _job(pixels):
    from function.admission.policy import PricedJob

    return PricedJob(pixels)


@pytest.mark.skipif(not HEIC, reason="pillow-heif is not installed")
def test_padding_before_the_facts_of_a_heic_hides_nothing():
    assert cost(padded_heic(0)) == cost(padded_heic(3_000_000)) == PRICES.of(_job(12_000_000))


def test_a_tile_that_is_larger_than_its_tiff_and_many_passes_of_a_jpeg_are_in_the_price():
    tile = make.tiff(
        (9, 9),
        [bytes(10)],
        {258: (3, [8]), 262: (3, [1]), 322: (4, [4000]), 323: (4, [3000])},
    )
    assert cost(tile) == PRICES.of(_job(12_000_000))
    data = save(quarters(1000, 800), "JPEG", progressive=True)
    scan = data[data.rindex(b"\xff\xda") : -2]
    assert cost(data) == 3
    assert cost(data[:-2] + scan * 38 + b"\xff\xd9") == PRICES.of(_job(4 * 800_000))


@pytest.mark.parametrize(
    ("target", "code"),
    [
        (b"\xff\xd8\xff", "bad_image"),
        (b"II*\0\xff\xff\xff\x7f" + bytes(99), "bad_image"),
        (b"\0\0\0\x18ftypisom" + bytes(300), "bad_clip"),
        (b"no photo", "unsupported_media_type"),
    ],
)
def test_what_cannot_be_read_is_refused_and_has_no_price(target, code):
    for call in (
        lambda: cost(target),
        lambda: asyncio.run(look_price(PRICES, Upload(target, "image"))),
    ):
        with pytest.raises(Problem) as raised:
            call()
        assert raised.value.code in {code, "unsupported_media_type"}


def test_sources_and_a_reference_of_49_megapixels_are_in_the_price():
    large = photo(7000, 7000, quality=30)
    assert cost(COLLINS, *[large] * 8, likes=(large,), faces="like") == 1 + 7 + 1 + 9 * 5
    assert asyncio.run(look_price(PRICES, Upload(large, "image"))) == 6


def test_each_photo_of_the_people_of_a_map_is_in_the_price():
    large = photo(7000, 7000, quality=30)
    assert cost(COLLINS, HOPPER, HOPPER, faces="0=a,1=b") == 1 + 1
    assert cost(COLLINS, HOPPER, large, likes=(HOPPER, large), faces="x=a,y=b") == 1 + 1 + 2 + 2 * 5


def test_bytes_of_all_photos_are_in_the_price_of_a_batch():
    padded = HOPPER + bytes(12_000_000)
    wanted = SwapRequest((Upload(padded, "source"),), Upload(HOPPER, "target"))
    targets = [Upload(padded, "target")] * 3
    assert asyncio.run(batch_price(PRICES, wanted, targets)) == (2, 2, 2)


def crowd(across: int, down: int) -> bytes:
    """So many faces of 85 × 80 pixels."""
    face = Image.open(PHOTOS / "astronaut.png").convert("RGB").crop((100, 0, 356, 256))
    face = face.resize((85, 80))
    image = Image.new("RGB", (85 * across, 80 * down))
    for place in range(across * down):
        image.paste(face, (85 * (place % across), 80 * (place // across)))
    out = io.BytesIO()
    image.save(out, "JPEG")
    return out.getvalue()


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """A server that counts tokens, and the credentials of somebody who has some."""
    path = tmp_path_factory.mktemp("keys") / "keys"
    (paid, line), (vip, other) = keys.new("ann", "paid"), keys.new("eve", "vip")
    path.write_text(f"{line}\n{other}\n")
    with Live(auth="keys", keys=path) as server:
        yield server, f"Bearer {paid}", f"Bearer {vip}"


@pytest.mark.parametrize("faces", ["all", "largest", "index:0"])
def test_a_crowd_on_a_small_photo_is_more_than_its_price_covers(guarded, faces):
    server, paid, _ = guarded
    target = "target", crowd(8, 4)
    answer = server.form("/v1/swap", SOURCE, target, ("faces", faces), Authorization=paid)
    assert answer.problem("too_many_faces", 422)["limit"] == 12
    looked = server.form("/v1/faces", ("image", target[1]), Authorization=paid)
    looked.problem("too_many_faces", 422)


def test_who_may_have_any_number_of_tokens_may_swap_a_crowd(guarded):
    server, _, vip = guarded
    answer = server.form("/v1/swap", SOURCE, ("target", crowd(5, 3)), Authorization=vip)
    assert answer.status == 200


def test_a_crowd_in_a_job_is_more_than_its_price_covers(guarded):
    server, paid, _ = guarded
    name = new_id()
    assert put(server, name, SOURCE, ("target", crowd(8, 4)), Authorization=paid).status == 201
    told = finished(server, name, Authorization=paid)
    assert told["items"][0]["problem"]["code"] == "too_many_faces"


def test_a_crowd_in_an_animation_is_more_than_its_price_covers(guarded):
    server, paid, _ = guarded
    view = Image.open(io.BytesIO(crowd(6, 4)))
    target = "target", gif_of([view] * 2)
    answer = server.form("/v1/swap", SOURCE, target, Authorization=paid)
    answer.problem("too_many_faces", 422)


@pytest.fixture
def labelled(guarded):
    """The same server, where the outputs of a tier have a label."""
    server, paid, _ = guarded
    trust = server.service.trust
    before, trust.duties = trust.duties, {"paid": TierDuties(label=True)}
    yield server, paid
    trust.duties = before


@pytest.mark.parametrize(
    ("label", "code", "status"), [("off", "forbidden", 403), ("xx", "bad_value", 422)]
)
def test_a_label_that_cannot_be_costs_nothing(labelled, label, code, status):
    server, paid = labelled
    left = server.get("/v1/quota", Authorization=paid).json["tokens"]
    parts = SOURCE, ("target", crowd(1, 1)), ("label", label, None, None)
    answer = server.form("/v1/swap", *parts, Authorization=paid)
    assert answer.problem(code, status)["field"] == "label"
    name = new_id()
    put(server, name, *parts, Authorization=paid).problem(code, status)
    assert server.get(f"/v1/jobs/{name}", Authorization=paid).status == 404
    assert server.get("/v1/quota", Authorization=paid).json["tokens"] == left
