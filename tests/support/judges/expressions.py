"""Run in the judges' own environment: an expression in CEL, and what it is asked of, as JSON on stdin."""

from __future__ import annotations

import json
import sys

import celpy

asked = json.load(sys.stdin)
environment = celpy.Environment()
program = environment.program(environment.compile(asked["expression"]))
answers = [
    bool(program.evaluate({name: celpy.json_to_cel(value) for name, value in one.items()}))
    for one in asked["cases"]
]
sys.stdout.write(json.dumps(answers) + "\n")
