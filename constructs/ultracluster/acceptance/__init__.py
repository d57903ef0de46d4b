"""Is the fabric what was paid for: logs of nccl-tests and NCCL, judged against published figures.

Nothing here but the standard library and the catalogue. Names are imported from their modules:
`ultracluster plan` reads one of the curves.
"""
