"""`ultracluster rules`: the rules, in a table or in full."""

from __future__ import annotations

import difflib
from typing import Annotated

import typer

from ultracluster.cli.json_output import JsonOption, write_json
from ultracluster.cli.report import refuse, text_table
from ultracluster.cli.rule_words import as_row, as_text
from ultracluster.cli.rules_page import SHAPE, rules_page
from ultracluster.config.plain_text import one_line
from ultracluster.rules import RULE_SETS, Rule, all_rules


def rules(
    codes: Annotated[
        list[str] | None,
        typer.Argument(metavar="[CODE]...", help="Rules in full: FSX002, or FSX for all of a subject."),
    ] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="The page docs/rules.md.")] = False,
    next_of: Annotated[
        str, typer.Option("--next", metavar="SET", help="Only the id of the next rule of a set, as FSX.")
    ] = "",
    search: Annotated[
        str, typer.Option("--search", metavar="WORD", help="Only rules that say this, in any case.")
    ] = "",
    as_json: JsonOption = False,
) -> None:
    """List every rule; with codes, each in full: what is wrong and why, bad and good lines, the source."""
    if next_of:
        sets = {one.prefix: one for one in RULE_SETS}
        if next_of not in sets:
            refuse(f"there is no set {one_line(next_of)}: {', '.join(sets)}")
        typer.echo(f"{next_of}{sets[next_of].next_number:03d}")
        return
    if markdown:
        if codes:
            refuse("--markdown prints every rule: omit the codes")
        typer.echo(rules_page(), nl=False)
        return
    chosen = _rules_called(codes) if codes else list(all_rules())
    if search:
        word = search.casefold()
        chosen = [rule for rule in chosen if word in f"{rule.id} {rule.title}".casefold()]
        if not chosen:
            refuse(f"no rule says `{one_line(search)}`: `ultracluster rules` lists all {len(all_rules())}")
    if as_json:
        write_json("rules", {"rules": [as_row(rule) for rule in chosen]})
    elif codes:
        typer.echo("\n\n".join(as_text(rule) for rule in chosen))
    else:
        rows = [(rule.id, rule.severity, rule.title) for rule in chosen]
        typer.echo(text_table(("rule", "severity", "what it keeps"), rows))


def _rules_called(codes: list[str]) -> list[Rule]:
    """The rules of these codes and subjects, in the order asked for."""
    chosen: dict[str, Rule] = {}
    for code in codes:
        wanted = code.upper()
        found = [rule for rule in all_rules() if wanted in (rule.id, rule.id.rstrip("0123456789"))]
        if not found and wanted in SHAPE:
            refuse(f"{wanted} is not a rule but the shape of the file: {SHAPE[wanted]}")
        if not found:
            known = [rule.id for rule in all_rules()]
            near = [one for one in known if one.startswith(wanted)] or difflib.get_close_matches(
                wanted, known
            )
            instead = (
                " or ".join(near[:3])
                or f"`ultracluster rules --search {one_line(code)}` looks in their titles"
            )
            refuse(f"there is no rule {one_line(code)}: {instead}")
        chosen |= {rule.id: rule for rule in found}
    return list(chosen.values())
