"""An AWS account on loopback: moto's server, and adapters for resource types that it does not know.

What others emulate is moto's; what we emulate is below `adapters/`, and the first line of a run counts it.
"""
