"""What of an older API a newer one breaks. Field numbers and types are the wire; names are the job file, the workers' JSON
lines and users' sources. A message or enum may move into a file that its own imports publicly: all three still find it.
Works on FileDescriptorProtos; knows nothing of files."""
from google.protobuf import descriptor_pb2

FIELD = descriptor_pb2.FieldDescriptorProto


def breaks(old_set, new_set):
    """One line for each thing that a client of the old API would miss or misread; empty: none."""
    found = []
    new_files = {file.name: file for file in new_set.file}
    for old in old_set.file:
        new = new_files.get(old.name)
        if new is None:
            found.append(f"{old.name}: the file is gone")
            continue
        if new.package != old.package:
            found.append(f"{old.name}: package was {old.package}, is {new.package}")
        shown = _shown(new, new_files)
        _messages(old.package, old.message_type, [m for file in shown for m in file.message_type], found)
        _enums(old.package, old.enum_type, [e for file in shown for e in file.enum_type], found)
        _services(old.package, old.service, new.service, found)
    return found


def _shown(file, files):
    """A file and those of its package that it shows to whoever imports it."""
    shown = [file]
    for index in file.public_dependency:
        other = files.get(file.dependency[index])
        if other is not None and other.package == file.package:
            shown += _shown(other, files)
    return shown


def _by_name(items):
    return {item.name: item for item in items}


def _messages(scope, old_items, new_items, found):
    now = _by_name(new_items)
    for old in old_items:
        name = f"{scope}.{old.name}"
        if old.name not in now:
            found.append(f"{name}: the message is gone")
            continue
        new = now[old.name]
        _fields(name, old, new, found)
        _messages(name, old.nested_type, new.nested_type, found)
        _enums(name, old.enum_type, new.enum_type, found)


def _fields(scope, old_message, new_message, found):
    by_number = {field.number: field for field in new_message.field}
    by_name = _by_name(new_message.field)
    for old in old_message.field:
        name = f"{scope}.{old.name}"
        moved = by_name.get(old.name)
        if moved is not None and moved.number != old.number:
            found.append(f"{name}: number was {old.number}, is {moved.number}")
            continue
        new = by_number.get(old.number)
        if new is None:
            found.append(f"{name}: field {old.number} is gone")
            continue
        for what, before, after in _differences(old_message, old, new_message, new):
            found.append(f"{name}: {what} was {before}, is {after}")
        for what, before in _defaults(old).items():
            if _defaults(new).get(what) != before:
                found.append(f"{name}: {what} was {before}, is {_defaults(new).get(what, 'none')}")


def _differences(old_message, old, new_message, new):
    """(what, before, after) of a field that kept its number."""
    pairs = [
        ("name", old.name, new.name),
        ("JSON name", old.json_name, new.json_name),
        ("type", _type(old), _type(new)),
        ("label", FIELD.Label.Name(old.label), FIELD.Label.Name(new.label)),
        ("presence", old.proto3_optional, new.proto3_optional),
        ("oneof", _oneof(old_message, old), _oneof(new_message, new)),
        ("packed", _packed(old), _packed(new)),
    ]
    return [pair for pair in pairs if pair[1] != pair[2]]


def _type(field):
    return field.type_name or FIELD.Type.Name(field.type)


def _defaults(field):
    """What the field's rules (proto/tactus/v1/options.proto) give it, by the variants that they are of."""
    rules = [rule for option, rules in field.options.ListFields() if option.full_name == "tactus.v1.field" for rule in rules]
    return {f"default of {variant}" if variant else "default": rule.default_value
            for rule in rules if rule.HasField("default_value") for variant in (list(rule.of) or [""])}


def _packed(field):
    return field.options.packed if field.options.HasField("packed") else "by default"


def _oneof(message, field):
    """The name of the field's oneof; none for the one that the compiler makes for `optional`."""
    if not field.HasField("oneof_index") or field.proto3_optional:
        return "none"
    return message.oneof_decl[field.oneof_index].name


def _enums(scope, old_items, new_items, found):
    now = _by_name(new_items)
    for old in old_items:
        name = f"{scope}.{old.name}"
        if old.name not in now:
            found.append(f"{name}: the enum is gone")
            continue
        values = _by_name(now[old.name].value)
        for value in old.value:
            if value.name not in values:
                found.append(f"{name}.{value.name}: the value is gone")
            elif values[value.name].number != value.number:
                found.append(f"{name}.{value.name}: number was {value.number}, is {values[value.name].number}")


def _services(scope, old_items, new_items, found):
    now = _by_name(new_items)
    for old in old_items:
        name = f"{scope}.{old.name}"
        if old.name not in now:
            found.append(f"{name}: the service is gone")
            continue
        methods = _by_name(now[old.name].method)
        for method in old.method:
            if method.name not in methods:
                found.append(f"{name}.{method.name}: the call is gone")
                continue
            new = methods[method.name]
            for what, before, after in [
                    ("request", method.input_type, new.input_type), ("response", method.output_type, new.output_type),
                    ("client streaming", method.client_streaming, new.client_streaming),
                    ("server streaming", method.server_streaming, new.server_streaming)]:
                if before != after:
                    found.append(f"{name}.{method.name}: {what} was {before}, is {after}")
