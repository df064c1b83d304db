"""Makes the trees that vendor.sh packs from what `cargo vendor` copied.

Work folder in: vendor/ (crates, one folder a version), needed (crates that a
build of the package uses on some system), tested (those that a test on Linux
uses). Out: full/vendor/ (needed crates without their tests and pages, all others
as stubs, for cargo wants a manifest of each crate in the lock file),
dev/vendor/ (crates only tests use), dev.list, AUTHORS, LICENSE.note.
"""
import json
import os
import re
import shutil
import sys
import tomllib

DROPPED = {"tests", "benches", "bench", "examples", ".github", "ci", "docs", "doc", "fuzz", ".cargo",
           "scripts", "test-data", "testdata", "etc", "assets", "images", "test_suite"}
LICENCE = ("LICEN", "COPYING", "NOTICE", "COPYRIGHT", "UNLICENSE")


def read(path):
    with open(path, encoding="utf-8", errors="replace") as f:
        return f.read()


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8", newline="\n") as f:
        f.write(text)


def lines(path):
    return {line.strip() for line in read(path).splitlines()}


def checksum(crate, keep):
    """Keeps the sums of the files that are still there."""
    path = os.path.join(crate, ".cargo-checksum.json")
    sums = json.loads(read(path))
    sums["files"] = {k: v for k, v in sorted(sums["files"].items()) if keep(k)}
    write(path, json.dumps(sums, sort_keys=True) + "\n")


def stub(crate):
    """Keeps the manifest; every file that it names is made, empty."""
    for name in os.listdir(crate):
        if name in ("Cargo.toml", ".cargo-checksum.json"):
            continue
        path = os.path.join(crate, name)
        shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)
    write(os.path.join(crate, "src", "lib.rs"), "")
    for key, name in re.findall(r'^(path|build) = "([^"]+\.rs)"', read(os.path.join(crate, "Cargo.toml")), re.M):
        write(os.path.join(crate, name), "fn main() {}\n" if key == "build" else "")
    checksum(crate, lambda name: False)


def included(crate):
    """Files that a source takes in with include!, include_str! or include_bytes!."""
    found = set()
    for folder, _, names in os.walk(crate):
        for name in names:
            if not name.endswith(".rs") or os.path.relpath(folder, crate).split(os.sep)[0] in DROPPED:
                continue
            text = read(os.path.join(folder, name))
            for rel in re.findall(r'include(?:_str|_bytes)?!\(\s*"([^"]+)"', text):
                found.add(os.path.normpath(os.path.join(folder, rel)))
            for rel in re.findall(r'concat!\(\s*env!\("CARGO_MANIFEST_DIR"\),\s*"([^"]+)"', text):
                found.add(os.path.normpath(crate + "/" + rel))
    return found


def slim(crate):
    """Drops tests, benchmarks, examples and pages."""
    keep = included(crate)
    for folder, folders, names in os.walk(crate, topdown=True):
        top = folder == crate
        for name in list(folders):
            path = os.path.join(folder, name)
            if top and name in DROPPED and not any(k.startswith(path + os.sep) for k in keep):
                shutil.rmtree(path)
                folders.remove(name)
        for name in names:
            path = os.path.normpath(os.path.join(folder, name))
            if path in keep or name in ("Cargo.toml", ".cargo-checksum.json") or name.endswith(".rs"):
                continue
            if name.upper().startswith(LICENCE):
                continue
            if top or name.endswith((".md", ".png", ".svg", ".yml", ".yaml", ".sh", ".py")):
                os.remove(path)
    checksum(crate, lambda name: os.path.exists(os.path.join(crate, name)))


def manifest(crate):
    with open(os.path.join(crate, "Cargo.toml"), "rb") as f:
        return tomllib.load(f)["package"]


def credits(root, needed):
    """Who wrote the crates that the package is built from, and on which terms."""
    authors = ["The Rust core is built from these crates, which src/rust/vendor.tar.xz holds.", ""]
    licences = [
        "The package itself is under the MIT licence. src/rust/vendor.tar.xz holds the sources of the",
        "crates below, which are compiled into the shared library; each is under the terms named here,",
        "and its licence text stands in its folder of the archive. The archive has other folders, with",
        "nothing but a manifest: cargo asks for one of each crate that its lock file names.", "",
    ]
    for name in sorted(needed):
        package = manifest(os.path.join(root, name))
        label = f"{package['name']} {package['version']}"
        by = ", ".join(package.get("authors", [])) or f"the authors of {package.get('repository', package['name'])}"
        by = re.sub(r"\s*<[^>]*>", "", by)
        authors.append(f"{label}: {by}")
        terms = package.get("license") or f"see {package.get('license-file', 'its folder')}"
        licences.append(f"{label}: {terms.replace('/', ' OR ')}; {package.get('repository', '')}".rstrip("; "))
    return "\n".join(authors) + "\n", "\n".join(licences) + "\n"


def main(work):
    source = os.path.join(work, "vendor")
    crates = sorted(os.listdir(source))
    needed = lines(os.path.join(work, "needed")) & set(crates)
    tested = (lines(os.path.join(work, "tested")) & set(crates)) - needed
    authors, licences = credits(source, needed)
    write(os.path.join(work, "AUTHORS"), authors)
    write(os.path.join(work, "LICENSE.note"), licences)
    write(os.path.join(work, "dev.list"), "".join(f"{name}\n" for name in sorted(tested)))
    for name in sorted(tested):
        shutil.copytree(os.path.join(source, name), os.path.join(work, "dev", "vendor", name))
        slim(os.path.join(work, "dev", "vendor", name))
    for name in crates:
        crate = os.path.join(source, name)
        slim(crate) if name in needed else stub(crate)
    shutil.move(source, os.path.join(work, "full", "vendor"))
    print(f"{len(needed)} crates in full, {len(tested)} for tests, {len(crates) - len(needed)} stubs")


main(sys.argv[1])
