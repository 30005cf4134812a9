#!/usr/bin/env -S /usr/bin/python3 -B
"""Every rule of compatible.py, by an API that was doctored to break it; and that additions break none."""
import pathlib
import unittest

from google.protobuf import descriptor_pb2, text_format

import descriptors
from compatible import breaks

API = """
file {
  name: "a.proto" package: "p" syntax: "proto3"
  message_type {
    name: "M"
    field { name: "one" number: 1 label: LABEL_OPTIONAL type: TYPE_UINT32 json_name: "one" }
    field { name: "two" number: 2 label: LABEL_OPTIONAL type: TYPE_MESSAGE type_name: ".p.N" json_name: "two" oneof_index: 0 }
    field { name: "three" number: 3 label: LABEL_OPTIONAL type: TYPE_STRING json_name: "three" oneof_index: 0 }
    field { name: "four" number: 4 label: LABEL_OPTIONAL type: TYPE_UINT64 json_name: "four" oneof_index: 1 proto3_optional: true }
    nested_type { name: "Inner" field { name: "x" number: 1 label: LABEL_REPEATED type: TYPE_INT32 json_name: "x" } }
    enum_type { name: "Colour" value { name: "RED" number: 0 } }
    oneof_decl { name: "choice" }
    oneof_decl { name: "_four" }
  }
  message_type { name: "N" }
  enum_type { name: "E" value { name: "ZERO" number: 0 } value { name: "ONE" number: 1 } }
  service {
    name: "S"
    method { name: "Get" input_type: ".p.M" output_type: ".p.N" }
    method { name: "Watch" input_type: ".p.M" output_type: ".p.N" server_streaming: true }
  }
}
"""


def api():
    return text_format.Parse(API, descriptor_pb2.FileDescriptorSet())


def with_default(value):
    """The API with a rule on M.one; see proto/tactus/v1/options.proto."""
    descriptors.compile_protos(pathlib.Path(__file__).resolve().parents[2])  # makes the option known
    doctored = api()
    rule = f'[tactus.v1.field] {{ default_value: "{value}" }}'
    text_format.Parse(rule, doctored.file[0].message_type[0].field[0].options)
    return doctored


class CompatibleTest(unittest.TestCase):
    def doctored(self, change):
        """What breaks when `change` is done to the file."""
        new = api()
        change(new.file[0])
        return breaks(api(), new)

    def test_the_same_breaks_nothing(self):
        self.assertEqual(breaks(api(), api()), [])

    def test_additions_break_nothing(self):
        def add(file):
            file.message_type[0].field.add(name="five", number=5, label=1, type=9, json_name="five")
            file.message_type[0].nested_type.add(name="Another")
            file.message_type.add(name="O")
            file.enum_type[0].value.add(name="TWO", number=2)
            file.enum_type.add(name="F")
            file.service[0].method.add(name="Put", input_type=".p.M", output_type=".p.N")
            file.service.add(name="T")

        self.assertEqual(self.doctored(add), [])

    def moved(self, package, public):
        """What breaks when M and E move into another file that the first imports."""
        new = api()
        other = new.file.add(name="b.proto", package=package, syntax="proto3")
        other.message_type.append(new.file[0].message_type.pop(0))
        other.enum_type.append(new.file[0].enum_type.pop(0))
        new.file[0].dependency.append("b.proto")
        if public:
            new.file[0].public_dependency.append(0)
        return breaks(api(), new)

    def test_a_move_into_a_file_that_is_imported_publicly_breaks_nothing(self):
        self.assertEqual(self.moved("p", public=True), [])

    def test_a_move_elsewhere_breaks(self):
        gone = ["p.M: the message is gone", "p.E: the enum is gone"]
        self.assertEqual(self.moved("p", public=False), gone)
        self.assertEqual(self.moved("q", public=True), gone)

    def test_a_file_gone(self):
        self.assertEqual(breaks(api(), descriptor_pb2.FileDescriptorSet()), ["a.proto: the file is gone"])

    def test_another_package(self):
        def change(file):
            file.package = "q"

        self.assertEqual(self.doctored(change), ["a.proto: package was p, is q"])

    def test_a_message_gone(self):
        self.assertEqual(self.doctored(lambda file: file.message_type.pop(1)), ["p.N: the message is gone"])

    def test_a_nested_message_gone(self):
        self.assertEqual(self.doctored(lambda file: file.message_type[0].nested_type.pop()),
                         ["p.M.Inner: the message is gone"])

    def test_a_field_gone(self):
        self.assertEqual(self.doctored(lambda file: file.message_type[0].field.pop(0)), ["p.M.one: field 1 is gone"])

    def test_a_field_of_a_nested_message_gone(self):
        self.assertEqual(self.doctored(lambda file: file.message_type[0].nested_type[0].field.pop()),
                         ["p.M.Inner.x: field 1 is gone"])

    def field(self, index, **values):
        def change(file):
            for name, value in values.items():
                setattr(file.message_type[0].field[index], name, value)

        return self.doctored(change)

    def test_a_field_with_another_number(self):
        self.assertEqual(self.field(0, number=9), ["p.M.one: number was 1, is 9"])

    def test_a_field_with_another_name(self):
        self.assertEqual(self.field(0, name="uno"), ["p.M.one: name was one, is uno"])

    def test_a_field_with_another_json_name(self):
        self.assertEqual(self.field(0, json_name="uno"), ["p.M.one: JSON name was one, is uno"])

    def test_a_field_of_another_type(self):
        self.assertEqual(self.field(0, type=4), ["p.M.one: type was TYPE_UINT32, is TYPE_UINT64"])

    def test_a_field_of_another_message(self):
        self.assertEqual(self.field(1, type_name=".p.M"), ["p.M.two: type was .p.N, is .p.M"])

    def test_a_field_with_another_label(self):
        self.assertEqual(self.field(0, label=3), ["p.M.one: label was LABEL_OPTIONAL, is LABEL_REPEATED"])

    def test_a_field_that_loses_its_presence(self):
        def change(file):
            file.message_type[0].field[3].ClearField("oneof_index")
            file.message_type[0].field[3].ClearField("proto3_optional")

        self.assertEqual(self.doctored(change), ["p.M.four: presence was True, is False"])

    def test_a_field_that_leaves_its_oneof(self):
        self.assertEqual(self.doctored(lambda file: file.message_type[0].field[2].ClearField("oneof_index")),
                         ["p.M.three: oneof was choice, is none"])

    def test_a_field_that_moves_into_a_oneof(self):
        self.assertEqual(self.field(0, oneof_index=0), ["p.M.one: oneof was none, is choice"])

    def test_a_field_that_is_packed_otherwise(self):
        def change(file):
            file.message_type[0].nested_type[0].field[0].options.packed = False

        self.assertEqual(self.doctored(change), ["p.M.Inner.x: packed was by default, is False"])

    def test_an_enum_gone(self):
        self.assertEqual(self.doctored(lambda file: file.enum_type.pop()), ["p.E: the enum is gone"])

    def test_a_nested_enum_gone(self):
        self.assertEqual(self.doctored(lambda file: file.message_type[0].enum_type.pop()),
                         ["p.M.Colour: the enum is gone"])

    def test_an_enum_value_gone(self):
        self.assertEqual(self.doctored(lambda file: file.enum_type[0].value.pop()), ["p.E.ONE: the value is gone"])

    def test_an_enum_value_with_another_number(self):
        def change(file):
            file.enum_type[0].value[1].number = 7

        self.assertEqual(self.doctored(change), ["p.E.ONE: number was 1, is 7"])

    def test_another_default(self):
        old, new = with_default("1"), with_default("2")
        self.assertEqual(breaks(old, new), ["p.M.one: default was 1, is 2"])
        self.assertEqual(breaks(old, api()), ["p.M.one: default was 1, is none"])
        self.assertEqual(breaks(api(), new), [])

    def test_a_service_gone(self):
        self.assertEqual(self.doctored(lambda file: file.service.pop()), ["p.S: the service is gone"])

    def test_a_call_gone(self):
        self.assertEqual(self.doctored(lambda file: file.service[0].method.pop(0)), ["p.S.Get: the call is gone"])

    def method(self, **values):
        def change(file):
            for name, value in values.items():
                setattr(file.service[0].method[0], name, value)

        return self.doctored(change)

    def test_a_call_with_another_request(self):
        self.assertEqual(self.method(input_type=".p.N"), ["p.S.Get: request was .p.M, is .p.N"])

    def test_a_call_with_another_response(self):
        self.assertEqual(self.method(output_type=".p.M"), ["p.S.Get: response was .p.N, is .p.M"])

    def test_a_call_that_streams_otherwise(self):
        self.assertEqual(self.method(client_streaming=True), ["p.S.Get: client streaming was False, is True"])
        self.assertEqual(self.method(server_streaming=True), ["p.S.Get: server streaming was False, is True"])


if __name__ == "__main__":
    unittest.main()
