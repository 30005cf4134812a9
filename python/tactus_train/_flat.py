"""A model's parameters, gradients and optimizer states as views of flat memory."""

from __future__ import annotations

import copy
import inspect
import operator
from collections import defaultdict

import torch

from .errors import ModelError


def _dense_strides(parameter) -> bool:
    """Whether its elements fill memory without gap or overlap, in whatever order."""
    step = 1
    for size, stride in sorted(((n, s) for n, s in zip(parameter.shape, parameter.stride()) if n != 1), key=lambda d: d[1]):
        if stride != step:
            return False
        step *= size
    return True


def trainable(named) -> list[tuple[str, torch.nn.Parameter]]:
    """The parameters that need a gradient, each once, in the order in which backward passes are likely to complete them.
    Raises ModelError, which names the parameter."""
    found, seen = [], set()
    for name, parameter in named:
        if not parameter.requires_grad or id(parameter) in seen:
            continue
        seen.add(id(parameter))
        if parameter.is_meta:
            raise ModelError(f"parameter {name} has no values yet (it is on the meta device). Materialise the model first.", name)
        if parameter.layout != torch.strided:
            raise ModelError(f"parameter {name} is {parameter.layout}; allowed: dense ones. Use sparse=False.", name)
        if type(parameter.data) is not torch.Tensor:
            raise ModelError(f"parameter {name} is a {type(parameter.data).__name__}; allowed: plain tensors.", name)
        if parameter.dtype != torch.float32:
            raise ModelError(f"parameter {name} is {str(parameter.dtype)[6:]}; allowed: float32. model.float() and torch.autocast "
                             "keep the speed.", name)
        found.append((name, parameter))
    if not found:
        raise ModelError("the model has no parameter that needs a gradient.")
    return found[::-1]


def sync_batch_norms(model) -> list[str]:
    return [name for name, module in model.named_modules() if isinstance(module, torch.nn.SyncBatchNorm)]


_address_of = torch.Tensor.data_ptr
_gradient_of = operator.attrgetter("grad")
_version_of = operator.attrgetter("_version")


def _are(these, those) -> bool:
    """Whether they are the same objects, one by one; of as many."""
    return all(map(operator.is_, these, those))


class Flat:
    """Parameters and gradients as views. Gradients can be pointed at other memory of the same layout, and back.

    What is looked at in each step is looked at by maps of C functions: a model may have hundreds of parameters.
    """

    def __init__(self, parameters):
        self.names = [name for name, _ in parameters]
        self.parameters = [parameter for _, parameter in parameters]
        self.offsets: list[int] = []
        self._homes: list[int] = []  # addresses of the parameters
        self.gradients: torch.Tensor | None = None
        self._views: list[torch.Tensor] = []  # of these
        self._addresses: list[int] = []  # of those
        self._versions: list[int] = []  # of those, when the sum began
        self._seen: list[int] = []  # and at the last look

    def segments(self):
        return [{"name": name, "shape": list(parameter.shape)} for name, parameter in zip(self.names, self.parameters)]

    def views(self, flat: torch.Tensor) -> list[torch.Tensor]:
        return [flat.as_strided(parameter.shape, self._strides[i], self.offsets[i])
                for i, parameter in enumerate(self.parameters)]

    def bind(self, offsets, parameters: torch.Tensor, gradients: torch.Tensor):
        """Parameters keep their values and live there from now on; so do gradients, as they are there."""
        self.offsets = offsets
        if not self._homes:
            self._strides = [parameter.stride() if _dense_strides(parameter) else
                             torch.empty(parameter.shape, device="meta").stride() for parameter in self.parameters]
            with torch.no_grad():
                for parameter, view in zip(self.parameters, self.views(parameters)):
                    view.copy_(parameter.data)
                    parameter.data = view
            self._homes = [parameter.data_ptr() for parameter in self.parameters]
        self.gradients = gradients
        self._views = [view.data for view in self.views(gradients)]  # each with a count of changes of its own
        self._addresses = list(map(_address_of, self._views))
        self.point_back()
        self.begin_sum()

    def point_at(self, views: list[torch.Tensor]):
        for parameter, view in zip(self.parameters, views):
            parameter.grad = view

    def point_back(self):
        self.point_at(self._views)

    def hide_untouched(self) -> bool:
        """Who has no gradient in the sum, at the last look, is none of the step's, as in a loop of torch's. Whether there is any."""
        touched = list(map(operator.ne, self._seen, self._versions))
        if all(touched):
            return False
        for parameter, was in zip(self.parameters, touched):
            if not was:
                parameter.grad = None
        return True

    def version_at_home(self, i: int) -> int | None:
        """How often the gradient of one parameter was changed; none: it is in other memory."""
        gradient = self.parameters[i].grad
        if gradient is not self._views[i] or gradient.data_ptr() != self._addresses[i]:
            return None
        return gradient._version

    def begin_sum(self):
        self._versions = self.versions()

    def versions(self) -> list[int]:
        """How often each gradient was changed, by torch."""
        self._seen = list(map(_version_of, self._views))
        return self._seen

    def check_home(self):
        """Raises ModelError where a parameter was moved."""
        if list(map(_address_of, self.parameters)) == self._homes:
            return
        for name, parameter, home in zip(self.names, self.parameters, self._homes):
            if parameter.data_ptr() != home:
                raise ModelError(f"parameter {name} was moved or replaced after attach(): training goes on elsewhere. Call "
                                 "run.detach() before model.to(), model.double() or an assignment, and attach again.", name)

    def gather_strays(self):
        """Adds gradients that a backward pass put elsewhere, because somebody had taken the views away, and puts the views
        back."""
        if _are(map(_gradient_of, self.parameters), self._views) and list(map(_address_of, self._views)) == self._addresses:
            return
        with torch.no_grad():
            for parameter, view, address in zip(self.parameters, self._views, self._addresses):
                gradient = parameter.grad
                if gradient is view and gradient.data_ptr() == address:
                    continue
                if gradient is not None and gradient.data_ptr() != address:
                    view.add_(gradient)
                parameter.grad = view

    def release(self):
        """Parameters move to memory of their own, and have no gradients, whose memory goes first."""
        self.gradients, self._views = None, []
        for parameter in self.parameters:
            parameter.grad = None
        with torch.no_grad():
            for parameter in self.parameters:
                parameter.data = parameter.data.clone(memory_format=torch.preserve_format)


def _twin_of(optimizer):
    """Another of its kind, with a copy of each group's first parameter. What cannot be copied is shared."""
    twin = object.__new__(type(optimizer))
    memo = {id(parameter): parameter for group in optimizer.param_groups for parameter in group["params"]}
    for key, value in optimizer.__dict__.items():
        if key in ("state", "param_groups", "step", "zero_grad", "add_param_group"):
            continue
        try:
            twin.__dict__[key] = copy.deepcopy(value, memo)
        except Exception:  # noqa: BLE001 (whatever a user's class raises)
            twin.__dict__[key] = value
    twin.state, twin.param_groups = defaultdict(dict), []
    for group in optimizer.param_groups:
        first = group["params"][0]
        parameter = torch.nn.Parameter(first.detach().clone())
        parameter.grad = torch.zeros_like(parameter)
        twin.state[parameter] = {key: copy.deepcopy(value) for key, value in optimizer.state.get(first, {}).items()}
        twin.param_groups.append({**{key: copy.deepcopy(value) for key, value in group.items() if key != "params"},
                                  "params": [parameter]})
    return twin


def probe_state_keys(optimizer) -> list[str]:
    """The names of an optimizer's states that have their parameter's shape: what a step of a twin makes. The optimizer itself,
    and torch's random numbers, stay as they are."""
    step = type(optimizer).step
    closure = inspect.signature(step).parameters.get("closure")
    if closure is not None and closure.default is inspect.Parameter.empty:
        raise ModelError(f"{type(optimizer).__name__} wants a closure, with which it computes gradients as often as it likes. Such "
                         "optimizers are not supported.", "optimizer")
    twin = _twin_of(optimizer)
    devices = {parameter.device for group in optimizer.param_groups for parameter in group["params"]}
    with torch.random.fork_rng(devices=[device for device in devices if device.type == "cuda"]):
        step(twin)
    keys = []
    for parameter, state in twin.state.items():
        for key, value in state.items():
            fits = torch.is_tensor(value) and value.dtype == torch.float32 and value.shape == parameter.shape and value.dim() > 0
            if fits and key not in keys:
                keys.append(key)
    return keys


class OptimizerStates:
    """An optimizer's states as views of flat buffers, one for each kind."""

    def __init__(self, optimizer, flat: Flat, keys: list[str]):
        self._optimizer = optimizer
        self._steps_on_device = any(group.get("capturable") or group.get("fused") for group in optimizer.param_groups)
        self._flat = flat
        self._keys = keys
        self._views: list[list[torch.Tensor]] = []
        self._known: list[dict] = []  # the optimizer's, in its order, as they were when all was in the buffers
        self._held: list[tuple] = []  # (of a key: its reader, the states that have it, the views that are its values)

    def bind(self, states: list[torch.Tensor]):
        if not self._views:  # they stay where they are
            self._views = [self._flat.views(state) for state in states]
            self.take_home()

    def take_home(self):
        """States that the optimizer, or its load_state_dict, made elsewhere move into the buffers. To be called after each step."""
        if self._is_home():
            return
        held = [(i, state) for i, parameter in enumerate(self._flat.parameters) if (state := self._optimizer.state.get(parameter))]
        with torch.no_grad():
            for i, state in held:
                for key, views in zip(self._keys, self._views):
                    value = state.get(key)
                    if value is not None and value is not views[i]:
                        views[i].copy_(value)
                        state[key] = views[i]
        whole = (len(held) == len(self._optimizer.state)
                 and all(state.get(key) is not None for _, state in held for key in self._keys))
        self._known = list(self._optimizer.state.values()) if whole else []
        self._held = [(operator.itemgetter(key), [state for _, state in held], [views[i] for i, _ in held])
                      for key, views in zip(self._keys, self._views)]

    def _is_home(self) -> bool:
        """Whether nothing was put in the place of what was in the buffers at the last look."""
        now = self._optimizer.state
        if len(now) != len(self._known) or not _are(now.values(), self._known):
            return False
        try:
            return all(_are(map(value_of, states), views) for value_of, states, views in self._held)
        except KeyError:
            return False

    def taken(self, steps: int):
        """The buffers were written to: as after so many steps."""
        if steps == 0:
            return
        for i, parameter in enumerate(self._flat.parameters):
            state = self._optimizer.state[parameter]
            for key, views in zip(self._keys, self._views):
                if state.get(key) is not views[i]:
                    state[key] = views[i]
            step = state.get("step")
            if torch.is_tensor(step):
                step.fill_(steps)
            elif step is not None or "exp_avg" in self._keys:
                on = parameter.device if self._steps_on_device else torch.device("cpu")
                state["step"] = torch.tensor(float(steps), device=on) if step is None else steps

    def release(self):
        """States move to memory of their own, one kind after the other: what a kind was in goes before the next one moves."""
        self._views, self._known, self._held = [], [], []
        for key in self._keys:
            for state in self._optimizer.state.values():
                if torch.is_tensor(state.get(key)):
                    state[key] = state[key].clone(memory_format=torch.preserve_format)
