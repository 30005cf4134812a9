#!/usr/bin/env -S /usr/bin/python3 -B
"""Every service, call, message, field, enum and enum value of the API has a comment: before it, behind it, or before a
run of adjacent fields, where that comment ends with a colon. The zero value of an enum (..._UNSPECIFIED) needs none.

usage: comments_test.py SOURCE_ROOT        exit 1 and one line a thing without a comment
"""
import sys

from descriptors import compile_protos

# Numbers of the fields of FileDescriptorProto and below, as paths of SourceCodeInfo have them.
FILE_MESSAGE, FILE_ENUM, FILE_SERVICE = 4, 5, 6
MESSAGE_FIELD, MESSAGE_NESTED, MESSAGE_ENUM = 2, 3, 4
ENUM_VALUE, SERVICE_METHOD = 2, 2


class Comments:
    """The places of one file and what is said of them."""

    def __init__(self, file):
        self.locations = {tuple(location.path): location for location in file.source_code_info.location}

    def own(self, path):
        location = self.locations[path]
        return (location.leading_comments + location.trailing_comments).strip()

    def lines(self, path):
        span = self.locations[path].span
        return span[0], span[0] if len(span) == 3 else span[2]


def bare(file):
    """Names of what has no comment."""
    comments = Comments(file)
    found = []
    for number, service in enumerate(file.service):
        path = (FILE_SERVICE, number)
        found += [service.name] if not comments.own(path) else []
        found += [f"{service.name}.{method.name}" for i, method in enumerate(service.method)
                  if not comments.own(path + (SERVICE_METHOD, i))]
    for number, message in enumerate(file.message_type):
        found += bare_message(comments, (FILE_MESSAGE, number), message, message.name)
    for number, enum in enumerate(file.enum_type):
        found += bare_enum(comments, (FILE_ENUM, number), enum, enum.name)
    return found


def bare_message(comments, path, message, name):
    if message.options.map_entry:
        return []
    found = [name] if not comments.own(path) else []
    group_ends = None  # line behind which a group's comment still holds
    for number, field in enumerate(message.field):
        place = path + (MESSAGE_FIELD, number)
        first, last = comments.lines(place)
        own = comments.own(place)
        if own:
            group_ends = last if own.endswith(":") else None
        elif group_ends is not None and first == group_ends + 1:
            group_ends = last
        else:
            group_ends = None
            found.append(f"{name}.{field.name}")
    for number, nested in enumerate(message.nested_type):
        found += bare_message(comments, path + (MESSAGE_NESTED, number), nested, f"{name}.{nested.name}")
    for number, enum in enumerate(message.enum_type):
        found += bare_enum(comments, path + (MESSAGE_ENUM, number), enum, f"{name}.{enum.name}")
    return found


def bare_enum(comments, path, enum, name):
    found = [name] if not comments.own(path) else []
    return found + [f"{name}.{value.name}" for number, value in enumerate(enum.value)
                    if not comments.own(path + (ENUM_VALUE, number)) and not value.name.endswith("_UNSPECIFIED")]


def main():
    failed = [f"{file.name}: {name} has no comment" for file in compile_protos(sys.argv[1], comments=True).file
              for name in bare(file)]
    print("\n".join(failed))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
