"""What may be asked for of spaces, by its shape."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from ultracluster.config.hyperpod_spaces import HyperPodSpaces, SpacesWebUi

WEB = {
    "domain": "spaces.example.com",
    "certificate_arn": "arn:aws:acm:us-east-2:111122223333:certificate/12345678-1234-1234-1234-123456789012",
    "key_arn": "arn:aws:kms:us-east-2:111122223333:key/mrk-1234567890abcdef1234567890abcdef",
}


def test_by_default_a_space_is_small_and_reached_from_inside() -> None:
    spaces = HyperPodSpaces(group="notebooks", web_ui=SpacesWebUi.model_validate(WEB))
    assert (spaces.gpus, spaces.remote_ide) == (0, False)
    assert spaces.web_ui and spaces.web_ui.scheme == "internal"
    assert "latest" not in spaces.images[0]


@pytest.mark.parametrize(
    ("model", "changes"),
    [
        (SpacesWebUi, {"domain": "spaces"}),
        (SpacesWebUi, {"domain": "https://spaces.example.com"}),
        (SpacesWebUi, {"domain": "-a.example.com"}),
        (SpacesWebUi, {"certificate_arn": WEB["key_arn"]}),
        (SpacesWebUi, {"key_arn": "alias/spaces"}),
        (SpacesWebUi, {"scheme": "public"}),
        (HyperPodSpaces, {"images": ()}),
        (HyperPodSpaces, {"images": ("$(reboot)",)}),
        (HyperPodSpaces, {"idle_minutes": 0}),
        (HyperPodSpaces, {"per_team": 0}),
        (HyperPodSpaces, {"group": "a b"}),
    ],
)
def test_another_shape_is_refused(model: type[HyperPodSpaces | SpacesWebUi], changes: dict[str, Any]) -> None:
    whole: dict[str, Any] = dict(WEB) if model is SpacesWebUi else {"group": "notebooks"}
    with pytest.raises(ValidationError):
        model.model_validate({**whole, **changes})
