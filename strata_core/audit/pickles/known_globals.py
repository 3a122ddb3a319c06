"""What is known about the names that pickles look up.

A name on the known-good list is part of how torch, numpy and collections write state, and neither importing nor
using it runs anything of the file's choosing. The standard library is full of functions that do, so of it only listed
names are data; a package of somebody else's may define classes (data, as far as anyone can tell) and functions (whose
calls cannot be vouched for).
"""

from __future__ import annotations

import sys
from enum import Enum

from strata_core.audit.dtypes import ELEMENT_TYPES, STORAGE_CLASS_TYPES
from strata_core.audit.pickles.symbols import Global


class Standing(Enum):
    """How far a global can be trusted."""

    KNOWN_GOOD = "known good"
    CLASS = "a class outside the known-good list"
    NOT_CALLABLE = "outside the known-good list, and a call of it cannot be vouched for"
    DANGEROUS = "able to run code"


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _names(module: str, names: str) -> set[tuple[str, str]]:
    return {(module, name) for name in names.split()}


_TENSOR_CLASSES = " ".join(
    f"{name}Tensor" for name in ("Float", "Double", "Half", "BFloat16", "Long", "Int", "Short", "Char", "Byte", "Bool")
)
_STORAGE_CLASSES = " ".join([*STORAGE_CLASS_TYPES, "TypedStorage"])

_TORCH = (
    _names("torch", "Size Tensor device Generator " + _TENSOR_CLASSES + " " + _STORAGE_CLASSES)
    | _names("torch", " ".join(ELEMENT_TYPES) + " half float double bfloat16 long int short cfloat cdouble")
    | _names("torch", "strided sparse_coo sparse_csr sparse_csc sparse_bsr sparse_bsc jagged")
    | _names("torch", "contiguous_format channels_last channels_last_3d preserve_format")
    | _names("torch", "per_tensor_affine per_tensor_symmetric per_channel_affine per_channel_symmetric")
    | _names("torch", "per_channel_affine_float_qparams")
    | _names("torch.storage", _STORAGE_CLASSES + " _load_from_bytes")
    | _names("torch.cuda", _TENSOR_CLASSES + " " + _STORAGE_CLASSES)
    | _names("torch.sparse", _TENSOR_CLASSES)
    | _names("torch.cuda.sparse", _TENSOR_CLASSES)
    | _names("torch.nn.parameter", "Parameter Buffer UninitializedParameter UninitializedBuffer")
    | _names("torch.nn", "Parameter")
    | _names("torch.serialization", "_get_layout")
    | _names("torch._tensor", "Tensor _rebuild_from_type _rebuild_from_type_v2")
    | _names(
        "torch._utils",
        "_rebuild_tensor _rebuild_tensor_v2 _rebuild_tensor_v3 _rebuild_parameter _rebuild_parameter_with_state "
        "_rebuild_sparse_tensor _rebuild_sparse_csr_tensor _rebuild_nested_tensor _rebuild_qtensor _rebuild_xla_tensor "
        "_rebuild_meta_tensor_no_storage _rebuild_wrapper_subclass _rebuild_device_tensor_from_numpy "
        "_rebuild_device_tensor_from_cpu_tensor",
    )
    | _names(
        "torch.distributed.checkpoint.metadata",
        "Metadata MetadataIndex TensorStorageMetadata BytesStorageMetadata ChunkStorageMetadata TensorProperties "
        "StorageMeta _MEM_FORMAT_ENCODING",
    )
    | _names("torch.distributed.checkpoint.filesystem", "_StorageInfo _StoragePrefix SerializationFormat")
    | _names("torch.distributed._shard.sharded_tensor.metadata", "TensorProperties MEM_FORMAT_ENCODING")
    | _names("torch.distributed.tensor", "DTensor")
    | _names("torch.distributed.tensor._api", "DTensor")
    | _names("torch.distributed.tensor._dtensor_spec", "DTensorSpec TensorMeta")
    | _names("torch.distributed.tensor.placement_types", "Partial Replicate Shard")
    | _names("torch.distributed.device_mesh", "DeviceMesh")
    | _names("torch.torch_version", "TorchVersion")
)

_NUMPY_SCALARS = (
    "float16 float32 float64 longdouble float128 complex64 complex128 int8 int16 int32 int64 longlong "
    "uint8 uint16 uint32 uint64 ulonglong bool bool_ str_ bytes_ void datetime64 timedelta64"
)
_NUMPY_DTYPES = " ".join(
    f"{name}DType"
    for name in _words(
        "Float16 Float32 Float64 LongDouble Complex64 Complex128 Int8 Int16 Int32 Int64 UInt8 UInt16 UInt32 UInt64 "
        "Bool Str Bytes Void DateTime64 TimeDelta64"
    )
)
_NUMPY = (
    _names("numpy", "ndarray dtype " + _NUMPY_SCALARS)
    | _names("numpy.dtypes", _NUMPY_DTYPES)
    | {(f"numpy.{core}.multiarray", name) for core in ("core", "_core") for name in ("_reconstruct", "scalar")}
    | {(f"numpy.{core}.numeric", "_frombuffer") for core in ("core", "_core")}
    | _names("numpy.random._pickle", "__randomstate_ctor __generator_ctor __bit_generator_ctor")
    | _names("numpy.random._mt19937", "MT19937")
    | _names("numpy.random._pcg64", "PCG64 PCG64DXSM")
    | _names("numpy.random._philox", "Philox")
    | _names("numpy.random._sfc64", "SFC64")
    | _names("numpy.random.bit_generator", "SeedSequence __pyx_unpickle_SeedSequence")
)

_COLLECTIONS = _names("collections", "OrderedDict defaultdict Counter deque") | _names("_codecs", "encode")

_PLAIN_BUILTINS = _names(
    "builtins", "object int float complex bool str bytes bytearray list tuple dict set frozenset slice range NoneType"
)
_RECONSTRUCTORS = _names("copyreg", "_reconstructor __newobj__ __newobj_ex__")

_JOBLIB = _names("joblib.numpy_pickle", "NumpyArrayWrapper")

KNOWN_GOOD = _JOBLIB | _TORCH | _NUMPY | _COLLECTIONS | _PLAIN_BUILTINS | _RECONSTRUCTORS

PLAIN_BASES = frozenset(Global(*name) for name in _PLAIN_BUILTINS)
"""Built-in types that `copyreg._reconstructor` may start from."""

_STANDARD_DATA = (
    _names("argparse", "Namespace")
    | _names("array", "array _array_reconstructor")
    | _names("builtins", "getattr type Ellipsis NotImplemented")
    | _names("datetime", "date datetime time timedelta timezone")
    | _names("decimal", "Decimal")
    | _names("enum", "Enum IntEnum Flag IntFlag StrEnum")
    | _names("fractions", "Fraction")
    | _names("functools", "partial")
    | _names("ipaddress", "IPv4Address IPv6Address")
    | _names("operator", "or_ getitem")
    | _names("_operator", "or_ getitem")
    | {
        (module, name)
        for module in ("pathlib", "pathlib._local")
        for name in ("Path", "PosixPath", "WindowsPath", "PurePath", "PurePosixPath", "PureWindowsPath")
    }
    | _names("random", "Random")
    | _names("re", "_compile")
    | _names("types", "SimpleNamespace")
    | _names("typing", "Any Union Optional Literal List Dict Tuple Callable Sequence Mapping")
    | _names("collections", "UserDict UserList UserString ChainMap")
    | _names("uuid", "UUID SafeUUID")
)
"""Of the standard library: classes of plain data, and the few functions that write them, judged at each call."""

_CODE_RUNNING_PACKAGES = _words(
    "pip setuptools pkg_resources _distutils_hack distutils ensurepip posix nt os2 commands popen2 "
    "IPython ipykernel jupyter_client notebook paramiko fabric fabric2 invoke plumbum sh pexpect ptyprocess delegator "
    "envoy dill cloudpickle joblib jsonpickle klepto pathos multiprocess cffi cython Cython pyximport numba llvmlite "
    "requests urllib3 httpx aiohttp httplib2 boto3 botocore websocket websockets zmq twisted tornado "
    "flask django jinja2 mako sqlalchemy celery docker kubernetes ansible pytest _pytest nose uvicorn gunicorn "
    "werkzeug pyautogui selenium playwright"
)
"""Packages that start programs, load code, run tests or talk to networks: no checkpoint has a reason to name them."""

_TRUSTED_ROOTS = frozenset({"torch", "numpy", "_codecs"})
"""Packages whose state is on the known-good list, so that what is not listed is not state."""

_CLASS_MODULES_OF_TORCH = ("torch.nn.", "torch.optim.", "torch.distributions.", "torch.ao.nn.", "torchvision.")

_DANGEROUS_ANYWHERE = _words(
    "system popen Popen spawn fork exec execv execve eval compile run_code runpy __import__ import_module load_module "
    "exec_module getattr setattr globals locals vars attrgetter methodcaller open breakpoint pty load_library "
    "load_from_bytes runstring check_output check_call getoutput getstatusoutput startfile os sys subprocess builtins "
    "importlib ctypes shutil socket __builtins__ __globals__ __class__ __dict__ __subclasses__ __mro__ __base__ "
    "__bases__ __code__ __getattribute__ __reduce__ __reduce_ex__ __init__ __call__ __loader__ __spec__"
)
"""Names that mean the same danger in whatever module they are looked up (modules import them from one another)."""


def resolve_old_name(found: Global) -> Global:
    """The Python 3 place of a name that Python 2 wrote (`__builtin__`, `copy_reg`, ...), as unpicklers map it."""
    from _compat_pickle import IMPORT_MAPPING, NAME_MAPPING

    if (found.module, found.name) in NAME_MAPPING:
        return Global(*NAME_MAPPING[found.module, found.name])
    return Global(IMPORT_MAPPING.get(found.module, found.module), found.name)


def standing_of(found: Global) -> Standing:
    """How far a global (its Python 3 name) can be trusted, from its name alone."""
    module, name = found.module, found.name
    if (module, name) in KNOWN_GOOD:
        return Standing.KNOWN_GOOD
    parts = name.split(".")
    segments = [*module.split("."), *parts]
    if not all(segment.isidentifier() for segment in segments):
        return Standing.DANGEROUS
    root = segments[0]
    if root in sys.stdlib_module_names or root in {"__builtin__", "exceptions"}:
        return Standing.CLASS if (module, name) in _STANDARD_DATA else Standing.DANGEROUS
    if root in _CODE_RUNNING_PACKAGES or not _DANGEROUS_ANYWHERE.isdisjoint(parts):
        return Standing.DANGEROUS
    names_class = all(_reads_as_class(part) for part in parts)
    if root in _TRUSTED_ROOTS:
        return _standing_in_torch_or_numpy(module, names_class, is_dotted=len(parts) > 1)
    if names_class:
        return Standing.CLASS
    return Standing.DANGEROUS if len(parts) > 1 else Standing.NOT_CALLABLE


def _standing_in_torch_or_numpy(module: str, names_class: bool, *, is_dotted: bool) -> Standing:
    if is_dotted:
        return Standing.DANGEROUS
    in_class_module = f"{module}.".startswith(_CLASS_MODULES_OF_TORCH) or module == "torch._C._nn"
    if names_class and in_class_module:
        return Standing.CLASS
    return Standing.NOT_CALLABLE if names_class or in_class_module else Standing.DANGEROUS


def _reads_as_class(name: str) -> bool:
    return name.lstrip("_")[:1].isupper()
