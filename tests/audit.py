"""`make audit`: does anything installed here have a known hole? Says so plainly where that cannot be looked up."""

import json
import subprocess
import sys


def main() -> int:
    command = [sys.executable, "-m", "pip_audit", "--skip-editable", "--progress-spinner", "off", "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True)
    try:
        packages = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError):
        reason = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        sys.stdout.write(f"nothing was checked: pip-audit could not reach its list of known holes ({reason:.200})\n")
        return 0
    checked = [p for p in packages if "vulns" in p]
    holes = [f"{p['name']} {p['version']}: {', '.join(v['id'] for v in p['vulns'])}" for p in checked if p["vulns"]]
    unknown = len(packages) - len(checked)
    sys.stdout.write(
        f"{len(checked)} packages checked, {len(holes)} with known holes, {unknown} could not be looked up\n"
    )
    sys.stdout.write("".join(f"  {hole}\n" for hole in holes))
    if not checked:
        sys.stdout.write("nothing was checked: run this where the Python Package Index can be reached\n")
    return 1 if holes else 0


if __name__ == "__main__":
    sys.exit(main())
