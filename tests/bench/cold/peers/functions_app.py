"""functions-framework: made by the first call and kept, as its tips for functions have it."""

from functools import cache

import functions_framework

from tests.bench.cold.swapping import TUNED, Swap

swapping = cache(Swap)
if TUNED:
    swapping()


@functions_framework.http
def swap(request):
    if request.method == "GET":
        return "alive"
    return swapping().json(request.get_json())
