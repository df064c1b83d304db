#!/usr/bin/env python3
"""Canonical JSON and digests as inst/spec/digest-v1.md describes them.

As a module: canonical(text) -> str, digest(text) -> str, both of JSON text.
As a program: digest_v1.py VECTORS.json checks the test vectors.
"""
import hashlib
import json
import sys



class Refused(ValueError):
    """The text is not a document of this form."""


def read(text):
    def pairs(items):
        out = {}
        for key, value in items:
            if key in out:
                raise Refused("a key occurs twice: " + key)
            out[key] = value
        return out

    def constant(word):
        raise Refused("not JSON: " + word)

    def double(token):
        value = float(token)
        if value in (float("inf"), float("-inf")):
            raise Refused("beyond the range of a double: " + token)
        return value

    return json.loads(text, object_pairs_hook=pairs, parse_constant=constant, parse_float=double)


def number(x):
    """ECMAScript's Number::toString: the shortest digits that read back as x."""
    if x == 0:
        return "0"
    sign, x = ("-", -x) if x < 0 else ("", x)
    mantissa, _, exponent = repr(x).partition("e")
    whole, _, fraction = mantissa.partition(".")
    fraction = "" if fraction == "0" else fraction
    digits = (whole + fraction).lstrip("0")
    point = len(whole) + int(exponent or 0)
    if whole == "0":
        point = int(exponent or 0) - (len(fraction) - len(fraction.lstrip("0")))
    digits = digits.rstrip("0")
    k, n = len(digits), point
    if k <= n <= 21:
        body = digits + "0" * (n - k)
    elif 0 < n <= 21:
        body = digits[:n] + "." + digits[n:]
    elif -6 < n <= 0:
        body = "0." + "0" * -n + digits
    else:
        body = digits[0] + ("." + digits[1:] if k > 1 else "")
        body += "e" + ("+" if n > 0 else "-") + str(abs(n - 1))
    return sign + body


def string(s):
    if any(0xD800 <= ord(c) <= 0xDFFF for c in s):
        raise Refused("a lone surrogate")
    short = {8: "\\b", 9: "\\t", 10: "\\n", 12: "\\f", 13: "\\r", 34: '\\"', 92: "\\\\"}
    out = (short.get(ord(c)) or ("\\u%04x" % ord(c) if ord(c) < 32 else c) for c in s)
    return '"' + "".join(out) + '"'


def write(value):
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return number(value)
    if isinstance(value, str):
        return string(value)
    if isinstance(value, list):
        return "[" + ",".join(map(write, value)) + "]"
    keys = sorted(value, key=lambda k: k.encode("utf-16-be", "surrogatepass"))
    return "{" + ",".join(string(k) + ":" + write(value[k]) for k in keys) + "}"


def canonical(text):
    return write(read(text))


def digest(text):
    return hashlib.sha256(canonical(text).encode("utf-8")).hexdigest()


def main(path):
    if hasattr(sys, "set_int_max_str_digits"):
        sys.set_int_max_str_digits(0)
    with open(path, encoding="utf-8") as file:
        vectors = json.load(file)
    bad = []
    for v in vectors["accepted"]:
        if canonical(v["json"]) != v["canonical"] or digest(v["json"]) != v["sha256"]:
            bad.append(v["json"])
    for v in vectors["refused"]:
        try:
            canonical(v["json"])
            bad.append(v["json"])
        except (ValueError, RecursionError):
            pass
    count = len(vectors["accepted"]) + len(vectors["refused"])
    print("%d vectors, %d wrong" % (count, len(bad)))
    for text in bad:
        print("wrong:", text)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
