"""The console in a real browser, headless Chromium. `SPECDECK_REQUIRE_CHROMIUM=1`: there must be one."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.console.chromium import browser, new_page
from tests.console.station_harness import StationUnderTest
from tests.console.web_process import WebProcess, gone

SAID = "document.body.innerText"


@pytest.mark.chromium
async def test_in_chromium_the_table_is_there_a_key_changes_it_and_a_wrong_token_shows_nothing(place: Path) -> None:
    browser()
    station = StationUnderTest(place).start()
    web = None
    try:
        station.wait_serving()
        web = WebProcess("--port", "0")
        async with new_page() as page:
            await page.open(f"{web.origin}/?token=wrong")
            await page.shows("This is not the token", where=SAID)
            assert not web.consoles()
            await page.open(web.address)
            live = await page.shows("workload", "chat", "code", "tok/s", "read-only")
            assert "history · newest first" not in live
            assert await page.value("location.href") == f"{web.origin}/"  # the token stands there no longer
            consoles = web.consoles()
            assert len(consoles) == 1
            await page.press("3")
            policy = await page.shows("history · newest first")
            assert policy != live
            assert {urlsplit(one).netloc for one in page.requests if one.startswith("http")} == {
                urlsplit(web.origin).netloc
            }
            assert page.errors == ["Failed to load resource: the server responded with a status of 403 (Forbidden)"]
        await gone(consoles)
    finally:
        if web is not None:
            web.end()
        station.close()
