"""`evertally serve`: what it says when the stream answers, and when it has stopped."""

from __future__ import annotations

import logging
from pathlib import Path

from evertally.runtime import load_spec
from evertally.service import TokenFile, serve
from evertally.service.logs import write_public_lines


def command(spec_file: Path, host: str | None, port: int | None, replay: bool, nothing_was_released: bool) -> None:
    spec = load_spec(spec_file)
    write_public_lines()

    def ready(address: str) -> None:
        print(f"{spec.name}: {address} (Ctrl-C stops it, the same command continues)")
        if not TokenFile(spec.serve.tokens).tokens():
            print(f"There is no token yet. Make one: evertally token add {spec_file} --role read --name NAME")
        print("Reading needs no token." if spec.serve.public else f"Tokens: {spec.serve.tokens}", flush=True)

    try:
        serve(spec, host=host, port=port, replay=replay, nothing_was_released=nothing_was_released, ready=ready)
    finally:
        logging.shutdown()  # lines that were summed up
    print(f"{spec.name}: stopped; everything that was acknowledged is on disk", flush=True)
