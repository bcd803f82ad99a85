"""FastAPI: a singleton that the first call makes."""

from functools import cache

from fastapi import FastAPI
from pydantic import BaseModel

from tests.bench.cold.swapping import Swap

app = FastAPI()
swapping = cache(Swap)


class Photos(BaseModel):
    source: str
    target: str


@app.get("/healthz")
def healthz():
    return "alive"


@app.post("/swap")
def swap(photos: Photos):
    return swapping().json(photos.model_dump())
