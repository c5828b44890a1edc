import json
import sys
import time

from golden import FILE, METHODS, SPACES, made_with, sequence

if __name__ == "__main__":
    found = {}
    for space in SPACES:
        for method in METHODS:
            began = time.process_time()
            found[f"{method} {space}"] = sequence(method, space)
            print(f"{method} {space}: {len(found[f'{method} {space}'])} points, {time.process_time() - began:.1f} s")
    if sys.argv[1:] == ["write"]:
        FILE.write_text(json.dumps({"made_with": made_with(), "sequences": found}, indent=0) + "\n")
    else:
        golden = json.loads(FILE.read_text())
        print("made with other libraries" if golden["made_with"] != made_with() else "made with the same libraries")
        wrong = {
            name: next((i for i, (a, b) in enumerate(zip(digests, found[name], strict=False)) if a != b), "length")
            for name, digests in golden["sequences"].items()
            if digests != found[name]
        }
        print(f"{len(wrong)} of {len(found)} differ" + "".join(f"\n  {n}: from {i} on" for n, i in wrong.items()))
        sys.exit(bool(wrong))
