"""What a change of templates does to what is deployed: two sets of templates in, a list of changes out.

Pure: no account, no files but four tables. `create_only.json` and `update_requires.json` are what
CloudFormation publishes of its resource types; `change_facts.json` is what these lack: HyperPod's immutable
fields, file systems that only grow, nodes that are drained; `kubernetes_facts.json` is what Kubernetes does.
What no table knows is not known, never harmless.
"""

from ultracluster.change.changes import NEW, TAGS, Change, ChangeError, Verdict
from ultracluster.change.radius import blast_radius, worst
from ultracluster.change.template import Template, paired

__all__ = ["NEW", "TAGS", "Change", "ChangeError", "Template", "Verdict", "blast_radius", "paired", "worst"]
