#!/usr/bin/env python3
"""Verify the chain of a warrant audit trail (inst/spec/audit-v1.md) with nothing but Python 3.
verify_audit.py FILE [HEAD ...] prints a line a fault (kind, line, run, seq), then the state of the trail."""
import hashlib, json, math, re, sys

HEX = "[0-9a-f]{64}"
SHAPE = {"active_ms": r"\d+", "at": r"\d+", "data": r"\{.*\}", "digest": f'"{HEX}"', "event": '"[a-z][a-z_]{0,39}"',
         "prev": f'null|"{HEX}"', "run": '"[A-Za-z0-9][A-Za-z0-9._-]{0,127}"', "seq": r"\d+"}

def unique(pairs):
    if len(dict(pairs)) < len(pairs): raise ValueError("a repeated key")
    return dict(pairs)

def ordered(value, depth=1):  # keys in the order of RFC 8785; no journal has a float, so any spelling of one differs
    if isinstance(value, float) and not math.isfinite(value): raise ValueError("not a finite number")
    if isinstance(value, float): return "a float"
    if not isinstance(value, (dict, list)): return value
    if depth > 128: raise ValueError("too deep")
    if isinstance(value, list): return [ordered(item, depth + 1) for item in value]
    return {key: ordered(value[key], depth + 1) for key in sorted(value, key=lambda key: key.encode("utf-16-be"))}

def canonical(value): return json.dumps(ordered(value), ensure_ascii=False, separators=(",", ":")).encode()

def read(line):  # a record with the digests it can be known by, and what is wrong with its line; or None
    try:
        r = json.loads(line.decode(), object_pairs_hook=unique)
        text = canonical(r)
        good = isinstance(r, dict) and r.keys() == SHAPE.keys() and len(line) <= 2**24 and all(
            re.fullmatch(SHAPE[member], json.dumps(r[member]), re.S) for member in SHAPE)
        if not good or max(r["active_ms"], r["at"], r["seq"]) >= 2**53: return None
        if text != line: return {**r, "digests": {r["digest"]}}, "not_canonical"
        digest = hashlib.sha256(canonical({member: r[member] for member in r if member != "digest"})).hexdigest()
        return {**r, "digests": {r["digest"], digest}}, None if r["digest"] == digest else "digest"
    except (ValueError, RecursionError): return None

def links(r, before):  # whether the data of a link are a link's, and name the line before it
    data = dict(r["data"])
    if r["seq"] == 0 and data.pop("schema", None) != "warrant_audit/v1": return False
    after = data.pop("after", False)
    if data or not (after is None or isinstance(after, str) and re.fullmatch(HEX, after)): return False
    return before == "unreadable" or after in (before["digests"] if before else {None})

def verify(file, heads=()):
    faults, chains, ended, own, before, records, met = [], {}, set(), None, None, 0, set()
    heads = [([None, None] + head.split(":"))[-3:] for head in heads]
    for number, line in enumerate(file, 1):
        def fault(kind, run=None, seq=None): faults.append((kind, number, run, seq))
        if not line.endswith(b"\n"): fault("torn"); break
        r, wrong = read(line[:-1]) or (None, "unreadable")
        if r is None: fault(wrong); before = wrong; continue
        run, seq, prev, event = r["run"], r["seq"], r["prev"], r["event"]
        last, before, opens = before, r, seq == 0 and prev is None
        if own is None and event == "link" and (opens or not wrong): own = run
        if wrong:  # taken for the record it stands for, and not checked further
            if opens and run not in ended and event == ("link" if run == own else "run_started"):
                chains.setdefault(run, {"next": 0})
            chain = chains.get(run, {"next": -1})
            if seq != chain["next"] and prev not in chain.get("digests", ()): fault(wrong, run, seq); continue
            fault(wrong, run, chain["next"])
            chain.update(next=chain["next"] + 1, digests=r["digests"])
        else:
            records += 1
            for i, (head_run, head_seq, digest) in enumerate(heads):
                if digest == r["digest"]: met.add(i)
                elif (head_run, head_seq) == (run, str(seq)): met.add(i); fault("head", run, seq)
            if run != own and event == "link": fault("link", run, seq); continue
            if own not in (None, run) and isinstance(last, dict):
                wanted = last["event"] == "finished" or event == "run_started" and last["event"] != "link"
                if wanted: fault("link_missing", run, seq)
            if run in ended: fault("after_end", run, seq); continue
            chain = chains.setdefault(run, {"next": 0})
            if seq < chain["next"]: fault("order", run, seq); continue
            if seq > chain["next"]: fault("missing", run, chain["next"])
            elif prev not in chain.get("digests", {None}): fault("prev", run, seq)
            if r["active_ms"] < chain.get("active_ms", 0): fault("time", run, seq)
            chain.update(next=seq + 1, digests=r["digests"], active_ms=max(r["active_ms"], chain.get("active_ms", 0)))
            if run == own and event != "recovered" and not (event == "link" and links(r, last)): fault("link", run, seq)
        if event == "finished" and run != own: ended.add(run); del chains[run]
    faults.sort(key=lambda fault: (fault[1], fault[0] == "head"))
    for run in [run for i, (run, _, _) in enumerate(heads) if i not in met]:
        faults.append(("cut", None, run, chains.get(run, {"next": 0})["next"] if run else None))
    kinds, unlinked = {kind for kind, *_ in faults}, own and isinstance(before, dict) and before["event"] == "finished"
    if kinds: return faults, "cut" if kinds <= {"torn", "cut"} else "broken"
    return faults, "open" if chains.keys() - {own} or unlinked or not records else "sound"

if __name__ == "__main__":
    with open(sys.argv[1], "rb") as file: faults, state = verify(file, sys.argv[2:])
    for row in faults: print(*("" if x is None else x for x in row), sep="\t")
    sys.exit(print(state) or state not in ("sound", "open"))
