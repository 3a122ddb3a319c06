"""The files against the safetensors library."""

import json

import pytest
import safetensors.torch
import torch

from strata_core.training.checkpoint.image import HostImage, lay_out
from strata_core.training.checkpoint.reading import read_tensors

DTYPES = [
    torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2,
    torch.complex64, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint64, torch.uint32, torch.uint16,
    torch.uint8, torch.bool,
]  # fmt: skip


def file_of(tensors, image=None):
    image = image or HostImage()
    image.fill(tensors)()
    contents = image.contents()
    return bytes(contents.data[: contents.size_bytes])


def same(left, right):
    return (
        left.dtype == right.dtype
        and left.shape == right.shape
        and left.contiguous().flatten().view(torch.uint8).equal(right.contiguous().flatten().view(torch.uint8))
    )


def test_the_library_reads_every_dtype_back_bit_for_bit():
    bits = torch.randint(0, 2, (2, 3, 8), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    tensors = {f"in {dtype} é": bits.view(dtype) for dtype in DTYPES if dtype.itemsize <= 8}
    loaded = safetensors.torch.load(file_of(tensors))
    assert loaded.keys() == tensors.keys()
    assert all(same(loaded[name], tensors[name]) for name in tensors)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.bool])
def test_files_of_the_library_are_read(tmp_path, dtype):
    tensors = {"a": torch.arange(6).view(2, 3).to(dtype), "scalar": torch.tensor(1).to(dtype)}
    safetensors.torch.save_file(tensors, tmp_path / "x.safetensors")
    loaded = read_tensors(tmp_path / "x.safetensors")
    assert loaded.keys() == tensors.keys()
    assert all(same(loaded[name], tensors[name]) for name in tensors)


def test_nothing_at_all_is_still_a_valid_file():
    assert safetensors.torch.load(file_of({})) == {}


def test_scalars_and_empty_tensors_keep_their_shapes():
    loaded = safetensors.torch.load(file_of({"scalar": torch.tensor(2.5), "empty": torch.empty(3, 0)}))
    assert loaded["scalar"].shape == () and loaded["scalar"].item() == 2.5
    assert loaded["empty"].shape == (3, 0)


def test_a_view_is_stored_without_the_rest_of_its_storage():
    whole = torch.arange(100_000, dtype=torch.float32)
    data = file_of({"part": whole[10:20]})
    assert len(data) < 1000
    assert safetensors.torch.load(data)["part"].tolist() == list(range(10, 20))


def test_tensors_that_are_not_contiguous_are_stored_row_by_row():
    matrix = torch.arange(12.0).view(3, 4)
    data = file_of({"transposed": matrix.t(), "every_other": matrix[:, ::2], "same": torch.ones(1).expand(5)})
    loaded = safetensors.torch.load(data)
    assert torch.equal(loaded["transposed"], matrix.t())
    assert torch.equal(loaded["every_other"], matrix[:, ::2])
    assert torch.equal(loaded["same"], torch.ones(5))


def test_the_order_of_the_mapping_does_not_reach_the_file():
    tensors = {"b": torch.ones(3), "a": torch.zeros(2, dtype=torch.float64), "c": torch.ones(3, dtype=torch.bool)}
    assert file_of(tensors) == file_of(dict(reversed(tensors.items())))


def test_every_tensor_is_aligned_to_its_elements_and_there_are_no_gaps():
    tensors = {f"{dtype}": torch.zeros(3, dtype=dtype) for dtype in DTYPES}
    data = file_of(tensors)
    header_bytes = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + header_bytes])
    del header["__metadata__"]
    end = 0
    for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        start, stop = entry["data_offsets"]
        assert start == end and (8 + header_bytes + start) % tensors[name].element_size() == 0
        end = stop
    assert 8 + header_bytes + end == len(data)


def test_a_reused_buffer_shows_nothing_of_a_larger_file_before():
    image = HostImage()
    file_of({"large": torch.full((5000,), 7.0)}, image)
    small = {"small": torch.ones(3)}
    assert file_of(small, image) == file_of(small)


def test_a_buffer_is_kept_as_long_as_it_is_large_enough():
    image = HostImage()
    file_of({"a": torch.zeros(5000)}, image)
    address = torch.frombuffer(image.contents().data, dtype=torch.uint8).data_ptr()
    file_of({"a": torch.ones(4000)}, image)
    assert torch.frombuffer(image.contents().data, dtype=torch.uint8).data_ptr() == address


def test_a_dtype_without_a_name_in_the_format_is_refused():
    with pytest.raises(TypeError, match=r"odd.*complex128"):
        lay_out({"odd": torch.zeros(1, dtype=torch.complex128)})


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_copies_from_a_device_are_taken_before_later_work_changes_it():
    tensors = {"a": torch.arange(1 << 22, device="cuda", dtype=torch.float32)}
    image = HostImage()
    wait_until_complete = image.fill(tensors)
    tensors["a"].zero_()
    wait_until_complete()
    contents = image.contents()
    loaded = safetensors.torch.load(bytes(contents.data[: contents.size_bytes]))
    assert torch.equal(loaded["a"], torch.arange(1 << 22, dtype=torch.float32))
