"""One emulated account per file: what a test leaves there, another sees."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from emulated_account.running import Account, account
from needs import need


@pytest.fixture(scope="module")
def aws() -> Iterator[Account]:
    need("unshare", "setpriv", root=True)
    with account() as running:
        yield running
