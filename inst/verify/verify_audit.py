#!/usr/bin/env python3
"""Verify the chain of a warrant audit trail (inst/spec/audit-v1.md) with nothing but Python 3.

Usage: verify_audit.py FILE [HEAD ...]    prints a line a fault (kind, line, run, seq), then the state.
"""
import hashlib, json, re, sys

MEMBERS = ["active_ms", "at", "data", "digest", "event", "prev", "run", "seq"]
HEX, MAX_LINE, TOP = re.compile(r"[0-9a-f]{64}\Z"), 16 << 20, 2**53

def unique(pairs):
    if len(dict(pairs)) < len(pairs): raise ValueError("repeated key")
    return dict(pairs)

def number(text):
    if abs(float(text)) == float("inf"): raise ValueError("not finite")
    return float(text)

def canonical(value):  # RFC 8785; a float is never in a journal, so any spelling of it differs
    if isinstance(value, dict):
        keys = sorted(value, key=lambda k: k.encode("utf-16-be"))
        return "{" + ",".join(canonical(k) + ":" + canonical(value[k]) for k in keys) + "}"
    if isinstance(value, list): return "[" + ",".join(map(canonical, value)) + "]"
    return "float" if isinstance(value, float) else json.dumps(value, ensure_ascii=False)

def depth(value):
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max(map(depth, inner), default=0)

def read(line):  # (record, whether it is canonical), or None where it is not a record
    try:
        r = json.loads(line.decode("utf-8"), object_pairs_hook=unique, parse_float=number, parse_constant=lambda c: 1 / 0)
        text, count = canonical(r).encode("utf-8"), lambda n: type(n) is int and 0 <= n < TOP
        ok = (len(line) <= MAX_LINE and isinstance(r, dict) and sorted(r) == MEMBERS and depth(r) <= 128
              and count(r["active_ms"]) and count(r["at"]) and count(r["seq"]) and isinstance(r["data"], dict)
              and HEX.match(r["digest"]) and re.match(r"[a-z][a-z_]{0,39}\Z", r["event"])
              and (r["prev"] is None or HEX.match(r["prev"])) and re.match(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}\Z", r["run"]))
        return (r, text == line) if ok else None
    except (ValueError, TypeError, ArithmeticError, RecursionError): return None

def after(r):  # the digest that a link names, or False where its data are not a link's
    want = {"after", "schema"} if r["seq"] == 0 else {"after"}
    a = r["data"].get("after")
    good = set(r["data"]) == want and r["data"].get("schema", "warrant_audit/v1") == "warrant_audit/v1"
    return a if good and (a is None or isinstance(a, str) and HEX.match(a)) else False

def verify(file, heads=()):
    faults, chains, ended, own, before, number, records = [], {}, set(), None, None, 0, 0
    heads = [([None, None] + h.split(":"))[-3:] for h in heads]; seen = set()
    def fault(kind, run=None, seq=None, line=True): faults.append((kind, number if line else None, run, seq))
    for line in file:
        number += 1
        if not line.endswith(b"\n"): fault("torn"); break
        got = read(line[:-1])
        if got is None: fault("unreadable"); before = "unknown"; continue
        r, exact = got; run, seq, prev, event = r["run"], r["seq"], r["prev"], r["event"]
        claimed = r["digest"]
        digest = hashlib.sha256(canonical({k: r[k] for k in MEMBERS if k != "digest"}).encode()).hexdigest() if exact else claimed
        here = {"digests": (claimed, digest), "event": event}
        if not exact or digest != claimed:  # changed: taken for the record it stands for
            opens = seq == 0 and prev is None
            if opens and event == "link" and own is None: own = run
            if run not in chains and opens and run not in ended and event == ("link" if run == own else "run_started"):
                chains[run] = {"next": 0, "digests": (), "active": 0}
            c = chains.get(run)
            if c and (seq == c["next"] or c["next"] > 0 and prev in c["digests"]):
                seq = c["next"]; c["next"] += 1; c["digests"] = (claimed, digest)
                if event == "finished" and run != own: ended.add(run); del chains[run]
            fault("digest" if exact else "not_canonical", run, seq); before = here; continue
        records += 1
        if own is None and event == "link": own = run
        is_own = run == own
        if not is_own and event == "link": fault("link", run, seq)
        else:
            if own and not is_own and isinstance(before, dict):
                if before["event"] == "finished" or event == "run_started" and before["event"] != "link": fault("link_missing", run, seq)
            if run in ended: fault("after_end", run, seq)
            else:
                c = chains.setdefault(run, {"next": 0, "digests": (), "active": 0}); expected = c["next"]
                if seq < expected: fault("order", run, seq)
                else:
                    if seq > expected: fault("missing", run, expected)
                    elif (prev is not None) if expected == 0 else prev not in c["digests"]: fault("prev", run, seq)
                    if r["active_ms"] < c["active"]: fault("time", run, seq)
                    c.update(next=seq + 1, digests=(digest,), active=max(c["active"], r["active_ms"]))
                    if is_own and event != "recovered":
                        fits = before == "unknown" or after(r) in (before["digests"] if before else (None,))
                        if event != "link" or after(r) is False or not fits: fault("link", run, seq)
                    if event == "finished" and not is_own: ended.add(run); del chains[run]
        for i, (hrun, hseq, hdigest) in enumerate(heads):
            if hdigest == digest: seen.add(i)
            elif hrun == run and hseq == str(seq): seen.add(i); fault("head", run, seq)
        before = here
    for i, (hrun, hseq, hdigest) in enumerate(heads):
        if i not in seen: fault("cut", hrun, chains.get(hrun, {"next": 0})["next"] if hrun else None, line=False)
    unlinked = own and isinstance(before, dict) and before["event"] == "finished"
    state = ("broken" if any(f[0] not in ("torn", "cut") for f in faults) else "cut" if faults else
             "open" if set(chains) - {own} or unlinked or not records else "sound")
    return faults, state

if __name__ == "__main__":
    with open(sys.argv[1], "rb") as file: faults, state = verify(file, sys.argv[2:])
    for row in faults: print(*("" if x is None else x for x in row), sep="\t")
    print(state)
    sys.exit(state not in ("sound", "open"))
