#!/usr/bin/env python3
"""Holds the JSON Schemas to the program: a full result validates, spoiled ones do not, codes and fields agree.

usage: check_schema.py PROGRAM   (PROGRAM prints a full result, or with --codes the reason codes; cwd: repository root)
"""
import copy
import json
import pathlib
import subprocess
import sys

import jsonschema

FOLDER = pathlib.Path("results/schema")
failures = []


def expect(condition, text):
    if not condition:
        failures.append(text)


def load(kind):
    schema = json.loads((FOLDER / f"warmleg.{kind}-1.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    return schema, jsonschema.Draft202012Validator(schema)


def undescribed(schema, path=""):
    """Properties without a description."""
    if isinstance(schema, dict):
        for name, sub in schema.get("properties", {}).items():
            if not sub.get("description"):
                yield f"{path}.{name}"
        for name, sub in schema.items():
            yield from undescribed(sub, f"{path}.{name}")
    elif isinstance(schema, list):
        for sub in schema:
            yield from undescribed(sub, path)


def unknown_to(schema, value, defs, path=""):
    """Fields of a document that its schema does not list."""
    if "$ref" in schema:
        schema = defs[schema["$ref"].rsplit("/", 1)[1]]
    for option in schema.get("anyOf", []):
        if "$ref" in option or option.get("type") == "object":
            yield from unknown_to(option, value, defs, path)
    if isinstance(value, list) and isinstance(schema.get("items"), dict):
        for item in value:
            yield from unknown_to(schema["items"], item, defs, path + "[]")
    if isinstance(value, dict):
        for name, sub in value.items():
            if name in schema.get("properties", {}):
                yield from unknown_to(schema["properties"][name], sub, defs, f"{path}.{name}")
            elif isinstance(schema.get("additionalProperties"), dict):
                yield from unknown_to(schema["additionalProperties"], sub, defs, f"{path}.{name}")
            elif "properties" in schema and path != ".scenario":  # the echo has a schema of its own
                yield f"{path}.{name}"


def spoiled(document, change):
    other = copy.deepcopy(document)
    change(other)
    return other


def check_result(program):
    document = json.loads(subprocess.run([program], check=True, capture_output=True).stdout)
    schema, validator = load("result")
    for error in validator.iter_errors(document):
        failures.append(f"full result: {error.json_path}: {error.message}")
    for path in set(unknown_to(schema, document, schema["$defs"])):
        failures.append(f"the schema does not list {path}")
    codes = subprocess.run([program, "--codes"], check=True, capture_output=True, text=True).stdout.split()
    expect(schema["$defs"]["reason"]["properties"]["code"]["enum"] == codes, "reason codes of schema and program differ")
    changes = {
        "newer schema": lambda d: d.update(schema="warmleg.result/2"),
        "no verdict": lambda d: d.pop("verdict"),
        "verdict": lambda d: d.update(verdict="fine"),
        "leg state": lambda d: d["legs"][0].update(state="tepid"),
        "code": lambda d: d["warnings"][0].update(code="bad_luck"),
        "rate as text": lambda d: d["legs"][1]["rates"].update(decode_tok_s="fast"),
        "interval of three": lambda d: d["speedup"]["decode"].update(ci95=[1, 2, 3]),
        "no unit": lambda d: d["summary"]["plain"]["decode_tok_s"].pop("unit"),
        "fraction of a token": lambda d: d["legs"][0]["counters"].update(accepted=1.5),
    }
    for name, change in changes.items():
        expect(not validator.is_valid(spoiled(document, change)), f"accepted although spoiled: {name}")
    fine = {
        "extra field": lambda d: d["legs"][0].update(later=1),
        "no speed-up": lambda d: d.update(speedup=None),
        "large integer": lambda d: d["legs"][0]["counters"].update(accepted="9007199254740993"),
    }
    for name, change in fine.items():
        expect(validator.is_valid(spoiled(document, change)), f"refused although fine: {name}")


def without_comments(text):
    """Removes // comments outside strings."""
    out, in_string, i = [], False, 0
    while i < len(text):
        if not in_string and text.startswith("//", i):
            i = text.find("\n", i)
            continue
        if text[i] == "\\":
            out.append(text[i : i + 2])
            i += 2
            continue
        in_string ^= text[i] == '"'
        out.append(text[i])
        i += 1
    return "".join(out)


def check_scenarios():
    _, validator = load("scenario")
    files = sorted(pathlib.Path("scenarios").glob("*.json"))
    expect(files, "no scenario found")
    for file in files:
        document = json.loads(without_comments(file.read_text()))
        for error in validator.iter_errors(document):
            failures.append(f"{file}: {error.json_path}: {error.message}")
        expect(not validator.is_valid({**document, "promts": 1}), "scenario with an unknown key accepted")
        expect(not validator.is_valid({**document, "arms": document["arms"][:1]}), "scenario with one arm accepted")


def check_trace():
    _, validator = load("trace")
    trace = {
        "schema": "warmleg.trace/1", "prompt_ids": [1], "output_ids": [2, 3], "finish": "length",
        "first_logits": {"ids": [2] * 8, "values": [0.5] * 8},
        "rounds": [{"anchor": 2, "position": 1, "drafted": [3, 4], "accepted": 1, "emitted": 1}],
    }
    expect(validator.is_valid(trace), "a trace is refused")
    expect(not validator.is_valid({**trace, "finish": "eos"}), "a trace that finished by eos is accepted")


def check_watch():
    """Parts that both forms share are the same text."""
    result, watch = load("result")[0], load("watch")[0]
    for name, part in watch["$defs"].items():
        expect(part == result["$defs"][name], f"watch: $defs.{name} differs from that of the result")
    expect(watch["properties"]["telemetry"] == result["properties"]["telemetry"], "watch: telemetry differs from that of the result")


def main():
    check_result(sys.argv[1])
    check_scenarios()
    check_trace()
    check_watch()
    for kind in ("result", "trace", "scenario", "watch"):
        for path in undescribed(load(kind)[0]):
            failures.append(f"{kind}: {path} has no description")
    print("\n".join(failures) or "schemas agree")
    return 1 if failures else 0


sys.exit(main())
