"""What can go wrong, each with one line that says what to do."""


class Error(RuntimeError):
    """Of Tactus. `field` names the argument or setting to blame; empty: none."""

    def __init__(self, message: str, field: str = ""):
        super().__init__(message)
        self.field = field


class UsageError(Error):
    """A call in the wrong place; the message says which one is right."""


class ModelError(Error):
    """A parameter, or an optimizer, that cannot be trained so."""


class DivergedError(Error):
    """The gradient was not finite in too many rounds in a row."""


class UnavailableError(Error):
    """Something that is needed is not there: the library, a device."""
