import struct

import pytest

from judging.core.sandbox.seccomp import filter_program

ALLOW, KILL, EPERM, ENOSYS = 0x7FFF0000, 0x80000000, 0x00050001, 0x00050026
ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}


def verdict(machine: str, number: int, *arguments: int, architecture: int | None = None) -> int:
    """Interpret the BPF filter as the kernel would; supports only the instructions it uses."""
    program = filter_program(machine)
    assert program is not None
    given = [*arguments, 0, 0, 0, 0, 0, 0][:6]
    data = struct.pack("<IIQ6Q", number, architecture or ARCHITECTURES[machine], 0, *given)
    instructions = list(struct.iter_unpack("<HBBI", program))
    position, value = 0, 0
    while True:
        code, yes, no, k = instructions[position]
        if code == 0x06:
            return int(k)
        if code == 0x20:
            (value,) = struct.unpack_from("<I", data, k)
            position += 1
            continue
        holds = {0x15: value == k, 0x35: value >= k, 0x45: bool(value & k)}[code]
        position += 1 + (yes if holds else no)


@pytest.mark.parametrize(("machine", "read"), [("x86_64", 0), ("aarch64", 63)])
def test_reading_is_allowed_on_the_channel_only(machine: str, read: int) -> None:
    assert [verdict(machine, read, descriptor) for descriptor in (3, 0, 4)] == [ALLOW, EPERM, EPERM]


@pytest.mark.parametrize(("machine", "mmap"), [("x86_64", 9), ("aarch64", 222)])
@pytest.mark.parametrize(
    ("protection", "flags", "expected"), [(3, 0x22, ALLOW), (7, 0x22, EPERM), (3, 0x02, EPERM)]
)
def test_memory_is_anonymous_and_not_executable(
    machine: str, mmap: int, protection: int, flags: int, expected: int
) -> None:
    assert verdict(machine, mmap, 0, 4096, protection, flags) == expected


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_a_call_of_another_architecture_is_killed(machine: str) -> None:
    assert verdict(machine, 0, 3, architecture=0x40000003) == KILL


def test_x32_calls_are_killed() -> None:
    assert verdict("x86_64", 0x40000000, 3) == KILL


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_clone3_does_not_exist(machine: str) -> None:
    assert verdict(machine, 435) == ENOSYS


@pytest.mark.parametrize("number", [1000, 41, 42, 56, 57, 59, 101, 257])
def test_what_is_not_named_is_refused(number: int) -> None:
    assert verdict("x86_64", number) == EPERM


@pytest.mark.parametrize(("clock", "expected"), [(2, ALLOW), (11, ALLOW), (12, EPERM), (0xFFFFFFF2, EPERM)])
def test_only_ones_own_clocks_are_read(clock: int, expected: int) -> None:
    assert verdict("x86_64", 228, clock) == expected


def test_an_unknown_machine_has_no_filter() -> None:
    assert filter_program("pdp11") is None
