#!/usr/bin/python3
"""validate.py SCHEMA FILE...: 0 if each file is YAML 1.1 that fits the schema, 3 if one is not (says why), 2 on misuse.

An independent parser (PyYAML's pure one, not libyaml) and an independent validator: no code is shared with what we test.
"""
import json
import sys

import jsonschema
import yaml


def fault(validator, path):
    try:
        with open(path, encoding="utf-8") as file:
            value = yaml.load(file, yaml.SafeLoader)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        return f"not YAML: {error}"
    error = jsonschema.exceptions.best_match(validator.iter_errors(value))
    return error and f"{error.json_path}: {error.message}"


def main(arguments):
    if len(arguments) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    with open(arguments[0], encoding="utf-8") as file:
        schema = json.load(file)
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    faults = [(path, fault(validator, path)) for path in arguments[1:]]
    for path, why in faults:
        if why:
            print(f"{path}: {why}")
    return 3 if any(why for _, why in faults) else 0


sys.exit(main(sys.argv[1:]))
