"""The members of org.pageclear.Calibrd1 in an introspection XML (standard input), a line each, sorted: for diff.

Everything counts that a client can rely on: names, types, directions, access, annotations other than the standard ones.
"""
import sys
import xml.etree.ElementTree as tree

INTERFACE = "org.pageclear.Calibrd1"


def describe(member):
    """One member with all that belongs to it."""
    words = [member.tag] + [f"{key}={member.get(key)}" for key in ("name", "type", "access") if member.get(key)]
    for part in member:
        if part.tag == "arg":
            # Arguments of signals have no direction, or are out.
            way = part.get("direction") or ("in" if member.tag == "method" else "out")
            words.append(f"{way}:{part.get('type')}:{part.get('name')}")
        elif part.tag == "annotation":
            words.append(f"{part.get('name')}={part.get('value')}")
    return " ".join(words)


found = [node for node in tree.parse(sys.stdin).getroot().iter("interface") if node.get("name") == INTERFACE]
if len(found) != 1:
    sys.exit(f"{len(found)} interfaces named {INTERFACE}")
print("\n".join(sorted(describe(member) for member in found[0])))
