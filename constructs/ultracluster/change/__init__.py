"""What a change of templates does to what is deployed: two sets of templates in, a list of changes out.

Pure: no account, no files but two tables. `create_only.json` is what CloudFormation says of its resource
types, `change_facts.json` what it does not say: HyperPod's immutable fields, file systems that only grow,
nodes that are drained. What no table knows is treated as replaced, never as harmless.
"""

from ultracluster.change.changes import NEW, TAGS, Change, ChangeError, Verdict
from ultracluster.change.radius import blast_radius, worst
from ultracluster.change.template import Template, paired

__all__ = ["NEW", "TAGS", "Change", "ChangeError", "Template", "Verdict", "blast_radius", "paired", "worst"]
