import pytest

from strata_core.errors import UsageError
from strata_core.memory_fit import format_bytes, parse_bytes


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [
        ("80GiB", 85_899_345_920),
        ("16 GB", 16_000_000_000),
        ("1.5tib", 1_649_267_441_664),
        ("512MiB", 536_870_912),
        ("4096B", 4096),
        ("7B", 7),
    ],
)
def test_sizes_are_read_with_their_unit(text: str, size_bytes: int) -> None:
    assert parse_bytes(text) == size_bytes


@pytest.mark.parametrize("text", ["", "GiB", "80 gigs", "-1GiB", "0", "1e3", "0.2B", "١GiB"])
def test_what_is_no_size_is_refused_with_its_text(text: str) -> None:
    with pytest.raises(UsageError, match="is not a size of memory") as caught:
        parse_bytes(text)
    assert repr(text) in caught.value.message


@pytest.mark.parametrize(
    ("text", "meant"),
    [("80", "80GiB"), ("1.5", "1.5GiB"), (" 512 ", "512GiB"), ("16384", "16384MiB"), ("85899345920", "85899345920B")],
)
def test_a_number_without_a_unit_is_refused_with_what_it_likely_means(text: str, meant: str) -> None:
    with pytest.raises(UsageError, match="has no unit") as caught:
        parse_bytes(text)
    assert repr(text) in caught.value.message
    assert caught.value.hint == f"did you mean {meant}?"
    assert parse_bytes(meant) >= 2**30


@pytest.mark.parametrize(("size_bytes", "text"), [(0, "0 B"), (1536, "1.5 KiB"), (3 * 2**40, "3.0 TiB")])
def test_sizes_are_written_in_the_largest_unit(size_bytes: int, text: str) -> None:
    assert format_bytes(size_bytes) == text
