"""Boards judged by Grafana's own TypeScript types, with the compiler of TypeScript.

No Grafana runs here. Its package @grafana/schema says what a board, a panel and its options may hold; a field
that no type has and a value of another type are both found.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from needs import without_setup
from project import ROOT

FOLDER = ROOT / "tests" / "grafana_schema"
VERSIONS = (10, 12, 13)
"""Of Grafana, that Amazon Managed Grafana offers and boards are made for."""
DASHBOARD = "dist/esm/raw/dashboard/x/Dashboard_types.gen"
COMPOSABLE = "dist/esm/raw/composable"
PANELS = {
    "stat": "stat/panelcfg/x/StatPanelCfg_types.gen",
    "timeseries": "timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen",
    "bargauge": "bargauge/panelcfg/x/BarGaugePanelCfg_types.gen",
    "table": "table/panelcfg/x/TablePanelCfg_types.gen",
    "state-timeline": "statetimeline/panelcfg/x/StateTimelinePanelCfg_types.gen",
}
WITH_OWN_FIELDS = ("timeseries", "table", "state-timeline")
"""Panels whose fields have settings of their own (`custom`)."""
QUERIES = {
    "prometheus": ("prometheus/dataquery/x/PrometheusDataQuery_types.gen", "PrometheusDataQuery"),
    "cloudwatch": ("cloudwatch/dataquery/x/CloudWatchDataQuery_types.gen", "CloudWatchMetricsQuery"),
}
OPTIONS = {
    "noEmit": True, "strict": True, "skipLibCheck": True, "types": [],
    "target": "es2022", "module": "esnext", "moduleResolution": "node10",
}  # fmt: skip
PLAIN = """
// What JSON has in the place of an enum: its values. Fields that the types leave open stay open.
type Plain<T> = T extends string ? `${T}`
  : T extends number ? (number extends T ? number : `${T}` extends `${infer N extends number}` ? N : never)
  : T extends boolean | null | undefined ? T
  : T extends object ? { [K in keyof T]: Plain<T[K]> } : T
"""


def why_not_here() -> str | None:
    """What is missing on this machine; None where the compiler can run."""
    if not (FOLDER / "node_modules").is_dir():
        return without_setup("Grafana's types")
    return None if shutil.which("node") else without_setup("node")


def complaints(boards: Mapping[str, Any], folder: Path, version: int) -> list[str]:
    """What the compiler says of boards, as `place: message`; empty where all is well."""
    package = FOLDER / "node_modules" / f"grafana-schema-{version}"
    parts = [
        (place, kind, value) for name, board in boards.items() for place, kind, value in _parts(name, board)
    ]
    source = [*_imports(package), PLAIN]
    places: dict[int, str] = {}
    for number, (place, kind, value) in enumerate(parts):
        line = sum(one.count("\n") + 1 for one in source) + 1
        places[line] = place
        source.append(f"export const part{number}: Plain<{kind}> = {json.dumps(value)}")
    file = folder / f"boards{version}.ts"
    file.write_text("\n".join(source) + "\n")
    index = json.loads((package / "package.json").read_text())
    main = index["exports"]["."]["types"] if "exports" in index else index["types"]
    options = OPTIONS | {"paths": {"@grafana/schema": [str(package / main)]}}
    (folder / "tsconfig.json").write_text(json.dumps({"compilerOptions": options, "files": [file.name]}))
    done = subprocess.run(
        [
            "node",
            str(FOLDER / "node_modules/typescript/bin/tsc"),
            "--project",
            str(folder),
            "--pretty",
            "false",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    return [_told(line, places) for line in done.stdout.splitlines() if not line.startswith(" ")]


def _told(line: str, places: Mapping[int, str]) -> str:
    number = line.partition("(")[2].partition(",")[0]
    where = places.get(int(number), "imports") if number.isdecimal() else "compiler"
    return f"{where}: {line.partition(': ')[2] or line}"


def _imports(package: Path) -> Iterator[str]:
    yield f"import * as Dashboards from '{_module(package, DASHBOARD)}'"
    for name, module in PANELS.items():
        yield f"import * as {_name(name)} from '{_module(package, f'{COMPOSABLE}/{module}')}'"
    for name, (module, _) in QUERIES.items():
        # from 12 on the package has no types of Prometheus's queries any more: the older ones judge them
        home = package.with_name("grafana-schema-10") if name == "prometheus" else package
        yield f"import * as Of_{name} from '{_module(home, f'{COMPOSABLE}/{module}')}'"


def _module(package: Path, inner: str) -> str:
    """Where the declarations lie: newer packages name what they export otherwise than their files."""
    exports = json.loads((package / "package.json").read_text()).get("exports")
    if not exports:
        return str(package / inner.replace("/Dashboard_", "/dashboard_"))
    return str(package / exports[f"./{inner}"]["types"].removesuffix(".d.ts"))


def _name(panel: str) -> str:
    return f"Of_{panel.replace('-', '_')}"


def _parts(name: str, board: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Places of a board, the type that each has to be of, and what is there."""
    outer = {key: value for key, value in board.items() if key not in ("panels", "templating", "links")}
    yield name, "Dashboards.Dashboard", outer
    for link in board["links"]:
        yield f"{name}, link {link['title']}", "Dashboards.DashboardLink", link
    for variable in board["templating"]["list"]:
        yield f"{name}, variable {variable['name']}", "Dashboards.VariableModel", variable
    for panel in board["panels"]:
        if panel["type"] != "row":
            yield from _panel(name, panel)
            continue
        yield f"{name}, row {panel['title']}", "Dashboards.RowPanel", {**panel, "panels": []}
        for inner in panel["panels"]:
            yield from _panel(name, inner)


def _panel(name: str, panel: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    place, kind = f"{name}, panel {panel['title']}", panel["type"]
    defaults = panel["fieldConfig"]["defaults"]
    custom = defaults.get("custom", {})
    # JSON has no -Infinity: the first step is null, as the types' own comment says
    steps = [
        {**step, "value": step["value"] or 0} for step in defaults.get("thresholds", {}).get("steps", [])
    ]
    plain = {key: value for key, value in defaults.items() if key != "custom"}
    if steps:
        plain["thresholds"] = {**plain["thresholds"], "steps": steps}
    shell = {key: value for key, value in panel.items() if key not in ("targets", "options")}
    yield place, "Dashboards.Panel", {**shell, "fieldConfig": {**panel["fieldConfig"], "defaults": plain}}
    yield f"{place}, options", f"Partial<{_name(kind)}.Options>", panel.get("options", {})
    if custom or kind in WITH_OWN_FIELDS:
        yield f"{place}, fields", f"Partial<{_name(kind)}.FieldConfig>", custom
    for target in panel["targets"]:
        source = target["datasource"]["type"]
        yield f"{place}, query {target['refId']}", f"Of_{source}.{QUERIES[source][1]}", target
