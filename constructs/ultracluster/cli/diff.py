"""`ultracluster diff`: what a change does to what is there, before it is deployed."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, cast

import typer

if TYPE_CHECKING:
    from subprocess import CompletedProcess

    from ultracluster.config import Environment
    from ultracluster.operations.blast_radius import Change, Template, Verdict

Templates = dict[str, "Template"]

STACKS = ("network", "storage", "cluster", "observability")
"""Stacks that an environment may have; one that it has no longer may still be deployed."""


@dataclass(slots=True)
class Comparison:
    """What is compared, and what could not be."""

    before_name: str
    after_name: str
    before: Templates
    after: Templates
    notes: list[str] = field(default_factory=list[str])
    unread: list[str] = field(default_factory=list[str])
    """Stacks of the account that could not be read, each with the reason."""


@dataclass(slots=True)
class Report:
    """The changes of a comparison, and what the command says of them."""

    comparison: Comparison
    changes: list[Change]
    accepted: set[str]
    """Resources (`stack/logical id`) whose data may be lost."""

    @property
    def lost(self) -> list[str]:
        """Resources that lose data which nobody accepted."""
        from ultracluster.operations.blast_radius import Verdict

        resources = [change.resource for change in self.changes if change.verdict is Verdict.DATA_LOSS]
        return [one for one in dict.fromkeys(resources) if one not in self.accepted]

    @property
    def exit_code(self) -> int:
        """0, 1 (jobs are disturbed), 2 (not everything could be read) or 3 (data loss not accepted)."""
        from ultracluster.operations.blast_radius import Verdict, worst

        if self.lost:
            return 3
        if self.comparison.unread:
            return 2
        return int(worst(self.changes).rank >= Verdict.ROLLING.rank)


def diff(
    environments: Annotated[
        list[str] | None,
        typer.Argument(
            help="One environment with --against or --deployed, or two: what is there and what is to be.",
            show_default=False,
        ),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(help="Compare with the environment file of this git revision.", show_default=False),
    ] = None,
    deployed: Annotated[
        bool, typer.Option("--deployed", help="Compare with what is deployed in the account.")
    ] = False,
    templates: Annotated[
        tuple[Path, Path] | None,
        typer.Option(help="Compare two templates, or two folders of them.", show_default=False),
    ] = None,
    accept_data_loss: Annotated[
        list[str] | None,
        typer.Option(
            metavar="STACK/LOGICAL_ID",
            help="This resource may lose its data. Repeatable.",
            show_default=False,
        ),
    ] = None,
    profile: Annotated[
        str | None, typer.Option(help="AWS profile for --deployed.", show_default=False)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print every change as JSON.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown for a pull request.")] = False,
) -> None:
    """Show the blast radius of a change: what stays, restarts, is replaced, or loses its data.

    Exit code 0: running jobs are not disturbed. 1: something restarts, has to be scaled to zero or is
    replaced. 3: data would be lost and --accept-data-loss does not name it. 2: bad input, or something
    could not be read.
    """
    from ultracluster.operations.blast_radius import blast_radius

    names = environments or []
    accepted = set(accept_data_loss or [])
    if wrong := [one for one in sorted(accepted) if one.count("/") != 1]:
        _refuse(f"--accept-data-loss {wrong[0]}: write STACK/LOGICAL_ID, as the report shows it")
    if as_json and markdown:
        _refuse("--json and --markdown exclude each other")
    if templates is not None and not (names or against or deployed):
        found = _of_templates(*templates)
    elif templates is None and len(names) == 2 and not (against or deployed):
        found = _of_two(names[0], names[1])
    elif templates is None and len(names) == 1 and against and not deployed:
        found = _of_revision(names[0], against)
    elif templates is None and len(names) == 1 and deployed and not against:
        found = _of_account(names[0], profile)
    else:
        _refuse(
            "say what to compare, in one of these ways:\n"
            "  ultracluster diff dev prod                   two environments\n"
            "  ultracluster diff prod --against HEAD~1      with another revision of the file\n"
            "  ultracluster diff prod --deployed            with what is deployed\n"
            "  ultracluster diff --templates OLD NEW        two templates, or folders of them"
        )
    report = Report(found, blast_radius(found.before, found.after), accepted)
    losing = {change.resource for change in report.changes if change.verdict == "DATA LOSS"}
    for one in sorted(accepted - losing):
        typer.echo(f"--accept-data-loss {one}: nothing is lost there", err=True)
    if as_json:
        sys.stdout.write(json.dumps(as_document(report), indent=2) + "\n")
    else:
        sys.stdout.write(as_markdown(report) if markdown else as_text(report))
    raise typer.Exit(report.exit_code)


# ------------------------------------------------------------------------------------ what is compared


def _of_templates(old: Path, new: Path) -> Comparison:
    from ultracluster.operations.blast_radius import paired

    before, after = _read(old), _read(new)
    return Comparison(str(old), str(new), paired(before, after), after)


def _of_two(old: str, new: str) -> Comparison:
    from tempfile import TemporaryDirectory

    from ultracluster.operations.blast_radius import paired

    root = _checkout()
    with TemporaryDirectory() as scratch:
        files = [_environment_file(root, name) for name in (old, new)]
        configs = [_load(file) for file in files]
        before, after = _synthesise(root, [(old, files[0]), (new, files[1])], Path(scratch))
    notes = [f"as if {old} were deployed and became {new}; stacks and exports are matched by their last word"]
    notes += [
        f"{what} differs ({a} and {b}): in truth everything would be made anew there"
        for what, a, b in (
            ("the Region", configs[0].region, configs[1].region),
            ("the account", configs[0].account, configs[1].account),
        )
        if a and b and a != b
    ]
    return Comparison(old, new, paired(before, after), after, notes)


def _of_revision(name: str, revision: str) -> Comparison:
    import tarfile
    from io import BytesIO
    from tempfile import TemporaryDirectory

    root = _checkout()
    file = _environment_file(root, name)
    _load(file)
    with TemporaryDirectory() as scratch:
        commit = _git(root, "rev-parse", "--verify", "--quiet", "--short", f"{revision}^{{commit}}")
        if commit is None:
            _refuse(f"--against {revision}: git knows no such revision in {root}")
        tree = Path(scratch) / "revision"
        commit = commit.decode().strip()
        # with what it may extend; git refuses a pattern that nothing fits, hence one for .yaml and .yml
        packed = _git(root, "archive", "--format=tar", commit, "--", "*.y*ml")
        if packed is not None:
            with tarfile.open(fileobj=BytesIO(packed)) as archive:
                archive.extractall(tree, filter="data")
        try:
            old = tree / file.relative_to(root)
        except ValueError:
            _refuse(f"{file} is not in {root}: git has no other revision of it")
        if not old.is_file():
            _refuse(f"--against {revision}: {file.relative_to(root)} is not in that revision")
        label = f"{name} at {revision} ({commit})"
        _load(old)
        before, after = _synthesise(root, [(label, old), (name, file)], Path(scratch))
    note = "both files are synthesised with the code of this checkout: a change of the code does not show"
    return Comparison(label, name, before, after, [note])


def _of_account(name: str, profile: str | None) -> Comparison:
    from tempfile import TemporaryDirectory

    from ultracluster.operations.aws import Account, AccountError, check_account

    root = _checkout()
    file = _environment_file(root, name)
    config = _load(file)
    try:
        account = Account(region=config.region, profile=profile)
        identity = check_account(account, config)
    except AccountError as error:
        _refuse(str(error))
    with TemporaryDirectory() as scratch:
        (after,) = _synthesise(root, [(name, file)], Path(scratch))
    label = f"{name} as deployed in {identity.account} {config.region}"
    found = Comparison(label, name, {}, after)
    names = [*after, *(f"{config.name}-{one}" for one in STACKS if f"{config.name}-{one}" not in after)]
    _deployed(account.client("cloudformation"), names, found)
    return found


def _deployed(client: Any, names: list[str], found: Comparison) -> None:
    """Read the templates of stacks; one that cannot be read leaves the others readable."""
    from ultracluster.operations.aws import AWS_ERRORS, code, explain, message

    for name in names:
        try:
            body = client.get_template(StackName=name, TemplateStage="Original")["TemplateBody"]
            # CloudFormation gives every character beyond ASCII back as a question mark
            found.before[name] = cast("Template", body) if isinstance(body, dict) else _parse(str(body))
            if name in found.after:
                found.after[name] = _ascii(found.after[name])
        except AWS_ERRORS as error:
            if code(error) == "ValidationError" and "does not exist" in message(error):
                if name in found.after:
                    found.notes.append(f"{name} is not deployed yet: everything in it is new")
            elif name in found.after:
                found.unread.append(f"{name}: {explain(error)}")
                found.before[name] = found.after[name]  # so that what others import from it still resolves
        except ValueError as error:
            found.unread.append(f"{name}: its template cannot be read: {error}")
            found.before[name] = found.after.get(name, {})


def _ascii(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("ascii", "replace").decode()
    if isinstance(value, list):
        return [_ascii(one) for one in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {_ascii(key): _ascii(one) for key, one in cast("dict[str, Any]", value).items()}
    return value


# -------------------------------------------------------------------------------- environment files, git


def _checkout() -> Path:
    """The folder of app.py, here or above."""
    here = Path.cwd()
    folders = (here, *here.parents)
    root = next((one for one in folders if (one / "app.py").is_file() and (one / "cdk.json").is_file()), None)
    if root is None:
        _refuse(
            f"there is no app.py with its cdk.json in {here} or above: run this in a checkout of the "
            "project, or compare templates: ultracluster diff --templates OLD NEW"
        )
    return root


def _environment_file(root: Path, name: str) -> Path:
    file = Path(name)
    if file.suffix in {".yaml", ".yml"} or file.exists():
        return file.resolve()
    return root / "environments" / f"{name}.yaml"


def _load(file: Path) -> Environment:
    """Refuse at once what would fail after a long synth."""
    from ultracluster.config import InvalidEnvironmentError, load

    try:
        return load(file).environment
    except InvalidEnvironmentError as error:
        _refuse(str(error))


def _git(root: Path, *arguments: str) -> bytes | None:
    """What git prints; None if it refuses."""
    import subprocess

    try:
        result = subprocess.run(["git", *arguments], cwd=root, capture_output=True, check=False)  # noqa: S603, S607
    except FileNotFoundError:
        _refuse("--against needs git, which is not installed")
    return result.stdout if result.returncode == 0 else None


# --------------------------------------------------------------------------------------------- synthesis


def _synthesise(root: Path, files: list[tuple[str, Path]], scratch: Path) -> list[Templates]:
    """The templates of environment files (each with what to call it), made side by side by the app itself."""
    from concurrent.futures import ThreadPoolExecutor

    names = [name for name, _ in files]
    with _spinner(f"synthesising {' and '.join(names)} ..."), ThreadPoolExecutor(max_workers=2) as pool:
        folders = [scratch / f"out{number}" for number in range(len(files))]
        runs = list(pool.map(_app, [root] * len(files), (file for _, file in files), folders))
    for name, run in zip(names, runs, strict=True):
        if run.returncode:
            lines = [line for line in run.stderr.splitlines() if not line.startswith("b'!!")]
            text = "\n".join(lines[-40:] if run.returncode == 2 else lines[-15:])
            _refuse(f"{name} cannot be synthesised:\n{text}")
    return [_read(folder) for folder in folders]


def _app(root: Path, file: Path, out: Path) -> CompletedProcess[str]:
    """Run app.py as the CDK's command does, which is what reads the context of cdk.json."""
    import subprocess

    context = json.loads((root / "cdk.json").read_text(encoding="utf-8")).get("context", {})
    environment = {
        **os.environ,
        "CDK_OUTDIR": str(out),
        "CDK_CONTEXT_JSON": json.dumps({**context, "env": str(file)}),
        "JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION": "1",
    }
    command = [sys.executable, str(root / "app.py")]
    return subprocess.run(  # noqa: S603
        command, cwd=root, env=environment, capture_output=True, text=True, check=False
    )


@contextmanager
def _spinner(text: str) -> Generator[None]:
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    with console.status(text):
        yield


# --------------------------------------------------------------------------------------------- templates


def _read(place: Path) -> Templates:
    """Templates by stack name, of a folder as the CDK writes it or of one file."""
    if place.is_dir():
        files = sorted(place.glob("*.template.json"))
        if not files:
            _refuse(f"{place} holds no *.template.json; name a cdk.out folder or a template")
    else:
        files = [place]
    found: Templates = {}
    for file in files:
        try:
            found[file.name.partition(".")[0]] = _parse(file.read_text(encoding="utf-8"))
        except OSError as error:
            _refuse(f"{file}: {error.strerror}")
        except ValueError as error:
            _refuse(f"{file} is no template: {error}")
    return found


def _parse(text: str) -> Template:
    """A template, JSON or YAML with the short forms of intrinsic functions.

    Raises:
        ValueError: it is neither.
    """
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        value = _yaml(text)
    if not isinstance(value, dict) or not isinstance(cast("dict[str, Any]", value).get("Resources"), dict):
        raise ValueError("it has no Resources")
    return cast("Template", value)


def _yaml(text: str) -> Any:
    from ruamel.yaml import YAML
    from ruamel.yaml.constructor import SafeConstructor
    from ruamel.yaml.error import YAMLError
    from ruamel.yaml.nodes import MappingNode, ScalarNode

    class Constructor(SafeConstructor):
        """Its own class: constructors are registered on the class."""

    def intrinsic(constructor: Any, tag: str, node: Any) -> Any:
        if isinstance(node, ScalarNode):
            value = constructor.construct_scalar(node)
            if tag == "GetAtt":
                value = str(value).split(".", 1)
        elif isinstance(node, MappingNode):
            value = constructor.construct_mapping(node, deep=True)
        else:
            value = constructor.construct_sequence(node, deep=True)
        return {tag if tag in ("Ref", "Condition") else f"Fn::{tag}": value}

    cast("Any", Constructor).add_multi_constructor("!", intrinsic)
    yaml: Any = YAML(typ="safe", pure=True)
    yaml.Constructor = Constructor
    try:
        return yaml.load(text)
    except YAMLError as error:
        raise ValueError(" ".join(str(error).split())[:200]) from None


# ---------------------------------------------------------------------------------------------- reports


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a report: a resource, and what happens to it."""

    stack: str
    verdict: Verdict
    resource: str
    type: str
    what: str
    """Changed property with its values, or empty."""
    why: str


def rows(report: Report) -> list[Row]:
    """What is worth a line, by stack: those with the worst verdict first, and the worst first in each.

    Of a resource that is replaced only the causes are shown; what is new, tags, and no-ops are counted.
    """
    from ultracluster.operations.blast_radius import NEW, TAGS, Verdict

    by_stack: dict[str, dict[str, list[Change]]] = {}
    for change in report.changes:  # worst first
        by_stack.setdefault(change.stack, {}).setdefault(change.logical_id, []).append(change)
    made: list[Row] = []
    for stack, resources in by_stack.items():
        new: list[str] = []
        tags = 0
        silent = 0
        alike: dict[tuple[str, str], list[Change]] = {}
        for logical_id, changes in resources.items():
            top = changes[0]
            if top.verdict is Verdict.IN_PLACE and top.reason == NEW and not top.path:
                new.append(top.resource_type)
                continue
            shown = [one for one in changes if one.reason != TAGS and one.verdict is not Verdict.NO_OP]
            if not shown:
                tags += any(one.reason == TAGS for one in changes)
                silent += all(one.reason != TAGS for one in changes)
                continue
            causes = [one for one in shown if one.replaces] or shown
            if len(causes) == 1 and top.verdict is Verdict.IN_PLACE and not top.path:
                alike.setdefault((top.resource_type, _why(top, report)), []).append(top)
                continue
            made += _merged(causes, report)
            if hidden := len(shown) - len(causes):
                text = f"and {hidden} lesser change{'s' * (hidden > 1)}, which go with it"
                made.append(Row(stack, Verdict.NO_OP, logical_id, top.resource_type, "", text))
        for (kind, why), ones in alike.items():
            several = len(ones) > 1
            name, kind = (f"{len(ones)} {kind}", "") if several else (ones[0].logical_id, kind)
            made.append(Row(stack, Verdict.IN_PLACE, name, kind, _what(ones[0]), why))
        if new:
            kinds = ", ".join(f"{new.count(kind)} {kind}" for kind in sorted(set(new)))
            made.append(Row(stack, Verdict.IN_PLACE, f"{len(new)} new", "", "", kinds))
        if tags:
            made.append(Row(stack, Verdict.IN_PLACE, f"tags of {tags}", "", "", TAGS))
        if silent:
            made.append(Row(stack, Verdict.NO_OP, f"{silent} more", "", "", "metadata and order only"))
    return made


def _merged(changes: list[Change], report: Report) -> list[Row]:
    """One row for changes of a resource with the same verdict and reason; of harmless ones the properties."""
    by_reason: dict[tuple[Verdict, str], list[Change]] = {}
    for change in changes:
        by_reason.setdefault((change.verdict, _why(change, report)), []).append(change)
    made: list[Row] = []
    for (verdict, why), ones in by_reason.items():
        loud = verdict.rank >= 2 or len(ones) == 1
        parts = list(dict.fromkeys(_what(one) if loud else re.split(r"[.\[]", one.path)[0] for one in ones))
        what = ",\n".join([*parts[:3], f"{len(parts) - 3} more"] if len(parts) > 4 else parts)
        made.append(Row(ones[0].stack, verdict, ones[0].logical_id, ones[0].resource_type, what, why))
    return made


def as_text(report: Report) -> str:
    """A table for each stack, in the colours of a terminal where there is one."""
    from io import StringIO

    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    terminal = sys.stdout.isatty()
    target = StringIO()
    console = Console(
        file=target, width=None if terminal else 140, force_terminal=terminal, highlight=False, markup=False
    )
    console.print(_title(report))
    for note in report.comparison.notes:
        console.print(f"  {note}", soft_wrap=True)
    made = rows(report)
    for stack in dict.fromkeys(row.stack for row in made):
        table = Table(box=None, pad_edge=False, expand=True, title=stack, title_justify="left")
        table.title_style = "bold"
        table.add_column("verdict", no_wrap=True)
        table.add_column("resource", overflow="fold", ratio=3)
        table.add_column("change", overflow="fold", ratio=4)
        table.add_column("why", overflow="fold", ratio=6)
        last = ""
        for row in (one for one in made if one.stack == stack):
            again = row.resource == last
            name = "" if again else f"{row.resource}\n{row.type}".rstrip()
            verdict = "" if again and row.verdict == "no-op" else row.verdict.value
            table.add_row(Text(verdict, style=_STYLES[row.verdict]), name, row.what, row.why)
            last = row.resource
        console.print()
        console.print(table)
    console.print()
    for line in _end(report):
        console.print(line, soft_wrap=True)
    return "\n".join(line.rstrip() for line in target.getvalue().splitlines()) + "\n"


def as_markdown(report: Report) -> str:
    """For a pull request: what disturbs jobs in full, the rest folded away."""
    from ultracluster.operations.blast_radius import Verdict

    made = rows(report)
    parts = [f"### Blast radius: {_title(report)}"]
    parts += [line for note in report.comparison.notes for line in ("", f"*{note}*")]
    loud = {row.resource for row in made if row.verdict.rank >= Verdict.ROLLING.rank}
    for fold, kept in (
        (False, [row for row in made if row.resource in loud]),
        (True, [row for row in made if row.resource not in loud]),
    ):
        if not kept:
            continue
        if fold:
            parts += ["", f"<details><summary>{len(kept)} without danger</summary>"]
        parts += ["", "| verdict | resource | change | why |", "|---|---|---|---|"]
        for row in kept:
            verdict = f"**{row.verdict}**" if row.verdict.rank >= Verdict.REPLACED.rank else row.verdict
            verdict = "" if row.verdict is Verdict.NO_OP and row.resource in loud else verdict
            cells = (verdict, f"{row.stack}/{row.resource}", row.what, row.why)
            parts.append(f"| {' | '.join(_cell(cell) for cell in cells)} |")
        if fold:
            parts += ["", "</details>"]
    return "\n".join([*parts, "", *(f"{line}  " for line in _end(report))]).rstrip() + "\n"


def as_document(report: Report) -> dict[str, Any]:
    """Every change, for machines."""
    from ultracluster.operations.blast_radius import worst

    return {
        "before": report.comparison.before_name,
        "after": report.comparison.after_name,
        "notes": report.comparison.notes,
        "unread": report.comparison.unread,
        "verdict": worst(report.changes).value,
        "exit_code": report.exit_code,
        "data_loss_not_accepted": report.lost,
        "changes": [
            {
                "stack": change.stack,
                "logical_id": change.logical_id,
                "type": change.resource_type,
                "path": change.path,
                "verdict": change.verdict.value,
                "refused": change.refused,
                "replaces": change.replaces,
                "accepted": change.resource in report.accepted,
                "reason": change.reason,
                "source": change.source,
                "before": change.before,
                "after": change.after,
            }
            for change in report.changes
        ],
    }


_STYLES = {
    "no-op": "dim",
    "in place": "green",
    "rolling": "yellow",
    "needs scale-to-zero": "yellow",
    "replaced": "red",
    "DATA LOSS": "bold white on red",
}


def _title(report: Report) -> str:
    return f"{report.comparison.before_name} -> {report.comparison.after_name}"


def _end(report: Report) -> list[str]:
    """The sum, and what to do about it."""
    from ultracluster.operations.blast_radius import Verdict

    resources: dict[str, Verdict] = {}
    for change in report.changes:  # worst first
        resources.setdefault(change.resource, change.verdict)
    counts = {verdict: list(resources.values()).count(verdict) for verdict in reversed(Verdict)}
    told = ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)
    lines = [told or "nothing changes"]
    replaced = {change.resource for change in report.changes if change.replaces}
    refused = sorted({change.resource for change in report.changes if change.refused} - replaced)
    if refused:
        lines.append(f"AWS refuses as it is, and rolls back: {', '.join(refused)}")
    lines += [f"could not be read: {one}" for one in report.comparison.unread]
    if report.lost:
        lines.append("Data would be lost. To accept it, add:")
        lines += [f"  --accept-data-loss {one}" for one in report.lost]
    return lines


def _what(change: Change) -> str:
    if not change.path:
        return "removed" if change.after is None and change.before is not None else ""
    values = [_short(change.before), _short(change.after)]
    if values[0] == values[1] or "" in values:
        return change.path
    return f"{change.path}: {values[0]} -> {values[1]}"


def _short(value: Any) -> str:
    """A value that fits on a line; empty for what does not."""
    if value is None:
        return "none"
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 32 and not isinstance(value, dict) and "{" not in text else ""


def _why(change: Change, report: Report) -> str:
    accepted = change.verdict == "DATA LOSS" and change.resource in report.accepted
    return f"(accepted) {change.reason}" if accepted else change.reason


def _cell(text: str) -> str:
    """Text in a cell of a Markdown table; angle brackets and bars are no markup."""
    for character, instead in (("\n", " "), ("|", "\\|"), ("<", "&lt;")):
        text = text.replace(character, instead)
    return text


def _refuse(message: str) -> NoReturn:
    typer.echo(message, err=True)
    raise typer.Exit(2)
