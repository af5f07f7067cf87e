"""Validates values against the official schemas. Each input line is JSON: the schema file, the definition, the value."""

import json
import sys

from jsonschema import Draft202012Validator

wrong = count = 0
validators = {}
for line in sys.stdin:
    file, definition, value = json.loads(line)
    if (file, definition) not in validators:
        with open(file) as opened:
            definitions = json.load(opened)["$defs"]
        schema = {"$ref": f"#/$defs/{definition}", "$defs": definitions}
        validators[file, definition] = Draft202012Validator(schema)
    count += 1
    for error in validators[file, definition].iter_errors(value):
        wrong += 1
        print(f"{definition}: {error.message}: {json.dumps(value)}")
print(f"{count} values, {wrong} wrong")
sys.exit(1 if wrong or not count else 0)
