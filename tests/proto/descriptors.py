"""The API's files as descriptors, by protoc."""
import pathlib
import subprocess
import tempfile

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory


def _parse(serialized):
    """With what our own options say, which Python knows only once it knows the files that define them."""
    pool = descriptor_pool.Default()
    for file in descriptor_pb2.FileDescriptorSet.FromString(serialized).file:
        if not file.extension:
            continue
        added = pool.AddSerializedFile(file.SerializeToString())
        message_factory.MessageFactory(pool).GetMessages([added.name])  # the extensions' own types
        for extension in added.extensions_by_name.values():
            descriptor_pb2.FieldOptions.RegisterExtension(extension)
    return descriptor_pb2.FileDescriptorSet.FromString(serialized)


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
        compiled = _parse(out.read_bytes())
    compiled.file.sort(key=lambda file: file.name)
    return compiled
