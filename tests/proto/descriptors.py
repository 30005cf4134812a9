"""The API's files as descriptors, by protoc."""
import pathlib
import subprocess
import tempfile

from google.protobuf import descriptor_pb2


def compile_protos(root, comments=False):
    """The FileDescriptorSet of every .proto below root/proto/tactus, by name; with what the comments say if asked for."""
    folder = pathlib.Path(root) / "proto"
    names = sorted(str(path.relative_to(folder)) for path in (folder / "tactus").rglob("*.proto"))
    if not names:
        raise SystemExit(f"{folder}/tactus: no .proto found")
    with tempfile.TemporaryDirectory() as scratch:
        out = pathlib.Path(scratch) / "set"
        subprocess.run(["protoc", f"--proto_path={folder}", f"--descriptor_set_out={out}",
                        *(["--include_source_info"] if comments else []), *names], check=True)
        compiled = descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes())
    compiled.file.sort(key=lambda file: file.name)
    return compiled
