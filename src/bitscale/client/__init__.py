"""The service from Python, over HTTP: `Client` waits, `AsyncClient` is awaited; both have the same methods.

    with bitscale.Client("http://127.0.0.1:8080", key="bitscale_...") as service:
        photos = service.collection("photos")
        answer = photos.search("cat.jpg", k=5, bits=32)      # a picture's path or bytes
        answer = photos.search(id=17, where=["label=cat"])   # an item
        print([match["id"] for match in answer["matches"]])

Answers are the plain data that docs/service.md describes. What the service refuses is a `ServiceError` with its status.
"""

from bitscale.client.calls import Call, Calls, Picture
from bitscale.client.clients import SECONDS, AsyncClient, Client, Remote

__all__ = ["SECONDS", "AsyncClient", "Call", "Calls", "Client", "Picture", "Remote"]
