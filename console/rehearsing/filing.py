"""Certificates as files: dated, one for each drill, never written over."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import msgspec

from console.feed.certificate import Certificate


def file_certificate(certificate: Certificate, folder: Path) -> Path:
    """Write it into `folder`, which is made if it is missing; the path of the file.

    Raises:
        OSError: it can't be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    stamp = datetime.fromtimestamp(certificate.ts, UTC).strftime("%Y-%m-%dT%H-%M-%SZ")
    text = msgspec.json.format(msgspec.json.encode(certificate)) + b"\n"
    number = 1
    while True:
        path = folder / (f"drill-{stamp}.json" if number == 1 else f"drill-{stamp}-{number}.json")
        try:
            with path.open("xb") as file:
                file.write(text)
        except FileExistsError:
            number += 1
        else:
            return path
