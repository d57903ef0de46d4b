"""What every stack of an environment has in common, and how values cross from one to another."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import CfnOutput, Fn, Stack, Token
from constructs import Construct

from ultracluster.clusters.composition.parts import Outputs
from ultracluster.config.environment import StackPart
from ultracluster.guard import already_judged
from ultracluster.model import Cluster


class PartStack(Stack):
    """One part of an environment: `<environment>-<part>`, after a prefix that the environment may ask for."""

    def __init__(
        self,
        scope: Construct,
        cluster: Cluster,
        part: StackPart,
        *,
        env: cdk.Environment,
        holds: str,
        protect: bool = True,
        suppress_template_indentation: bool = False,
    ) -> None:
        """Make the stack.

        Args:
            cluster: what the environment comes to.
            part: last part of its name.
            holds: what is in it, in words.
            protect: from deletion, where the environment asks for it.
        """
        super().__init__(
            scope,
            stack_name(cluster, part),
            env=env,
            termination_protection=protect and cluster.environment.protect,
            description=f"Ultracluster {cluster.name}: {holds}",
            suppress_template_indentation=suppress_template_indentation,
        )
        # the file's rules have spoken
        already_judged(self)

    def tell(self, outputs: Outputs) -> None:
        """Write what people and commands read of the deployed stack."""
        for name, output in outputs.items():
            CfnOutput(self, name, value=output.value, description=output.description)


def stack_name(cluster: Cluster, part: StackPart) -> str:
    return cluster.environment.stack_name(part)


def cross(scope: Construct, name: str, value: str) -> str:
    """Export `value` as `<stack>-<name>` and give what other stacks write instead of it.

    Every part is exported whether or not anyone reads it today: an export that vanishes with its last reader
    would have to be removed before that reader is updated, and CloudFormation refuses that. The names do not
    depend on logical ids. A value known at synth (an id from the environment file) needs no export and is
    given back as it is.
    """
    stack = Stack.of(scope)
    export = f"{stack.stack_name}-{name}"
    CfnOutput(stack, name, value=value, export_name=export if Token.is_unresolved(value) else None)
    return Fn.import_value(export) if Token.is_unresolved(value) else value
