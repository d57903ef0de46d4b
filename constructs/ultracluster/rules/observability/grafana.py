"""Rules on: Amazon Managed Grafana and who gets in."""

from __future__ import annotations

import re

from ultracluster.catalog import Region
from ultracluster.config.observability import IDENTITY_ID, Grafana
from ultracluster.config.remedy import ask, drop, write
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.observability.workspace import DATE
from ultracluster.rules.sets import OBS

_GUIDE = "Amazon Managed Grafana User Guide"
OLDEST = (10, 0)
"""First Grafana that takes our dashboards."""
_OF_A_MADE_ONE = ("authentication", "saml_metadata_url", "saml_role_attribute", "version")


@OBS.error(10, "CloudFormation registry schemas (AWS::Grafana::Workspace), botocore's endpoints", DATE)
def grafana_region(grafana: Grafana, home: Region) -> Breaches:
    """Grafana is in the Region."""
    if grafana.workspace_id is None and home.grafana is False:
        yield at().breach(
            f"Amazon Managed Grafana is not in {home.name}.",
            drop().noting(
                "`ultracluster export prometheus` writes the dashboards as files, for your own Grafana; "
                "or workspace_id of one that `apply observability` reaches"
            ),
        )


@OBS.error(11, f"{_GUIDE}, Use SAML with your Amazon Managed Grafana workspace", DATE)
def saml_metadata(grafana: Grafana) -> Breaches:
    """SAML needs the metadata of who identifies people."""
    if grafana.workspace_id is None and grafana.authentication == "SAML" and not grafana.saml_metadata_url:
        yield at().breach(
            "nothing says who identifies people: nobody could log in.",
            ask("fact", "saml_metadata_url: https://id.example.com/metadata"),
        )


@OBS.warning(12, f"{_GUIDE}, Manage user and group access: a workspace has no user at first", DATE)
def grafana_has_admin(grafana: Grafana) -> Breaches:
    """Somebody may enter a new Grafana."""
    if grafana.workspace_id is None and not grafana.admins and not grafana.admin_groups:
        yield at().breach(
            "no admin is named, and a new workspace has no user: nobody can enter it."
            if grafana.authentication == "AWS_SSO"
            else "no admin is named: everybody whom the provider lets in can look, and nobody administer.",
            ask(
                "fact",
                "admins: ids of IAM Identity Center, or with SAML values of the role attribute",
            ),
        )


@OBS.error(
    13, f"{_GUIDE}, API UpdatePermissions: ids of IAM Identity Center; SamlConfiguration: roleValues", DATE
)
def grafana_admin_kind(grafana: Grafana) -> Breaches:
    """Admins are named in the way people log in."""
    if grafana.authentication == "SAML":
        if grafana.admin_groups:
            yield at("admin_groups").breach(
                "groups of IAM Identity Center are unknown to SAML.",
                drop().noting("name the role's value that such people have in admins"),
            )
        return
    for number, admin in enumerate(grafana.admins):
        if not re.fullmatch(IDENTITY_ID, admin):
            yield at("admins", number).breach(
                f"`{admin}` is no id of a user in IAM Identity Center.",
                ask(
                    "fact",
                    "aws identitystore get-user-id prints it, e.g. 12345678-90ab-cdef-1234-567890abcdef",
                ),
            )


@OBS.error(14, f"{_GUIDE}, API CreateWorkspace", DATE)
def grafana_login_settings(grafana: Grafana) -> Breaches:
    """Settings are of the log-in that is asked for."""
    given = grafana.model_fields_set
    if grafana.workspace_id:
        for key in _OF_A_MADE_ONE:
            if key in given:
                yield at(key).breach("the Grafana exists, so this is its owner's: it does nothing.", drop())
    elif grafana.authentication == "AWS_SSO":
        for key in ("saml_metadata_url", "saml_role_attribute"):
            if key in given:
                yield at(key).breach("with IAM Identity Center there is no SAML: it does nothing.", drop())


@OBS.error(15, f"{_GUIDE}, Differences between versions: 8.4, 9.4, 10.4, 12.4, 13", DATE)
def grafana_version(grafana: Grafana) -> Breaches:
    """Grafana is new enough for the dashboards."""
    major, minor = (int(part) for part in grafana.version.split("."))
    if grafana.workspace_id is None and (major, minor) < OLDEST:
        yield at("version").breach(
            f"Grafana {grafana.version} does not take our dashboards, which are in the form of Grafana 10.",
            write("10.4", "12.4"),
        )
