"""bitscale serve: collections over HTTP, for programs and for a browser."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from bitscale.cli.options import home_of, model_of
from bitscale.cli.output import say
from bitscale.errors import InputError
from bitscale.server.settings import Settings

DEFAULTS = Settings()
NEEDED = ("fastapi", "uvicorn", "httptools", "python_multipart", "prometheus_client")


def serve(
    collections: Annotated[
        list[str], typer.Argument(help="Collections, folders they were made of, or addresses; NAME=PLACE names one.")
    ],
    host: Annotated[
        str, typer.Option(help="The address to listen on. Others than this machine's need keys.")
    ] = DEFAULTS.host,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes one that is free.")] = DEFAULTS.port,
    keys: Annotated[Path | None, typer.Option(help="The file of keys.", show_default="the user's own")] = None,
    require_keys: Annotated[
        bool, typer.Option("--require-keys", help="Ask for a key on this machine as well.")
    ] = False,
    read_only: Annotated[bool, typer.Option("--read-only", help="Change nothing.")] = False,
    allow_host: Annotated[
        list[str] | None, typer.Option(help="A name that requests may come in under; may repeat.")
    ] = None,
    allow_origin: Annotated[
        list[str] | None, typer.Option(help="A web site whose scripts may call: https://example.org; may repeat.")
    ] = None,
    certificate: Annotated[Path | None, typer.Option(help="For TLS: the certificate (PEM).")] = None,
    certificate_key: Annotated[Path | None, typer.Option(help="For TLS: the certificate's key (PEM).")] = None,
    most_bytes: Annotated[int, typer.Option(min=1, help="The largest request, in bytes.")] = DEFAULTS.most_bytes,
    rate: Annotated[str, typer.Option(help="How often one key, or address, may ask.")] = DEFAULTS.rate,
    model: Annotated[
        list[str] | None,
        typer.Option(help="For addresses: the model of their codes, as a file, a name or a collection; may repeat."),
    ] = None,
    audit: Annotated[Path | None, typer.Option(help="A file for a line about each request.")] = None,
) -> None:
    """Serve collections over HTTP: a page to search in a browser, and an API for programs.

    Without more it listens on this machine alone, and whoever uses this machine may search and add. Elsewhere every
    request needs a key (bitscale keys make NAME). Ctrl-C or SIGTERM ends it after finishing what has begun.

    Try: bitscale serve photos.bsc
         bitscale serve photos.bsc holiday=other.bsc --port 9000 --read-only
         bitscale serve milvus://localhost/holiday --model holiday.bsc
    """
    if any(find_spec(name) is None for name in NEEDED):
        raise InputError(
            "a service needs FastAPI and uvicorn, which are not installed. Install them: pip install 'bitscale[serve]'"
        )
    from bitscale.server.run import serve as run

    settings = Settings(
        host=host,
        port=port,
        keys=keys,
        require_keys=require_keys,
        read_only=read_only,
        allow_hosts=tuple(allow_host or ()),
        allow_origins=tuple(allow_origin or ()),
        certificate=certificate,
        certificate_key=certificate_key,
        most_bytes=most_bytes,
        rate=rate,
        models=tuple(model_of(one) for one in model or ()),
        audit=audit,
    )
    run(
        [located(given) for given in collections], settings, lambda address: say(f"serving at {address}  (Ctrl-C ends)")
    )


def located(word: str) -> str:
    """A collection as it was typed; for a folder, the collection that lies beside it."""
    from bitscale.index.engines.address import is_address

    name, equals, path = word.partition("=")
    if is_address(word) or is_address(path):
        return word
    if equals and not Path(word).exists():
        return f"{name}={home_of(Path(path))}"
    if not word:
        raise InputError("a collection's path must not be empty.")
    return str(home_of(Path(word)))
