"""Keys in an ASGI scope under which the front door leaves facts about a request."""

from __future__ import annotations

from typing import Final

HEADERS: Final = "icetower.headers"
"""The request headers as a dictionary of lower-case names."""
PREFIX: Final = "icetower.prefix"
"""The warehouse that the path's prefix names, or None."""
PRINCIPAL: Final = "icetower.principal"
"""The name of the caller."""
COMMIT_ID: Final = "icetower.commit_id"
"""The commit id that the answer carries; of a repeated request, that of the first."""
RECEIPT_HEAD: Final = "icetower.receipt_head"
"""What the receipt of a request that changes something begins with."""
REQUEST_ID: Final = "icetower.request_id"
"""The id of the request."""
