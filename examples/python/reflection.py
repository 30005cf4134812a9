"""A service's messages and calls from the service itself, by gRPC server reflection: no generated code.

    api = Reflected(grpc.insecure_channel("127.0.0.1:7070"))
    jobs = api.service("tactus.v1.Jobs")
    job = jobs.GetJob({"name": "demo-1"}, timeout=10)

Needs grpcio and protobuf alone (Debian: python3-grpcio). The reflection protocol itself is spoken by messages that
are declared below, since Debian has no package with them.
"""
import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory

REFLECTION = "grpc.reflection.v1alpha.ServerReflection"
FIELD = descriptor_pb2.FieldDescriptorProto


def _declare(file, name, fields):
    """Adds a message with (name, number, type, label, type name) fields."""
    message = file.message_type.add(name=name)
    for field, number, kind, label, type_name in fields:
        message.field.add(name=field, number=number, type=kind, label=label, type_name=type_name)


def _reflection_messages():
    """The part of grpc/reflection/v1alpha/reflection.proto that is used; the numbers are its own."""
    file = descriptor_pb2.FileDescriptorProto(name="reflection.proto", package="grpc.reflection.v1alpha",
                                              syntax="proto3")
    one, many = FIELD.LABEL_OPTIONAL, FIELD.LABEL_REPEATED
    package = ".grpc.reflection.v1alpha."
    _declare(file, "ServerReflectionRequest", [
        ("file_by_filename", 3, FIELD.TYPE_STRING, one, None),
        ("file_containing_symbol", 4, FIELD.TYPE_STRING, one, None),
        ("list_services", 7, FIELD.TYPE_STRING, one, None)])
    request = file.message_type[0]
    request.oneof_decl.add(name="message_request")
    for field in request.field:
        field.oneof_index = 0
    _declare(file, "ServerReflectionResponse", [
        ("file_descriptor_response", 4, FIELD.TYPE_MESSAGE, one, package + "FileDescriptorResponse"),
        ("list_services_response", 6, FIELD.TYPE_MESSAGE, one, package + "ListServiceResponse"),
        ("error_response", 7, FIELD.TYPE_MESSAGE, one, package + "ErrorResponse")])
    _declare(file, "FileDescriptorResponse", [("file_descriptor_proto", 1, FIELD.TYPE_BYTES, many, None)])
    _declare(file, "ListServiceResponse",
             [("service", 1, FIELD.TYPE_MESSAGE, many, package + "ServiceResponse")])
    _declare(file, "ServiceResponse", [("name", 1, FIELD.TYPE_STRING, one, None)])
    _declare(file, "ErrorResponse", [("error_code", 1, FIELD.TYPE_INT32, one, None),
                                     ("error_message", 2, FIELD.TYPE_STRING, one, None)])
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())

    def message(name):
        return _message_class(pool.FindMessageTypeByName("grpc.reflection.v1alpha." + name))

    return message("ServerReflectionRequest"), message("ServerReflectionResponse")


def _message_class(descriptor):
    if hasattr(message_factory, "GetMessageClass"):  # protobuf 4.22 and later
        return message_factory.GetMessageClass(descriptor)
    return message_factory.MessageFactory(descriptor.file.pool).GetPrototype(descriptor)


class Reflected:
    """The services behind a channel."""

    def __init__(self, channel):
        self.channel = channel
        self.pool = descriptor_pool.DescriptorPool()
        self._added = set()
        self._request, self._response = _reflection_messages()
        self._call = channel.stream_stream(f"/{REFLECTION}/ServerReflectionInfo",
                                           request_serializer=self._request.SerializeToString,
                                           response_deserializer=self._response.FromString)

    def _ask(self, **question):
        answer = next(iter(self._call(iter([self._request(**question)]), timeout=10)))
        if answer.HasField("error_response"):
            raise LookupError(f"{question}: {answer.error_response.error_message}")
        return answer

    def services(self):
        """Names of all services."""
        return [service.name for service in self._ask(list_services="*").list_services_response.service]

    def _add(self, answer):
        """Adds files to the pool, what they import first."""
        files = {}
        for raw in answer.file_descriptor_response.file_descriptor_proto:
            file = descriptor_pb2.FileDescriptorProto.FromString(raw)
            files[file.name] = file
        for file in files.values():
            self._add_file(file, files)

    def _add_file(self, file, siblings):
        if file.name in self._added:
            return
        self._added.add(file.name)
        for name in file.dependency:
            if name in siblings:
                self._add_file(siblings[name], siblings)
            elif name not in self._added:
                self._add(self._ask(file_by_filename=name))
        self.pool.AddSerializedFile(file.SerializeToString())

    def service(self, name):
        self._add(self._ask(file_containing_symbol=name))
        return Service(self, self.pool.FindServiceByName(name))

    def message(self, name):
        """The class of a message, such as "tactus.v1.Job"."""
        return _message_class(self.pool.FindMessageTypeByName(name))

    def from_dict(self, descriptor, fields):
        return json_format.ParseDict(fields, _message_class(descriptor)(), descriptor_pool=self.pool)


class Service:
    """Calls as methods: the request is a dict, an answer is a message, a stream is an iterator of messages."""

    def __init__(self, api, descriptor):
        for method in descriptor.methods:
            setattr(self, method.name, self._caller(api, descriptor, method))

    @staticmethod
    def _caller(api, service, method):
        shape = ("stream" if method.client_streaming else "unary") + "_" + (
            "stream" if method.server_streaming else "unary")
        call = getattr(api.channel, shape)(
            f"/{service.full_name}/{method.name}",
            request_serializer=lambda request: request.SerializeToString(),
            response_deserializer=_message_class(method.output_type).FromString)

        def invoke(request=None, **options):
            if method.client_streaming:
                return call((api.from_dict(method.input_type, part) for part in request), **options)
            return call(api.from_dict(method.input_type, request or {}), **options)

        return invoke


def as_dict(message):
    return json_format.MessageToDict(message, preserving_proto_field_name=True)
