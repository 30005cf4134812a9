"""The C interface, sdk/tactus_sdk.h, as ctypes sees it. A test holds the two against each other."""

from __future__ import annotations

import ctypes
import os
import pathlib

from .errors import UnavailableError

ABI = 5

MISUSED, FAILED = -1, -2

BIND, COMPUTE, STEP, TAKE_STATE, READ_BUFFERS, WRITE_BUFFERS, END, EDGE, MEMORY = range(9)


class Request(ctypes.Structure):
    _fields_ = [
        ("kind", ctypes.c_int32),
        ("first_of_sum", ctypes.c_int32),
        ("last_of_round", ctypes.c_int32),
        ("failed", ctypes.c_int32),
        ("parameters", ctypes.c_void_p),
        ("gradients", ctypes.c_void_p),
        ("length", ctypes.c_uint64),
        ("states", ctypes.POINTER(ctypes.c_void_p)),
        ("state_count", ctypes.c_uint64),
        ("buffers", ctypes.c_void_p),
        ("buffer_count", ctypes.c_uint64),
        ("indices", ctypes.POINTER(ctypes.c_uint64)),
        ("index_count", ctypes.c_uint64),
        ("unit", ctypes.c_double),
        ("epoch", ctypes.c_uint64),
        ("gain", ctypes.c_double),
        ("steps", ctypes.c_uint64),
        ("text", ctypes.c_char_p),
        ("suspended", ctypes.c_int32),
        ("ahead", ctypes.POINTER(ctypes.c_uint64)),
        ("ahead_count", ctypes.c_uint64),
        ("rounds", ctypes.c_uint64),
        ("epochs", ctypes.c_uint64),
        ("consumed", ctypes.c_uint64),
        ("base_steps", ctypes.c_double),
        ("gathered", ctypes.POINTER(ctypes.c_double)),
        ("members", ctypes.c_uint64),
        ("place", ctypes.c_uint64),
        ("over", ctypes.c_int32),
        ("early_segments", ctypes.c_uint64),
        ("memory_bytes", ctypes.c_uint64),
        ("returned", ctypes.POINTER(ctypes.c_void_p)),
        ("returned_count", ctypes.c_uint64),
    ]


class Answer(ctypes.Structure):
    _fields_ = [
        ("loss_sum", ctypes.c_double),
        ("error", ctypes.c_char_p),
        ("values", ctypes.POINTER(ctypes.c_double)),
        ("value_count", ctypes.c_uint64),
        ("key", ctypes.c_uint64),
        ("memory", ctypes.c_void_p),
    ]


class Standing(ctypes.Structure):
    _fields_ = [
        ("rounds", ctypes.c_uint64),
        ("epoch", ctypes.c_uint64),
        ("consumed", ctypes.c_uint64),
        ("samples", ctypes.c_uint64),
        ("plan_version", ctypes.c_uint64),
        ("loss", ctypes.c_double),
        ("gradient_norm", ctypes.c_double),
        ("gain", ctypes.c_double),
        ("progress", ctypes.c_double),
        ("applied", ctypes.c_int32),
        ("rank", ctypes.c_uint32),
        ("size", ctypes.c_uint32),
    ]


# name: (result, arguments)
_run = ctypes.c_void_p
FUNCTIONS = {
    "tactus_abi": (ctypes.c_uint32, []),
    "tactus_open": (_run, [ctypes.c_char_p]),
    "tactus_join": (_run, [ctypes.c_char_p, ctypes.c_char_p]),
    "tactus_open_error": (ctypes.c_char_p, []),
    "tactus_knows_cuda": (ctypes.c_int32, []),
    "tactus_layout": (ctypes.c_int32, [_run, ctypes.POINTER(ctypes.c_uint64), ctypes.c_uint64]),
    "tactus_await": (ctypes.c_int32, [_run, ctypes.c_int32, ctypes.POINTER(Request)]),
    "tactus_reply": (ctypes.c_int32, [_run, ctypes.POINTER(Answer)]),
    "tactus_segment_ready": (ctypes.c_int32, [_run, ctypes.c_uint64]),
    "tactus_use_stream": (ctypes.c_int32, [_run, ctypes.c_void_p]),
    "tactus_get_standing": (ctypes.c_int32, [_run, ctypes.POINTER(Standing)]),
    "tactus_plan": (ctypes.c_char_p, [_run]),
    "tactus_stop": (None, [_run, ctypes.c_char_p]),
    "tactus_error": (ctypes.c_char_p, [_run]),
    "tactus_end": (None, [_run, ctypes.c_char_p]),
    "tactus_close": (None, [_run]),
}

_NAME = "libtactus_sdk.so"


def _candidates():
    """Where the library may be: named by the environment, in the package, or built in its checkout."""
    named = os.environ.get("TACTUS_SDK_LIBRARY")
    if named:
        return [pathlib.Path(named)]
    package = pathlib.Path(__file__).resolve().parent
    return [package / _NAME, package.parents[1] / "build" / "release" / "lib" / _NAME]


def load() -> ctypes.CDLL:
    """The library. Raises UnavailableError, with where it was looked for."""
    for path in _candidates():
        if path.exists():
            break
    else:
        raise UnavailableError("the library is not there: looked for " + ", ".join(map(str, _candidates()))
                               + ". Build it (scripts/build release tactus_sdk_c), or name it in TACTUS_SDK_LIBRARY.")
    try:
        library = ctypes.CDLL(str(path))
        for name, (result, arguments) in FUNCTIONS.items():
            function = getattr(library, name)
            function.restype = result
            function.argtypes = arguments
    except (OSError, AttributeError) as error:
        raise UnavailableError(f"{path} cannot be loaded: {error}") from None
    if library.tactus_abi() != ABI:
        raise UnavailableError(f"{path} is of another version: its interface is {library.tactus_abi()}, this package's {ABI}.")
    return library
