"""Finds the tensors in what a pickle makes, and reads the calls that rebuild them (torch/_utils.py) as descriptions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from strata_core.audit.dtypes import ELEMENT_TYPES, ElementType
from strata_core.audit.findings import Malformed, printable
from strata_core.audit.pickles.symbols import Dictionary, Global, Group, Made, Persistent
from strata_core.audit.tensors import MAX_DIMENSIONS, Storage, Tensor

Arguments = tuple[Any, ...]
FindStorage = Callable[[Any], tuple[Storage, ElementType]]
"""Takes what stands for a storage in a pickle and gives the Storage with its elements' type, or raises Malformed."""

_LONGEST_NAME = 1 << 14
_MODULE_TABLES = frozenset({"_parameters", "_buffers", "_modules"})
_DTYPE_ALIASES = {
    "half": "float16",
    "float": "float32",
    "double": "float64",
    "long": "int64",
    "int": "int32",
    "short": "int16",
    "cfloat": "complex64",
    "cdouble": "complex128",
}


class TensorValues:
    """Reads rebuilt tensors, each once, whatever the number of names that lead to it."""

    def __init__(self, find_storage: FindStorage) -> None:
        self._find_storage = find_storage
        self.seen: set[int] = set()
        """Identities of the calls read so far, inner ones included."""

    def is_tensor(self, value: Any) -> bool:
        """Whether a value is a call that rebuilds a tensor."""
        return isinstance(value, Made) and isinstance(value.maker, Global) and str(value.maker) in _REBUILDERS

    def read(self, made: Made) -> Tensor:
        """The tensor that a call rebuilds, without its name.

        Raises:
            Malformed: its arguments make no sense, or it reaches past its storage.
        """
        self.seen.add(id(made))
        function, arguments = str(made.maker), _arguments(made)
        depth = 0
        while function in _WRAPPERS:
            function, arguments = _WRAPPERS[function](self, arguments)
            depth += 1
            if depth > MAX_DIMENSIONS or function not in _REBUILDERS:
                raise Malformed(f"a tensor is rebuilt from something that is none ({printable(function, limit=60)})")
        fewest, most = _ARGUMENT_COUNTS[function]
        if not fewest <= len(arguments) <= most:
            raise Malformed(f"{function} is called with {len(arguments)} arguments")
        return _REBUILDERS[function](self, *arguments)

    def first_argument(self, arguments: Arguments) -> tuple[str, Arguments]:
        """What a parameter or a tensor on another device is made of."""
        inner = arguments[0] if arguments else None
        if not isinstance(inner, Made) or not isinstance(inner.maker, Global):
            raise Malformed("a parameter is made of something that is no tensor")
        self.seen.add(id(inner))
        return str(inner.maker), _arguments(inner)

    def of_type(self, arguments: Arguments) -> tuple[str, Arguments]:
        """The function and the arguments behind a tensor of a class of its own."""
        if len(arguments) < 3 or not isinstance(arguments[0], Global) or not isinstance(arguments[2], tuple):
            raise Malformed("a tensor of its own type is rebuilt without function or arguments")
        return str(arguments[0]), arguments[2]

    def strided(self, storage: Any, offset: Any, shape: Any, stride: Any, *_: Any) -> Tensor:
        """_rebuild_tensor, _rebuild_tensor_v2 and _rebuild_qtensor."""
        found, element_type = self._find_storage(storage)
        return _checked_view(Tensor("", element_type, sizes_of(shape), sizes_of(stride), _count(offset), found))

    def strided_with_type(
        self, storage: Any, offset: Any, shape: Any, stride: Any, _grad: Any, _hooks: Any, dtype: Any, *_: Any
    ) -> Tensor:
        """_rebuild_tensor_v3: the storage is untyped."""
        found = self._find_storage(storage)[0]
        return _checked_view(Tensor("", dtype_of(dtype), sizes_of(shape), sizes_of(stride), _count(offset), found))

    def without_data(self, dtype: Any, shape: Any, stride: Any, *_: Any) -> Tensor:
        """_rebuild_meta_tensor_no_storage."""
        return Tensor("", dtype_of(dtype), sizes_of(shape), sizes_of(stride), layout="meta")

    def wrapping(self, _class: Any, dtype: Any, shape: Any, stride: Any, *_: Any) -> Tensor:
        """_rebuild_wrapper_subclass: a tensor class that keeps its elements in tensors of its own."""
        return Tensor("", dtype_of(dtype), sizes_of(shape), sizes_of(stride), layout="wrapper")

    def sparse(self, layout: Any, data: Any, *_: Any) -> Tensor:
        """_rebuild_sparse_tensor and _rebuild_sparse_csr_tensor: (indices..., values, size, ...)."""
        if not isinstance(data, tuple):
            raise Malformed("a sparse tensor without its indices and values")
        components = [self.read(part) for part in data if self.is_tensor(part)]
        shapes = [value for value in data if not self.is_tensor(value) and not isinstance(value, bool)]
        if len(components) < 2 or not shapes:
            raise Malformed("a sparse tensor without its indices and values")
        name = _layout_name(layout)
        for component, part in zip(components, ("indices", "indices", "values")[-len(components) :], strict=False):
            component.name = part
        return Tensor("", components[-1].element_type, sizes_of(shapes[0]), layout=name, components=components)

    def nested(self, buffer: Any, *sizes: Any) -> Tensor:
        """_rebuild_nested_tensor: one buffer, and the shapes of the tensors in it."""
        parts = [self.read(part) for part in (buffer, *sizes) if self.is_tensor(part)]
        if not parts or not self.is_tensor(buffer):
            raise Malformed("a nested tensor without its buffer")
        return Tensor("", parts[0].element_type, parts[0].shape, layout="nested", components=[*parts[1:], parts[0]])

    def from_array(self, array: Any, dtype: Any, *_: Any) -> Tensor:
        """_rebuild_device_tensor_from_numpy: the elements are a numpy array's."""
        state = array.states[-1] if isinstance(array, Made) and array.states else None
        shape = state[1] if isinstance(state, tuple) and len(state) > 1 else ()
        return Tensor("", dtype_of(dtype), sizes_of(shape), layout="numpy")


def _arguments(made: Made) -> Arguments:
    return made.arguments if isinstance(made.arguments, tuple) else ()


_WRAPPERS: dict[str, Callable[[TensorValues, Arguments], tuple[str, Arguments]]] = {
    "torch._utils._rebuild_parameter": TensorValues.first_argument,
    "torch._utils._rebuild_parameter_with_state": TensorValues.first_argument,
    "torch._utils._rebuild_device_tensor_from_cpu_tensor": TensorValues.first_argument,
    "torch.nn.parameter.Parameter": TensorValues.first_argument,
    "torch.nn.parameter.Buffer": TensorValues.first_argument,
    "torch._tensor._rebuild_from_type": TensorValues.of_type,
    "torch._tensor._rebuild_from_type_v2": TensorValues.of_type,
}

_REBUILDERS: dict[str, Callable[..., Tensor]] = {
    "torch._utils._rebuild_tensor": TensorValues.strided,
    "torch._utils._rebuild_tensor_v2": TensorValues.strided,
    "torch._utils._rebuild_tensor_v3": TensorValues.strided_with_type,
    "torch._utils._rebuild_qtensor": TensorValues.strided,
    "torch._utils._rebuild_meta_tensor_no_storage": TensorValues.without_data,
    "torch._utils._rebuild_wrapper_subclass": TensorValues.wrapping,
    "torch._utils._rebuild_sparse_tensor": TensorValues.sparse,
    "torch._utils._rebuild_sparse_csr_tensor": TensorValues.sparse,
    "torch._utils._rebuild_nested_tensor": TensorValues.nested,
    "torch._utils._rebuild_device_tensor_from_numpy": TensorValues.from_array,
    "torch._utils._rebuild_xla_tensor": TensorValues.from_array,
    **dict.fromkeys(_WRAPPERS, TensorValues.without_data),
}

_ARGUMENT_COUNTS = {
    "torch._utils._rebuild_tensor": (4, 4),
    "torch._utils._rebuild_tensor_v2": (6, 7),
    "torch._utils._rebuild_tensor_v3": (7, 8),
    "torch._utils._rebuild_qtensor": (7, 7),
    "torch._utils._rebuild_meta_tensor_no_storage": (4, 4),
    "torch._utils._rebuild_wrapper_subclass": (8, 8),
    "torch._utils._rebuild_sparse_tensor": (2, 2),
    "torch._utils._rebuild_sparse_csr_tensor": (2, 2),
    "torch._utils._rebuild_nested_tensor": (4, 4),
    "torch._utils._rebuild_device_tensor_from_numpy": (4, 4),
    "torch._utils._rebuild_xla_tensor": (3, 4),
}
"""The fewest and the most arguments that each takes."""


def named_tensors(value: Any, values: TensorValues) -> Iterator[tuple[str, str, Made]]:
    """(name, container, call) of every tensor under a value, names as `state_dict` writes them: keys joined by dots.

    A container that is reached on several ways is walked once, so the walk is linear in the size of the pickle; so are
    names, of which those over 16,384 characters are left out.
    """
    seen: set[int] = set()
    waiting: list[tuple[str, str, Any]] = [("", "", value)]
    while waiting:
        name, container, found = waiting.pop()
        if values.is_tensor(found):
            yield name, container, found
        if not isinstance(found, list | tuple | Dictionary | Group | Made) or id(found) in seen:
            continue
        seen.add(id(found))
        waiting += [
            (f"{name}.{key}" if name and key else name or key, name, inner)
            for key, inner in reversed(_children(found))
            if len(name) + len(key) < _LONGEST_NAME
        ]


def _children(value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, Dictionary):
        return _named(value.entries)
    if isinstance(value, Group):
        return _numbered(value.members)
    if isinstance(value, list | tuple):
        return _numbered(value)
    children = [*_named(value.entries), *_numbered(value.items)]
    for state in value.states:
        for part in state if isinstance(state, tuple) else (state,):
            children += _named(part.entries) if isinstance(part, Dictionary) else [("", part)]
    arguments = value.arguments if isinstance(value.arguments, tuple) else (value.arguments,)
    if isinstance(value.maker, Global) and str(value.maker).endswith(("._rebuild_from_type_v2", "._rebuild_from_type")):
        return [*children, ("", arguments[-1])] if arguments else children
    if isinstance(value.maker, Global) and str(value.maker) in _REBUILDERS:
        return children
    return [*children, *(("", argument) for argument in arguments)]


def _named(entries: Any) -> list[tuple[str, Any]]:
    return [
        ("" if key in _MODULE_TABLES else key, inner)
        for key, inner in zip(map(key_text, entries[::2]), entries[1::2], strict=True)
        if isinstance(inner, list | tuple | Dictionary | Group | Made)
    ]


def _numbered(values: Any) -> list[tuple[str, Any]]:
    return [
        (str(index), inner)
        for index, inner in enumerate(values)
        if isinstance(inner, list | tuple | Dictionary | Group | Made)
    ]


def key_text(key: Any) -> str:
    """A dict's key as a part of a name."""
    if isinstance(key, str):
        return key
    if key is None or isinstance(key, bool | int | float | Global):
        return str(key)
    return f"<{type(key).__name__.lower()}>"


def _checked_view(tensor: Tensor) -> Tensor:
    if len(tensor.shape) != len(tensor.stride):
        raise Malformed(f"{len(tensor.shape)} sizes with {len(tensor.stride)} strides")
    if tensor.elements >= 1 << 63:
        raise Malformed("more elements than a tensor can have")
    storage = tensor.storage
    due = tensor.element_type.bytes_for(tensor.reach)
    if storage is not None and storage.stored is not None and due > storage.size_bytes:
        raise Malformed(
            f"reaches past its storage: elements up to {tensor.reach:,} ({due:,} bytes) of {storage.name}, "
            f"which has {storage.size_bytes:,} bytes"
        )
    return tensor


def sizes_of(value: Any) -> tuple[int, ...]:
    """A shape or strides: a tuple, a list or a torch.Size of counts.

    Raises:
        Malformed: it is none.
    """
    if isinstance(value, Made) and value.is_made_by("torch", "Size") and isinstance(value.arguments, tuple):
        value = value.arguments[0] if value.arguments else ()
    if not isinstance(value, list | tuple) or len(value) > MAX_DIMENSIONS:
        raise Malformed("a shape that is no short list of numbers")
    return tuple(_count(size) for size in value)


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 63:
        shown = value if isinstance(value, int) else f"a {type(value).__name__}"
        raise Malformed(f"{shown} where a count is due")
    return value


def dtype_of(dtype: Any) -> ElementType:
    """The element type behind `torch.float32` and its like.

    Raises:
        Malformed: it is none.
    """
    name = _DTYPE_ALIASES.get(dtype.name, dtype.name) if isinstance(dtype, Global) and dtype.module == "torch" else ""
    if name not in ELEMENT_TYPES:
        shown = printable(str(dtype), limit=60) if isinstance(dtype, Global) else f"a {type(dtype).__name__}"
        raise Malformed(f"{shown} is no element type")
    return ELEMENT_TYPES[name]


def _layout_name(layout: Any) -> str:
    if isinstance(layout, Made) and isinstance(layout.arguments, tuple) and layout.arguments:
        layout = layout.arguments[0]
    name = layout.name if isinstance(layout, Global) else layout
    return name.removeprefix("torch.") if isinstance(name, str) else "sparse"


def storage_identity(value: Any) -> tuple[Any, ...] | None:
    """The persistent id of a storage, ("storage", class, key, location, elements, ...), behind a value."""
    if isinstance(value, Made) and value.is_made_by("torch.storage", "TypedStorage"):
        inner = value.arguments if isinstance(value.arguments, tuple) else ()
        value = inner[0] if inner else None
    if isinstance(value, Persistent) and isinstance(value.identity, tuple) and len(value.identity) >= 5:
        return value.identity if value.identity[0] == "storage" else None
    return None
