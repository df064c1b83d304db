#!/usr/bin/env python3
"""Verify an archive of a study (inst/spec/archive-v1.md) with nothing but Python 3.

verify_archive.py FOLDER [SEAL] prints a line a fault (kind, file, what), then whether the archive is sound.
It checks the seal, the chain of every journal against its head, every value against its address, the manifest
against its hash and the trajectories against the tables; what else the records mean, the package checks.
"""
import csv, hashlib, hmac, json, os, re, sys
sys.dont_write_bytecode = True  # the folder of an installed package is not ours to write to
import digest_v1, verify_audit

def sha256(data): return hashlib.sha256(data).hexdigest()

def read(folder, name):
    with open(os.path.join(folder, name), "rb") as file: return file.read()

def walk(folder):
    for base, folders, files in os.walk(folder):
        for name in files + [f for f in folders if os.path.islink(os.path.join(base, f))]:
            yield os.path.relpath(os.path.join(base, name), folder).replace(os.sep, "/")

def addresses(data):  # every digest that the data of a record state
    if isinstance(data, dict): data = list(data.values())
    if isinstance(data, list): return set().union(*map(addresses, data)) if data else set()
    return {data} if isinstance(data, str) and re.fullmatch("[0-9a-f]{64}", data) else set()

def sealed(folder, fault):
    there, listed = set(walk(folder)) - {"hashes.sha256"}, {}
    for row in read(folder, "hashes.sha256").decode().splitlines():
        listed[row[66:]] = row[:64] if row[64:66] == "  " else None
    for name in sorted(there | listed.keys()):
        if name not in listed: fault("extra", name, "is not in hashes.sha256")
        elif name not in there or os.path.islink(os.path.join(folder, name)): fault("missing", name, "is not there, or is a link")
        elif sha256(read(folder, name)) != listed[name]: fault("changed", name, "does not have its digest")

def values(folder, run, records, how, fault):
    name = f"content/{run}.content"
    if how == "none": return
    rows = [row.split(" ", 1) for row in read(folder, name).decode().split("\n")[:-1]]
    key = bytes.fromhex(rows.pop(0)[1]) if rows and rows[0][0] == "key" else None
    if (key is not None) != (how == "whole"): fault("key", name, "is there, or is not, against heads.csv")
    if key and sha256(key) != records[0]["data"]["content_key"]: fault("key", name, "is not the key that the run committed to")
    stated = set().union(*(addresses(r["data"]) for r in records))
    for address, text in rows:
        if address not in stated: fault("content", name, f"{address} is named by no record")
        if key and hmac.new(key, text.encode(), "sha256").hexdigest() != address:
            fault("content", name, f"{address} was not made from its value")

def verify(folder, seal=None):
    faults = []
    def fault(*what): faults.append(what)
    sealed(folder, fault)
    if seal and sha256(read(folder, "hashes.sha256")) != seal: fault("seal", "hashes.sha256", "is another one")
    manifest = digest_v1.read(read(folder, "manifest.json").decode())
    said, _ = manifest.pop("manifest_hash"), manifest.pop("made")
    if sha256(digest_v1.write(manifest).encode()) != said: fault("manifest", "manifest.json", "does not have its hash")
    heads = list(csv.DictReader(read(folder, "heads.csv").decode().splitlines()))
    lines = read(folder, "trajectories.jsonl").decode().split("\n")[:-1]
    rows = list(csv.DictReader(read(folder, "tables/runs.csv").decode().splitlines()))
    if [h["run_id"] for h in heads] != [r["run_id"] for r in rows]: fault("table", "tables/runs.csv", "has other runs than heads.csv")
    for head, line in zip(heads, lines):
        run, name = head["run_id"], f"journals/{head['run_id']}.jsonl"
        with open(os.path.join(folder, name), "rb") as file:
            found, _ = verify_audit.verify(file, [f"{run}:{int(head['records']) - 1}:{head['head']}"])
        for kind, number, *_ in found: fault(kind, name, f"line {number}")
        records = [json.loads(row) for row in read(folder, name).decode().splitlines()]
        calls = {(r["data"]["step"], r["data"]["action"]) for r in records if r["event"] == "call_started"}
        steps = json.loads(line)["trajectory"]["steps"]
        if len(calls) != sum(step["kind"] == "tool_call" for step in steps): fault("trajectory", "trajectories.jsonl", run)
        values(folder, run, records, head["content"], fault)
    return faults

if __name__ == "__main__":
    faults = verify(*sys.argv[1:3])
    for row in faults: print(*row, sep="\t")
    sys.exit(print("broken" if faults else "sound") or bool(faults))
