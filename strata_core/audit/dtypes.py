"""Element types of tensors: torch's names, their sizes in bits, and how the formats spell them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ElementType:
    """`name` as torch spells it, `bits` an element takes, `kind`: "float", "complex", "integer" or "boolean"."""

    name: str
    bits: int
    kind: str

    def bytes_for(self, elements: int) -> int:
        """Bytes that `elements` elements take, packed."""
        return (elements * self.bits + 7) // 8


def _table(kind: str, **bits: int) -> dict[str, ElementType]:
    return {name: ElementType(name, size, kind) for name, size in bits.items()}


ELEMENT_TYPES: dict[str, ElementType] = {
    **_table("float", float64=64, float32=32, float16=16, bfloat16=16),
    **_table("float", float8_e4m3fn=8, float8_e5m2=8, float8_e4m3fnuz=8, float8_e5m2fnuz=8, float8_e8m0fnu=8),
    **_table("float", float4_e2m1fn=4, float6_e2m3fn=6, float6_e3m2fn=6, float4_e2m1fn_x2=8),
    **_table("complex", complex32=32, complex64=64, complex128=128),
    **_table("integer", int64=64, int32=32, int16=16, int8=8, uint64=64, uint32=32, uint16=16, uint8=8),
    **_table("integer", quint8=8, qint8=8, qint32=32, quint4x2=8, quint2x4=8, bits8=8, bits16=16),
    **_table("integer", bits1x8=8, bits2x4=8, bits4x2=8),
    **{f"{sign}int{bits}": ElementType(f"{sign}int{bits}", 8, "integer") for sign in ("", "u") for bits in range(1, 8)},
    **_table("boolean", bool=8),
}

_STORAGE_CLASSES = {
    "DoubleStorage": "float64",
    "FloatStorage": "float32",
    "HalfStorage": "float16",
    "BFloat16Storage": "bfloat16",
    "LongStorage": "int64",
    "IntStorage": "int32",
    "ShortStorage": "int16",
    "CharStorage": "int8",
    "ByteStorage": "uint8",
    "BoolStorage": "bool",
    "ComplexFloatStorage": "complex64",
    "ComplexDoubleStorage": "complex128",
    "QUInt8Storage": "quint8",
    "QInt8Storage": "qint8",
    "QInt32Storage": "qint32",
    "QUInt4x2Storage": "quint4x2",
    "QUInt2x4Storage": "quint2x4",
    "UntypedStorage": "uint8",
}
STORAGE_CLASS_TYPES = {name: ELEMENT_TYPES[of] for name, of in _STORAGE_CLASSES.items()}
"""Storage classes that torch.save names in persistent ids (`torch.FloatStorage`, ...), with their elements' types."""

_SAFETENSORS = {
    "F64": "float64",
    "F32": "float32",
    "F16": "float16",
    "BF16": "bfloat16",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
    "F8_E8M0": "float8_e8m0fnu",
    "F8_E4M3FNUZ": "float8_e4m3fnuz",
    "F8_E5M2FNUZ": "float8_e5m2fnuz",
    "F6_E2M3": "float6_e2m3fn",
    "F6_E3M2": "float6_e3m2fn",
    "F4": "float4_e2m1fn",
    "C64": "complex64",
    "I64": "int64",
    "I32": "int32",
    "I16": "int16",
    "I8": "int8",
    "U64": "uint64",
    "U32": "uint32",
    "U16": "uint16",
    "U8": "uint8",
    "BOOL": "bool",
}
SAFETENSORS_TYPES = {spelt: ELEMENT_TYPES[name] for spelt, name in _SAFETENSORS.items()}
"""The `dtype` spellings of the safetensors header."""
